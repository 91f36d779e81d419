import { expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { statusToJson, statusToText } from '../../../src/cli/output/show-status.ts';
import { dialled, peer } from '../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

it('a peer that a connector relays has no handshake, and its state names the connector', async () => {
  const edge = peer(2, { type: 'connector', endpoint: dialled(2), name: 'edge-1' });
  const desk = await Desk.with(joinedTo(mapAt('"1"', [edge, peer(3, { name: 'laptop' })])));
  await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  const [status] = await readStatus(desk.tools);
  if (status === undefined) throw new Error('there is no status');
  expect(statusToJson(status).peers).toMatchObject([
    { name: 'edge-1', state: 'never', latest_handshake: null },
    { name: 'laptop', state: 'relayed', via: 'edge-1', latest_handshake: null },
  ]);
  expect(statusToJson(status).peers[0]).not.toHaveProperty('via');
  expect(statusToText(status, desk.tools.now())).toMatch(/laptop +\S+ +10\.77\.0\.3 +relayed +- +via edge-1 /);
});

it('a peer has never been reached where the network is down, or no connector relays', async () => {
  const edge = peer(2, { type: 'connector', endpoint: dialled(2) });
  for (const [map, enabled] of [
    [mapAt('"1"', [edge, peer(3)]), false],
    [mapAt('"1"', [peer(2, { endpoint: dialled(2) }), peer(3)]), true],
  ] as const) {
    const desk = await Desk.with(joinedTo(map, { enabled }));
    if (enabled) await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
    const [status] = await readStatus(desk.tools);
    expect(status?.peers.map(({ state }) => state)).toEqual(['never', 'never']);
  }
});
