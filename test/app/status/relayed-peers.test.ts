import { expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { statusToJson, statusToText } from '../../../src/cli/output/show-status.ts';
import type { NetworkMap, PeerFailure } from '../../../src/core/map/model.ts';
import { addRecord } from '../../../src/core/paths/path-record.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const relayedSince = (at: string) => ({ switched: { to: 'relayed', at, why: 'lost' } }) as const;

it('a peer that a connector relays has no handshake, and its state names the connector', async () => {
  const edge = peer(2, { type: 'connector', endpoint: dialled(2), name: 'edge-1' });
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [edge, peer(3, { name: 'laptop' })])));
  await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  const at = '2026-11-27T12:00:00.000Z';
  const paths = addRecord(addRecord({}, 2, relayedSince(at)), 3, relayedSince(at));
  await simulated.tools.store.amendNotes('cpn0', { paths });
  const [status] = await readStatus(simulated.tools);
  if (status === undefined) throw new Error('there is no status');
  expect(statusToJson(status).peers).toMatchObject([
    { name: 'edge-1', state: 'never', path: 'direct', latest_handshake: null },
    { name: 'laptop', state: 'relayed', path: 'relayed', via: 'edge-1', since: at, latest_handshake: null },
  ]);
  for (const field of ['via', 'since']) expect(statusToJson(status).peers[0]).not.toHaveProperty(field);
  expect(statusToText(status, simulated.tools.now())).toMatch(/laptop +\S+ +10\.77\.0\.3 +relayed +- +via edge-1 /);
});

it('the status has the relay that this host uses, and the one that the control plane names', async () => {
  const edges = [2, 5].map((id) => peer(id, { type: 'connector', endpoint: dialled(id), name: `edge-${id}` }));
  const relayOf = async (changes: Partial<NetworkMap>, failed: readonly PeerFailure[] = []) => {
    const map = mapAt('"1"', [...edges, peer(3)], changes);
    const simulated = await SimulatedHost.with(joinedTo(map, { failed }));
    await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
    const statuses = await readStatus(simulated.tools);
    return statuses.map(statusToJson)[0]?.relay;
  };
  expect(await relayOf({})).toEqual({ peer: 'edge-2', named: null });
  expect(await relayOf({ relay: 5 })).toEqual({ peer: 'edge-5', named: 'edge-5' });
  const failed = [{ peer: 5, back: false }];
  expect(await relayOf({ relay: 5 }, failed)).toEqual({ peer: 'edge-2', named: 'edge-5' });
  expect(await relayOf({ peers: [peer(1, { endpoint: dialled(1) }), ...edges] })).toBeUndefined();
});

it('a peer has never been reached where the network is down, or no connector relays', async () => {
  const edge = peer(2, { type: 'connector', endpoint: dialled(2) });
  for (const [map, enabled] of [
    [mapAt('"1"', [edge, peer(3)]), false],
    [mapAt('"1"', [peer(2, { endpoint: dialled(2) }), peer(3)]), true],
  ] as const) {
    const simulated = await SimulatedHost.with(joinedTo(map, { enabled }));
    if (enabled) await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
    const [status] = await readStatus(simulated.tools);
    expect(status?.peers.map(({ state }) => state)).toEqual(['never', 'never']);
  }
});
