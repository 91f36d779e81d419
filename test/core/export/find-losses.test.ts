import { expect, it } from 'vitest';
import { findLosses, type ServingPeer } from '../../../src/core/export/find-losses.ts';

const [lan, other] = ['192.168.50.0/24', '192.168.51.0/24'];
const peer = (id: number, fields: Partial<ServingPeer> = {}): ServingPeer => ({
  ...{ id, name: `peer-${id}`, peer_type: 'connector', public_key: 'x', endpoint: null },
  ...fields,
});
const profile = { connector: 1, public_key: 'x', endpoint: 'x', routes: [], declined: [] };
const phone = peer(9, { peer_type: 'admin_device', profile });
const lossesOf = (peers: readonly ServingPeer[], leaving = peers.filter(({ id }) => id === 1)) => {
  const { routes, devices } = findLosses({ routes: [lan, other], peers }, leaving);
  return [routes, devices.map(({ id }) => id)];
};

it('the last connector of a route is missed, and each that serves it is another one', () => {
  expect(lossesOf([peer(1), peer(2)])).toEqual([[], []]);
  expect(lossesOf([peer(1), peer(2, { routes: [other] })])).toEqual([[lan], []]);
  expect(lossesOf([peer(1), peer(2, { withdrawn: [lan] })])).toEqual([[lan], []]);
  expect(lossesOf([peer(1), peer(2, { peer_type: 'origin' })])).toEqual([[lan, other], []]);
  expect(lossesOf([peer(1), peer(2, { suspended_at: '2026-01-01T00:00:00.000Z' })])).toEqual([[lan, other], []]);
});

it('a route that nothing serves is not lost with a connector of others', () => {
  expect(lossesOf([peer(1, { routes: [lan] })])).toEqual([[lan], []]);
  expect(lossesOf([peer(1, { peer_type: 'origin' })])).toEqual([[], []]);
});

it('devices whose profile dials a connector are lost with it, whatever else serves', () => {
  expect(lossesOf([peer(1), peer(2), phone])).toEqual([[], [9]]);
  expect(lossesOf([peer(1), peer(2), phone], [peer(2)])).toEqual([[], []]);
  expect(lossesOf([peer(1), peer(2), phone], [peer(1), phone])).toEqual([[], []]);
});
