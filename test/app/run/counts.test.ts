import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { PeerService } from '../../../src/api/service.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { refresh } from '../../../src/app/reconcile/refresh.ts';
import { FailoverCounter } from '../../../src/app/run/listeners/failover-counter.ts';
import { countCalls, NetworkController } from '../../../src/app/run/network-controller.ts';
import { type Meter, noMeter } from '../../../src/app/tools.ts';
import { Unreachable } from '../../../src/core/errors/index.ts';
import { dialled, peer } from '../../core/samples.ts';
import { eventually } from '../../lab/eventually.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';
import { passOf } from './pass-of.ts';

/** A meter that records its calls in order. */
function recordingMeter(): { calls: unknown[][]; meter: Meter } {
  const calls: unknown[][] = [];
  const meter = { ...noMeter };
  for (const name of Object.keys(noMeter) as (keyof Meter)[])
    meter[name] = (...facts: unknown[]) => void calls.push([name, ...facts]);
  return { calls, meter };
}

const connectors = [2, 3].map((number) => peer(number, { type: 'connector', endpoint: dialled(number) }));
const map = mapAt('"1"', connectors);

describe('what is counted for a network', () => {
  it('is each call to its control plane that fails, but none that was aborted or succeeded', async () => {
    const simulated = await SimulatedHost.with(joinedTo(map));
    const { calls, meter } = recordingMeter();
    const tools = countCalls({ ...simulated.tools, meter }, 'cpn0');
    const state = await simulated.state();
    const down = new Unreachable('https://x', 'refused', { delivered: false, heard: false, retryAfterMs: null });
    simulated.service.mapReplies = [answerWith(map), fail(down), fail(AbortSignal.abort().reason)];
    await refresh(tools, state);
    expect(calls).toEqual([]);
    await refresh(tools, state);
    await expect(refresh(tools, state)).rejects.toThrow();
    expect(calls).toEqual([['callFailed', 'cpn0', 'read_map', 'Unreachable']]);
  });

  it.each<[string, keyof PeerService]>([
    ['read_map', 'readMap'],
    ['withdraw', 'withdraw'],
    ['announce_secret', 'announceSecret'],
    ['change_key', 'changeKey'],
    ['report', 'report'],
  ])('is a failed %s, by that name', async (operation, method) => {
    const simulated = await SimulatedHost.empty();
    const { calls, meter } = recordingMeter();
    const down = new Unreachable('https://x', 'refused', { delivered: false, heard: false, retryAfterMs: null });
    const failing = async () => {
      throw down;
    };
    const connect = async () => ({ ...simulated.service.connect(), [method]: failing });
    const service = await countCalls({ ...simulated.tools, connect, meter }, 'cpn0').connect(joinedTo(map));
    await expect((service[method] as () => Promise<unknown>)()).rejects.toBe(down);
    expect(calls).toEqual([['callFailed', 'cpn0', operation, 'Unreachable']]);
  });

  it('is a failover to another connector, once for all prefixes that move, and also after a time without a connector', async () => {
    const simulated = await SimulatedHost.with(joinedTo(map));
    const { calls, meter } = recordingMeter();
    const counter = new FailoverCounter(meter, 'cpn0');
    const see = async (failed: readonly number[], peers = connectors) => {
      const state = joinedTo(mapAt('"1"', peers), { failed: failed.map((each) => ({ peer: each, back: false })) });
      counter.onPass(passOf(await evaluateNetwork(simulated.tools, state)));
      return calls.length;
    };
    expect(await see([])).toBe(0);
    expect(await see([])).toBe(0);
    expect(await see([2])).toBe(1);
    expect(calls).toEqual([['failedOver', 'cpn0']]);
    expect(await see([2])).toBe(1);
    expect(await see([], [])).toBe(1);
    expect(await see([])).toBe(2);
  });

  it('is the outcome of each pass', async () => {
    const simulated = await SimulatedHost.with(joinedTo(map));
    const next = mapAt('"2"', connectors.slice(1));
    const { calls, meter } = recordingMeter();
    const awaitPass = () => eventually('a pass', () => calls.some(([name]) => name === 'passed'));
    simulated.service.mapReplies = [answerWith(map), (...asked) => awaitPass().then(() => answerWith(next)(...asked))];
    const stop = new AbortController();
    const kept = new NetworkController({ ...simulated.tools, meter, sleep: () => setImmediate() }, 'cpn0', {
      interval: 3600,
      confirmMs: 0,
    }).run(stop.signal);
    await eventually('a failover', () => calls.some(([name]) => name === 'failedOver'));
    stop.abort();
    await kept;
    const outcomes = calls.filter(([name]) => name === 'passed').map(([, , outcome]) => outcome);
    expect(outcomes.slice(0, 2)).toEqual(['repaired', 'changed']);
  });

  it('is a failed pass', async () => {
    const simulated = await SimulatedHost.with(joinedTo(map));
    simulated.refusesStep = () => true;
    simulated.service.mapReplies = [answerWith(map)];
    const { calls, meter } = recordingMeter();
    const stop = new AbortController();
    const kept = new NetworkController({ ...simulated.tools, meter }, 'cpn0', { interval: 3600, confirmMs: 0 }).run(
      stop.signal,
    );
    await eventually('a pass', () => calls.length > 0);
    stop.abort();
    await kept;
    expect(calls[0]).toEqual(['passed', 'cpn0', 'failed', expect.any(Number)]);
  });
});
