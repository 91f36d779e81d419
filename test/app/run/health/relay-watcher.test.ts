import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { RelayWatcher } from '../../../../src/app/run/health/relay-watcher.ts';
import type { Tools } from '../../../../src/app/tools.ts';
import { dialled, peer } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';

const other = peer(2, { type: 'connector', endpoint: dialled(2) });
const host = peer(4, { endpoint: dialled(4) });
const joined = joinedTo(mapAt('"1"', [other, host]));
/** This host as one of two connectors. */
const connector = { ...joined, enrollment: { ...joined.enrollment, type: 'connector' as const } };
const withoutHost = { ...connector, membership: { ...connector.membership, map: mapAt('"2"', [other]) } };

/** Runs a watcher for a while, with events at these seconds. Returns when which hosts were unreachable. */
async function watch(
  simulated: SimulatedHost,
  seconds: number,
  events: Readonly<Record<number, (watch: RelayWatcher) => unknown>>,
) {
  const begun = simulated.seconds;
  const ended = new AbortController();
  const reported: { at: number; lost: readonly unknown[] }[] = [];
  const tools: Tools = {
    ...simulated.tools,
    sleep: async (milliseconds) => {
      await simulated.tools.sleep(milliseconds);
      await events[simulated.seconds - begun]?.(watcher);
      if (simulated.seconds - begun >= seconds) ended.abort();
    },
  };
  const watcher = new RelayWatcher(tools, 'cpn0', () => {
    reported.push({ at: simulated.seconds - begun, lost: watcher.failed.map((each) => each.peer) });
  });
  watcher.follow(await evaluateNetwork(simulated.tools, connector));
  await watcher.run(ended.signal);
  return reported;
}

async function up(): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(connector);
  await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  simulated.updatePeer(4, { rxBytes: 100, txBytes: 100 });
  return simulated;
}

it('a host that answers no packets is unreachable, until it sends one', async () => {
  const simulated = await up();
  const reported = await watch(simulated, 60, {
    5: () => simulated.updatePeer(4, { txBytes: 200 }),
    40: () => simulated.updatePeer(4, { rxBytes: 132 }),
  });
  expect(reported).toEqual([
    { at: 25, lost: [4] },
    { at: 40, lost: [] },
  ]);
});

it('a host that left the network and came back starts without its former traffic', async () => {
  const simulated = await up();
  const evaluation = await evaluateNetwork(simulated.tools, connector);
  const reported = await watch(simulated, 60, {
    5: () => simulated.updatePeer(4, { txBytes: 200 }),
    10: async (watcher) => {
      watcher.follow({ ...evaluation, state: withoutHost });
      await simulated.tools.sleep(30_000);
      watcher.follow(evaluation);
    },
  });
  expect(reported).toEqual([]);
});

it('a host that failed according to the disk stays unreachable until it sends', async () => {
  const simulated = await up();
  const evaluation = await evaluateNetwork(simulated.tools, { ...connector, failed: [{ peer: 4, back: false }] });
  const before: unknown[] = [];
  const reported = await watch(simulated, 60, {
    5: (watcher) => {
      watcher.follow(evaluation);
      before.push(watcher.failed);
    },
    40: () => simulated.updatePeer(4, { rxBytes: 132 }),
  });
  expect(before).toEqual([[{ peer: 4, back: false }]]);
  expect(reported).toEqual([{ at: 40, lost: [] }]);
});
