import type { Peer } from '../../../src/contract/peer.ts';

const at = '2030-01-01T00:00:00.000Z';
const [lan, other] = ['192.168.50.0/24', '192.168.51.0/24'];

const peer = (id: number, fields: Partial<Peer> = {}): Peer => ({
  ...{ id, name: `peer-${id}`, peer_type: 'connector', address: `10.77.0.${id}`, public_key: 'x', endpoint: null },
  created_at: at,
  ...fields,
});
/** A device that dials a connector and no other peer. */
const device = (id: number, connector: number, fields: Partial<Peer> = {}): Peer => {
  const profile = { connector, public_key: 'x', endpoint: '203.0.113.1:51820', routes: [], declined: [] };
  return peer(id, { peer_type: 'admin_device', via: 'connectors', profile, ...fields });
};

/** The routes of the network of each case. */
export const lossRoutes = [lan, other];

/** Peers that leave a network, and what stops working then. */
interface LossCase {
  readonly what: string;
  readonly peers: readonly Peer[];
  readonly leaving: readonly Peer[];
  readonly routes: readonly string[];
  readonly devices: readonly string[];
}

/** Each kind of connector next to each other kind. Command line and console both name these losses. */
export const lossCases: readonly LossCase[] = [
  lossCase('next to a connector of all routes', [peer(1), peer(2)], []),
  lossCase('next to a connector of all routes that has an endpoint', [peer(1), peer(2, { endpoint: 'x:1' })], []),
  lossCase('next to a connector of other routes', [peer(1), peer(2, { routes: [other] })], [lan]),
  lossCase('next to a connector of no routes', [peer(1), peer(2, { routes: [] })], [lan, other]),
  lossCase('next to a connector that withdrew a route', [peer(1), peer(2, { withdrawn: [lan] })], [lan]),
  lossCase('next to a suspended connector', [peer(1), peer(2, { suspended_at: at })], [lan, other]),
  lossCase(
    'next to a suspended connector of a route',
    [peer(1), peer(2, { routes: [lan], suspended_at: at })],
    lossRoutes,
  ),
  lossCase('next to an origin', [peer(1), peer(2, { peer_type: 'origin' })], [lan, other]),
  lossCase(
    'next to an origin that lists routes',
    [peer(1), peer(2, { peer_type: 'origin', routes: [lan] })],
    lossRoutes,
  ),
  lossCase('of one route next to nothing', [peer(1, { routes: [lan] })], [lan]),
  lossCase('of one route next to a connector of all', [peer(1, { routes: [lan] }), peer(2)], []),
  lossCase('of one route, withdrawn', [peer(1, { routes: [lan], withdrawn: [lan] })], []),
  lossCase('that is suspended, alone', [peer(1, { suspended_at: at })], []),
  lossCase('that is suspended, next to another', [peer(1, { suspended_at: at }), peer(2)], []),
  lossCase('that is no connector', [peer(1, { peer_type: 'origin' })], []),
  lossCase('that is out of the map, as a suspended one in the console', [peer(2), device(9, 1)], [], ['peer-9']),
  lossCase('with its device', [peer(1), peer(2), device(9, 1)], [], ['peer-9']),
  lossCase('with its devices, the only connector', [peer(1), device(8, 1), device(9, 1)], lossRoutes, [
    'peer-8',
    'peer-9',
  ]),
  lossCase('next to the device of another connector', [peer(1), peer(2), device(9, 2)], []),
  lossCase('together with its device', [peer(1), peer(2), device(9, 1)], [], [], [1, 9]),
  lossCase('together with the other connector', [peer(1), peer(2, { routes: [lan] })], lossRoutes, [], [1, 2]),
  lossCase('together with a suspended one', [peer(1), peer(2, { suspended_at: at })], lossRoutes, [], [1, 2]),
  lossCase(
    'with a suspended device, which may be resumed',
    [peer(1), peer(2), device(9, 1, { suspended_at: at })],
    [],
    ['peer-9'],
  ),
];

function lossCase(
  what: string,
  peers: readonly Peer[],
  routes: readonly string[],
  devices: readonly string[] = [],
  leaving: readonly number[] = [1],
): LossCase {
  // One that is not among the peers comes from a list of its own.
  return {
    what,
    peers,
    leaving: leaving.map((id) => peers.find((each) => each.id === id) ?? peer(id)),
    routes,
    devices,
  };
}
