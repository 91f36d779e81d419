import { expect, it, vi } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { RoamingListener } from '../../../../src/app/run/listeners/roaming-listener.ts';
import type { Underlay } from '../../../../src/core/host-state/actual.ts';
import type { Peer } from '../../../../src/core/map/model.ts';
import { address, dialled, peer, prefix, underlay } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const hub = peer(2, { type: 'connector', endpoint: dialled(2) });
const edge = peer(3, { endpoint: dialled(3) });

/** Another LAN than that of the samples. */
const cafe: Underlay = {
  ...underlay,
  addresses: [address('10.1.0.7')],
  connected: [{ prefix: prefix('10.1.0.0/24'), link: 'eth0' }],
  gateways: [address('10.1.0.1')],
};
const asleep: Underlay = { ...underlay, addresses: [], connected: [], gateways: [], uplinks: [] };

/** A host with sessions to both peers, which do not answer yet, and a listener after the first pass. */
async function start(peers: readonly Peer[] = [edge, hub]) {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', peers)));
  const triggered: string[] = [];
  simulated.onHandshakeTrigger = (to) => void triggered.push(to);
  simulated.sourceAddressTo = () => (simulated.actual.underlay.uplinks.length > 0 ? address('10.1.0.7') : null);
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000);
  for (const number of peers.map(({ id }) => Number(id)))
    simulated.updatePeer(number, { latestHandshake, rxBytes: 100, endpoint: dialled(number) as never });
  let moves = 0;
  const watch = new RoamingListener(simulated.tools, 'cpn0', () => {
    moves += 1;
  });
  const stop = new AbortController();
  const watching = watch.run(stop.signal);
  const pass = async (around: Underlay = simulated.actual.underlay) => {
    simulated.actual = { ...simulated.actual, underlay: around };
    simulated.steps.length = 0;
    watch.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
    for (let turn = 0; turn < 5; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await simulated.tools.store.lock(async () => {});
    }
  };
  const listLogged = () => simulated.logged.filter(({ message }) => message.startsWith('the underlay changed'));
  /** The number of probes, once there are so many. */
  const logged = async (times: number) => {
    await vi.waitFor(() => expect(listLogged().length).toBeGreaterThanOrEqual(times), { timeout: 20_000 });
    return listLogged();
  };
  await pass();
  const end = async () => {
    stop.abort();
    await watching;
  };
  return { simulated, watch, triggered, pass, logged, countMoves: () => moves, end };
}

it('probes the peers in use, connectors first, once the underlay changes, and only then', async () => {
  const { simulated, pass, logged, end } = await start();
  for (const each of [hub, edge]) simulated.reachable.add(each.address);
  await pass();
  expect(await logged(0)).toEqual([]);
  await pass(cafe);
  expect(await logged(1)).toMatchObject([{ facts: { peers: 2, answered: ['peer-2', 'peer-3'], renewed: [] } }]);
  expect(simulated.steps).toEqual([]);
  await pass();
  expect(await logged(1)).toHaveLength(1);
  await end();
});

it('forces a handshake with a peer that sends nothing, and with no other', async () => {
  const { simulated, triggered, pass, logged, end } = await start();
  simulated.reachable.add(hub.address);
  await pass(cafe);
  expect(await logged(1)).toMatchObject([{ facts: { answered: ['peer-2'], renewed: ['peer-3'] } }]);
  expect(simulated.steps).toMatchObject([{ do: 'renew-peers', peers: [{ publicKey: edge.publicKey }] }]);
  expect(triggered).toEqual([edge.address]);
  await end();
});

it('keeps the session of a peer whose firewall drops the probe, and which sent other packets', async () => {
  const { simulated, pass, logged, end } = await start();
  const { isTcpReachable: answers } = simulated.tools.host;
  Object.assign(simulated.tools.host, {
    isTcpReachable: async (to: never, deadline: number) => {
      for (const number of [2, 3]) simulated.updatePeer(number, { rxBytes: 500 });
      return answers(to, deadline);
    },
  });
  await pass(cafe);
  expect(await logged(1)).toMatchObject([{ facts: { answered: [], renewed: [] } }]);
  expect(simulated.steps).toEqual([]);
  await end();
});

it('probes again after a new default route with the same addresses, and after a sleep', async () => {
  const { simulated, watch, pass, logged, end } = await start();
  simulated.reachable.add(hub.address).add(edge.address);
  const added = { kind: 'route', removed: false, isDefault: true } as const;
  watch.onEvent({ ...added, link: 'cpn0' });
  watch.onEvent({ ...added, link: 'eth0', removed: true });
  await pass();
  expect(await logged(0)).toHaveLength(0);
  watch.onEvent({ ...added, link: 'eth0' });
  await pass();
  expect(await logged(1)).toHaveLength(1);
  watch.reset('wake');
  await pass();
  expect(await logged(2)).toHaveLength(2);
  await end();
});

it('logs once while the default route does not settle, unless a session had to be renewed', async () => {
  const { simulated, pass, logged, end } = await start();
  simulated.reachable.add(hub.address).add(edge.address);
  const levels = async (times: number) => (await logged(times)).map(({ level }) => level);
  await pass(cafe);
  await pass(underlay);
  expect(await levels(2)).toEqual(['info', 'debug']);
  simulated.reachable.delete(hub.address);
  await pass(cafe);
  expect(await levels(3)).toEqual(['info', 'debug', 'info']);
  simulated.reachable.add(hub.address);
  simulated.seconds += 30;
  await pass(underlay);
  expect((await levels(4)).at(-1)).toBe('info');
  await end();
});

it('probes the peers once its cable is plugged in again, and keeps their sessions while it is not', async () => {
  const { simulated, pass, logged, end } = await start();
  const isUnplugged = (name: string) => ({ name, kind: 'other', ...(name === 'eth0' && { isDown: true as const }) });
  await pass({ ...underlay, uplinks6: ['eth0'], links: ['eth0', 'eth1'].map(isUnplugged) } as Underlay);
  expect(await logged(0)).toEqual([]);
  expect(simulated.steps).toEqual([]);
  // Two handshakes that cross leave each end with a session that the other end does not have.
  const { isTcpReachable } = simulated.tools.host;
  Object.assign(simulated.tools.host, {
    isTcpReachable: async (to: never, deadline: number) => {
      for (const number of [2, 3]) simulated.updatePeer(number, { rxBytes: 372 });
      return isTcpReachable(to, deadline);
    },
  });
  await pass(underlay);
  expect(await logged(1)).toMatchObject([{ facts: { answered: [], renewed: ['peer-2', 'peer-3'] } }]);
  await end();
});

it('probes no peer without a route to it, and none that is not in use', async () => {
  const { simulated, pass, logged, end } = await start();
  simulated.reachable.add(hub.address).add(edge.address);
  await pass(asleep);
  expect(await logged(0)).toEqual([]);
  simulated.updatePeer(3, { latestHandshake: null });
  await pass(cafe);
  expect(await logged(1)).toMatchObject([{ facts: { peers: 1, answered: ['peer-2'] } }]);
  await end();
});

it('reports that this host may have moved when its uplink goes, when a default route comes, and once the underlay changed', async () => {
  const { watch, pass, countMoves, end } = await start();
  watch.onEvent({ kind: 'address', removed: true, link: 'docker0' });
  watch.onEvent({ kind: 'address', removed: false, link: 'eth0' });
  expect(countMoves()).toBe(0);
  watch.onEvent({ kind: 'address', removed: true, link: 'eth0' });
  watch.onEvent({ kind: 'link', removed: false, link: 'eth0' });
  watch.onEvent({ kind: 'route', removed: false, link: 'wlan0', isDefault: true });
  expect(countMoves()).toBe(3);
  await pass(cafe);
  expect(countMoves()).toBe(4);
  await end();
});

it('treats changes of the uplink as urgent, and those of other interfaces not', async () => {
  const { watch, end } = await start();
  const event = { kind: 'address', removed: false } as const;
  expect(watch.onEvent({ ...event, link: 'eth0' })).toBe(true);
  expect(watch.onEvent({ ...event, link: 'docker0' })).toBe(false);
  expect(watch.onEvent({ ...event, kind: 'route', link: 'wlan0', isDefault: true })).toBe(true);
  await end();
});

it('sends one packet to each peer in use beyond the first 64', async () => {
  const many = Array.from({ length: 67 }, (_, at) => peer(at + 2, { endpoint: dialled(at + 2) }));
  const { simulated, triggered, pass, logged, end } = await start(many);
  for (const { address } of many) simulated.reachable.add(address);
  await pass(cafe);
  expect(await logged(1)).toMatchObject([{ facts: { peers: 67 } }]);
  expect(triggered).toEqual(many.slice(64).map(({ address }) => address));
  await end();
});

it('treats a network that is taken down, and brought up again, as no move', async () => {
  const { simulated, watch, pass, logged, countMoves, end } = await start();
  for (const each of [hub, edge]) simulated.reachable.add(each.address);
  watch.onPass(passOf(null));
  await pass();
  expect([countMoves(), await logged(0)]).toEqual([0, []]);
  await end();
});
