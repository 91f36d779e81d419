import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Meter } from '../../../src/app/meter.ts';
import { noMeter } from '../../../src/app/meter.ts';
import { refresh } from '../../../src/app/refresh.ts';
import { countCalls } from '../../../src/app/run/count-calls.ts';
import { countPass } from '../../../src/app/run/count-pass.ts';
import { Keeper } from '../../../src/app/run/keeper.ts';
import { TakeoverWatch } from '../../../src/app/run/takeover-watch.ts';
import { survey } from '../../../src/app/survey.ts';
import { removed } from '../../../src/core/change.ts';
import { Unreachable } from '../../../src/core/errors.ts';
import { dialled, peer } from '../../core/samples.ts';
import { eventually } from '../../lab/eventually.ts';
import { answerWith, Desk, fail, joinedTo, mapAt } from '../desk.ts';

/** A meter that remembers all it is told, in order. */
function remembering(): { told: unknown[][]; meter: Meter } {
  const told: unknown[][] = [];
  const meter = { ...noMeter };
  for (const name of Object.keys(noMeter) as (keyof Meter)[])
    meter[name] = (...facts: unknown[]) => void told.push([name, ...facts]);
  return { told, meter };
}

const connectors = [2, 3].map((number) => peer(number, { type: 'connector', endpoint: dialled(number) }));
const map = mapAt('"1"', connectors);

describe('what is counted for a network', () => {
  it('is each call to its control plane that fails, and none that was ended or went well', async () => {
    const desk = await Desk.with(joinedTo(map));
    const { told, meter } = remembering();
    const tools = countCalls({ ...desk.tools, meter }, 'cpn0');
    const state = await desk.state();
    const down = new Unreachable('https://x', 'refused', { delivered: false, heard: false, retryAfterMs: null });
    desk.answers = [answerWith(map), fail(down), fail(AbortSignal.abort().reason)];
    await refresh(tools, state);
    expect(told).toEqual([]);
    await refresh(tools, state);
    await expect(refresh(tools, state)).rejects.toThrow();
    expect(told).toEqual([['callFailed', 'cpn0', 'read_map', 'Unreachable']]);
  });

  it('is a takeover by another connector, once for all that it takes over, and also when nobody served for a while', async () => {
    const desk = await Desk.with(joinedTo(map));
    const { told, meter } = remembering();
    const watch = new TakeoverWatch(meter, 'cpn0');
    const see = async (failed: readonly number[], peers = connectors) => {
      const state = joinedTo(mapAt('"1"', peers), { failed: failed.map((each) => ({ peer: each, back: false })) });
      watch.note(await survey(desk.tools, state));
      return told.length;
    };
    expect(await see([])).toBe(0);
    expect(await see([])).toBe(0);
    expect(await see([2])).toBe(1);
    expect(told).toEqual([['failedOver', 'cpn0']]);
    expect(await see([2])).toBe(1);
    expect(await see([], [])).toBe(1);
    expect(await see([])).toBe(2);
  });

  it('is how each pass ended, and what it changed', async () => {
    const desk = await Desk.with(joinedTo(map));
    const seen = await survey(desk.tools, await desk.state());
    const changes = [removed('route', '192.168.50.0/24', 'cpn0', 'gone')];
    const { told, meter } = remembering();
    countPass(meter, 'cpn0', { survey: { ...seen, changes: [] }, changes: [], isDrift: true }, 1);
    countPass(meter, 'cpn0', { survey: null, changes: [], isDrift: true }, 2);
    countPass(meter, 'cpn0', { survey: seen, changes, isDrift: true }, 3);
    countPass(meter, 'cpn0', { survey: seen, changes, isDrift: false }, 4);
    countPass(meter, 'cpn0', { survey: seen, changes: [], isDrift: true }, 5);
    expect(told.filter(([name]) => name === 'passed').map(([, , outcome]) => outcome)).toEqual([
      ...['steady', 'steady', 'repaired', 'changed', 'postponed'],
    ]);
    expect(told).toContainEqual(['changed', 'cpn0', changes, false]);
  });

  it('is what passes over it find, one after the other', async () => {
    const desk = await Desk.with(joinedTo(map));
    const next = mapAt('"2"', connectors.slice(1));
    desk.answers = [answerWith(map), answerWith(next)];
    const { told, meter } = remembering();
    const stop = new AbortController();
    const kept = new Keeper({ ...desk.tools, meter, sleep: () => setImmediate() }, 'cpn0', {
      interval: 3600,
      confirmMs: 0,
    }).keep(stop.signal);
    await eventually('a takeover', () => told.some(([name]) => name === 'failedOver'));
    stop.abort();
    await kept;
    const outcomes = told.filter(([name]) => name === 'passed').map(([, , outcome]) => outcome);
    expect(outcomes.slice(0, 2)).toEqual(['repaired', 'changed']);
  });

  it('is a pass that failed', async () => {
    const desk = await Desk.with(joinedTo(map));
    desk.refuses = () => true;
    desk.answers = [answerWith(map)];
    const { told, meter } = remembering();
    const stop = new AbortController();
    const kept = new Keeper({ ...desk.tools, meter }, 'cpn0', { interval: 3600, confirmMs: 0 }).keep(stop.signal);
    await eventually('a pass', () => told.length > 0);
    stop.abort();
    await kept;
    expect(told[0]).toEqual(['passed', 'cpn0', 'failed', expect.any(Number)]);
  });
});
