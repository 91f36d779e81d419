import { describe, expect, it } from 'vitest';
import { LoopHealth, type LoopStatus } from '../../../src/app/run/loop-health.ts';
import { StatusReporter } from '../../../src/app/run/status-reporter.ts';
import type { Tools } from '../../../src/app/tools.ts';
import type { Supervisor, SupervisorReport } from '../../../src/host/supervisor.ts';

const statusOf = (link: string, changes: Partial<LoopStatus> = {}): LoopStatus => ({
  link,
  isSettled: true,
  problem: null,
  ...changes,
});

/** A supervisor that records its reports, and a reporter for it. */
function begin(timeoutMs: number | null = null) {
  const reports: SupervisorReport[] = [];
  const logged: object[] = [];
  const slept: number[] = [];
  const end = new AbortController();
  const supervisor: Supervisor = { watchdogMs: timeoutMs, report: async (report) => void reports.push(report) };
  const tools = {
    sleep: async (milliseconds: number) => {
      slept.push(milliseconds);
      if (slept.length === 3) end.abort();
    },
    log: { error: (facts: object) => void logged.push(facts) },
  } as unknown as Tools;
  return { reports, logged, slept, end, reporter: new StatusReporter(tools, supervisor) };
}

describe('a reporter', () => {
  it('reports ready once every network had its pass, and then each change of the status', () => {
    const { reports, reporter } = begin();
    reporter.update([statusOf('cpn0'), statusOf('cpn1', { isSettled: false })], null);
    expect(reports).toEqual([]);
    reporter.update([statusOf('cpn0'), statusOf('cpn1')], null);
    reporter.update([statusOf('cpn0'), statusOf('cpn1')], null);
    reporter.update([statusOf('cpn0'), statusOf('cpn1', { problem: 'no\nmore' })], null);
    reporter.update([], 'the disk failed');
    expect(reports).toEqual([
      { state: 'ready', status: 'reconciling cpn0, cpn1' },
      { status: 'reconciling cpn0; cpn1: no\u{fffd}more' },
      { status: 'the disk failed' },
    ]);
  });

  it('reports ready without a network, and a status of bounded length', () => {
    const { reports, reporter } = begin();
    reporter.update([], null);
    reporter.update([], 'x'.repeat(1000));
    expect(reports[0]).toEqual({ state: 'ready', status: 'no network is joined' });
    expect(reports[1]?.status?.length).toBe(300);
  });

  it('reports a reload from its request to the last of its passes', () => {
    const { reports, reporter } = begin();
    reporter.reload();
    reporter.update([statusOf('cpn0')], null);
    reporter.reload();
    reporter.reload();
    reporter.update([statusOf('cpn0', { isSettled: false })], null);
    reporter.update([statusOf('cpn0')], null);
    expect(reports.map(({ state }) => state)).toEqual(['ready', 'reloading', 'ready']);
  });

  it('reports twice within the timeout that it is alive, while no loop hangs', async () => {
    const { reports, logged, slept, end, reporter } = begin(180_000);
    const stuck = [null, 'cpn0', null];
    await reporter.beat(end.signal, () => stuck.shift() ?? null);
    expect(slept).toEqual([90_000, 90_000, 90_000]);
    expect(reports).toEqual([{ isAlive: true }, { isAlive: true }]);
    expect(logged).toEqual([{ stuck: 'cpn0' }]);
  });

  it('reports nothing without a timeout', async () => {
    const { reports, end, reporter } = begin(null);
    await reporter.beat(end.signal, () => null);
    expect(reports).toEqual([]);
  });
});

describe('the health of a loop', () => {
  it('is stuck when an iteration does not end, and when the next one is overdue', () => {
    let now = 0;
    const health = new LoopHealth('cpn0', () => now);
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

  it('is settled only by an iteration that began after the last reload', () => {
    const health = new LoopHealth('cpn0', () => 0);
    const seen: boolean[] = [];
    const look = () => seen.push(health.status.isSettled);
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

  it('has the problem of the last iteration', () => {
    const health = new LoopHealth('cpn0', () => 0);
    health.fail(new Error('no'));
    expect(health.status).toEqual({ link: 'cpn0', isSettled: false, problem: 'no' });
    health.heal();
    expect(health.status.problem).toBe(null);
  });
});
