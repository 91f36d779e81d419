import { expect, it } from 'vitest';
import { describeEvent, nameOf } from '../../../src/core/events/describe-event.ts';

type Event = Parameters<typeof describeEvent>[0];
const [edge, spare] = [
  { id: 1, name: 'edge' },
  { id: 2, name: 'spare' },
];

it.each<[type: string, details: Event['details'], text: string]>([
  ['peer.enrolled', {}, 'edge joined'],
  ['peer.removed', { reason: 'expired' }, 'edge left: expired'],
  ['peer.removed', { reason: '' }, 'edge left'],
  ['peer.online', { why: 'it reaches the control plane' }, 'edge is online: it reaches the control plane'],
  [
    'peer.offline',
    { why: 'not seen', only_connector_of: [edge, spare, { id: 3 }] },
    'edge is offline: not seen; it is the only connector of edge, spare, peer 3',
  ],
  ['peer.offline', { only_connector_of: [] }, 'edge is offline'],
  ['peer.cloned', { addresses: ['192.0.2.1', '192.0.2.2'] }, 'edge is on two hosts: 192.0.2.1 and 192.0.2.2'],
  ['peer.cloned', { addresses: '192.0.2.1' }, 'edge is on two hosts: 192.0.2.1'],
  ['peer.cloned', {}, 'edge is on two hosts'],
  ['route.failed_over', { from: edge, to: spare, why: 'x' }, '10.0.0.0/8 moved from edge to spare: x'],
  ['route.failed_over', { from: null, to: { id: 7 } }, '10.0.0.0/8 moved from no connector to peer 7'],
  ['route.dead', { from: edge, why: 'x' }, '10.0.0.0/8 is dead: x; edge served it'],
  ['route.dead', {}, '10.0.0.0/8 is dead'],
  ['route.restored', { to: spare }, '10.0.0.0/8 is served again by spare'],
  ['route.restored', { to: null }, '10.0.0.0/8 is served again'],
  ['relay.changed', { from: edge, to: spare, why: 'edge is offline' }, 'spare relays: edge is offline'],
  ['relay.changed', { from: edge, to: null, why: 'edge is drained' }, 'the network has no relay: edge is drained'],
  ['key.rotated', {}, 'edge has a new key'],
  ['pin.mismatch', { reported_by: spare }, 'spare refuses the changed key or address of edge'],
  ['pin.mismatch', {}, 'a host refuses the changed key or address of edge'],
  ['reconcile.failing', { problem: 'x' }, 'edge fails to reconcile: x'],
  ['reconcile.recovered', {}, 'edge reconciles again'],
  ['network.updated', { private_cidr: 1, name: 2 }, 'the network changed: private cidr, name'],
  ['network.updated', {}, 'the network changed'],
  ['network.deleted', {}, 'the network was deleted'],
  [
    'access.refused',
    { from: spare, to: edge, protocol: 'tcp', port: 22 },
    'edge refused a connection: spare → edge tcp 22',
  ],
  [
    'access.refused',
    { from: '192.168.50.7', to: { id: 7 }, protocol: 'udp', port: 53 },
    'edge refused a connection: 192.168.50.7 → peer 7 udp 53',
  ],
  ['access.refused', {}, 'edge refused a connection'],
  ['path.changed', { with: spare, path: 'direct' }, 'edge and spare have a direct path'],
  [
    'path.changed',
    { with: spare, path: 'relayed', via: { id: 7 }, why: 'lost' },
    'edge and spare are relayed by peer 7: one got no answer from the other',
  ],
  ['path.changed', { path: 'relayed', why: 'toString' }, 'edge and another peer are relayed'],
  ['later.type', {}, 'later.type edge 10.0.0.0/8'],
])('%s with %j is described', (type, details, text) => {
  expect(describeEvent({ type, peer: edge, route: '10.0.0.0/8', details } as Event)).toBe(text);
});

it('a peer of an event has its name, else its number', () => {
  expect(describeEvent({ type: 'peer.online', peer: null, route: null, details: {} })).toBe('a peer is online');
  expect([edge, { id: 3, name: null }, { id: 3, name: '' }, { name: 7 }, null, 'edge'].map(nameOf)).toEqual([
    'edge',
    'peer 3',
    'peer 3',
    null,
    null,
    null,
  ]);
});
