import { describe, expect, it } from 'vitest';
import { Health, type Standing } from '../../../src/app/run/health.ts';
import { Reporter } from '../../../src/app/run/reporter.ts';
import type { Tools } from '../../../src/app/tools.ts';
import type { Report, Supervisor } from '../../../src/host/supervisor.ts';

const standing = (link: string, changes: Partial<Standing> = {}): Standing => ({
  link,
  isSettled: true,
  trouble: null,
  ...changes,
});

/** A supervisor that writes down what it is told, and a reporter for it. */
function begin(patienceMs: number | null = null) {
  const told: Report[] = [];
  const logged: object[] = [];
  const slept: number[] = [];
  const end = new AbortController();
  const supervisor: Supervisor = { patienceMs, tell: async (report) => void told.push(report) };
  const tools = {
    sleep: async (milliseconds: number) => {
      slept.push(milliseconds);
      if (slept.length === 3) end.abort();
    },
    log: { error: (facts: object) => void logged.push(facts) },
  } as unknown as Tools;
  return { told, logged, slept, end, reporter: new Reporter(tools, supervisor) };
}

describe('a reporter', () => {
  it('says that the daemon is ready once every network had its pass, and then how it is, when that changes', () => {
    const { told, reporter } = begin();
    reporter.note([standing('cpn0'), standing('cpn1', { isSettled: false })], null);
    expect(told).toEqual([]);
    reporter.note([standing('cpn0'), standing('cpn1')], null);
    reporter.note([standing('cpn0'), standing('cpn1')], null);
    reporter.note([standing('cpn0'), standing('cpn1', { trouble: 'no\nmore' })], null);
    reporter.note([], 'the disk failed');
    expect(told).toEqual([
      { state: 'ready', status: 'keeping cpn0, cpn1' },
      { status: 'keeping cpn0; cpn1: no\u{fffd}more' },
      { status: 'the disk failed' },
    ]);
  });

  it('is ready where nothing is joined, and in a line of bounded length', () => {
    const { told, reporter } = begin();
    reporter.note([], null);
    reporter.note([], 'x'.repeat(1000));
    expect(told[0]).toEqual({ state: 'ready', status: 'no network is joined' });
    expect(told[1]?.status?.length).toBe(300);
  });

  it('reloads from the request to the last pass that it asked for', () => {
    const { told, reporter } = begin();
    reporter.reload();
    reporter.note([standing('cpn0')], null);
    reporter.reload();
    reporter.reload();
    reporter.note([standing('cpn0', { isSettled: false })], null);
    reporter.note([standing('cpn0')], null);
    expect(told.map(({ state }) => state)).toEqual(['ready', 'reloading', 'ready']);
  });

  it('says twice within the patience that it is alive, while no loop hangs', async () => {
    const { told, logged, slept, end, reporter } = begin(180_000);
    const stuck = [null, 'cpn0', null];
    await reporter.beat(end.signal, () => stuck.shift() ?? null);
    expect(slept).toEqual([90_000, 90_000, 90_000]);
    expect(told).toEqual([{ isAlive: true }, { isAlive: true }]);
    expect(logged).toEqual([{ stuck: 'cpn0' }]);
  });

  it('says nothing where nobody waits for it', async () => {
    const { told, end, reporter } = begin(null);
    await reporter.beat(end.signal, () => null);
    expect(told).toEqual([]);
  });
});

describe('the health of a loop', () => {
  it('is bad when a turn does not end, and when the next one is overdue', () => {
    let now = 0;
    const health = new Health('cpn0', () => now);
    const later = (seconds: number) => {
      now += seconds;
      return health.isStuck(30);
    };
    health.begin();
    expect([later(300), later(1)]).toEqual([false, true]);
    health.end();
    expect([later(90), later(1)]).toEqual([false, true]);
    health.begin();
    expect(later(0)).toBe(false);
  });

  it('is settled by a turn that began after the last request alone', () => {
    const health = new Health('cpn0', () => 0);
    const seen: boolean[] = [];
    const look = () => seen.push(health.standing.isSettled);
    health.begin();
    health.startOver();
    health.end();
    look();
    health.begin();
    look();
    health.end();
    look();
    expect(seen).toEqual([false, false, true]);
  });

  it('knows the trouble of the last turn', () => {
    const health = new Health('cpn0', () => 0);
    health.fail(new Error('no'));
    expect(health.standing).toEqual({ link: 'cpn0', isSettled: false, trouble: 'no' });
    health.heal();
    expect(health.standing.trouble).toBe(null);
  });
});
