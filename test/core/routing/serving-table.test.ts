import { expect, it } from 'vitest';
import { findConnectors } from '../../../src/console/logic/peers/connectors.ts';
import type { Peer as ListedPeer } from '../../../src/contract/peer.ts';
import { findLosses } from '../../../src/core/export/find-losses.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { reachPeers } from '../../../src/core/routing/topology/topology.ts';
import { findUnserved, leavesRoute } from '../../../src/core/routing/topology/withdrawal.ts';
import { dialled, network, peer, prefix } from '../samples.ts';

const [lan, other, range] = ['192.168.50.0/24', '192.168.60.0/24', '10.77.0.0/24'].map((each) => prefix(each)) as [
  never,
  never,
  never,
];

/** What a connector may be limited to, and out of service for. */
const kinds: readonly (readonly [what: string, fields: Partial<Peer>, servesLan: boolean])[] = [
  ['all routes', {}, true],
  ['all routes but this one', { withdrawn: [lan] }, false],
  ['all routes, and not as a relay', { withdrawn: [range] }, true],
  ['both routes by name', { routes: [lan, other] }, true],
  ['this route alone', { routes: [lan] }, true],
  ['this route, which is withdrawn', { routes: [], withdrawn: [lan] }, false],
  ['the other route alone', { routes: [other] }, false],
  ['no route', { routes: [] }, false],
  ['no route, as it is no connector', { type: 'origin' }, false],
];
const places = [true, false].flatMap((first) => [true, false].map((second) => [first, second] as const));
const rows = kinds.flatMap(([one, first, firstServes]) =>
  kinds.flatMap(([two, second, secondServes]) =>
    places.map(([isFirstDialled, isSecondDialled]) => ({
      ...{ one, two, serving: [...(firstServes ? [2] : []), ...(secondServes ? [3] : [])] },
      peers: [
        peer(2, { type: 'connector', endpoint: isFirstDialled ? dialled(2) : null, ...first }),
        peer(3, { type: 'connector', endpoint: isSecondDialled ? dialled(3) : null, ...second }),
      ],
      where: `${isFirstDialled ? 'with' : 'without'} an endpoint, ${isSecondDialled ? 'with' : 'without'} one`,
    })),
  ),
);

/** As the API lists a peer. */
function toListed({ id, name, type, routes, withdrawn }: Peer): ListedPeer {
  const listed = { id: Number(id), name, peer_type: type, address: '10.77.0.9', public_key: 'x', endpoint: null };
  return {
    ...listed,
    created_at: '2030-01-01T00:00:00.000Z',
    ...(routes && { routes: [...routes] }),
    withdrawn: [...withdrawn],
  };
}

it.each([true, false])(
  'a host, dialled: %s, has a route by a connector that serves it, and all agree which do',
  (isDialled) => {
    const host = peer(1, { endpoint: isDialled ? dialled(1) : null });
    for (const { one, two, where, peers, serving } of rows) {
      const map = network([host, ...peers], { routes: [lan, other] });
      const what = `${one} next to ${two}, ${where}`;
      const listed = peers.map(toListed);
      expect([what, findConnectors(listed, lan).map(({ id }) => id)]).toEqual([what, serving]);

      const isDirect = ({ endpoint }: Peer) => isDialled || endpoint !== null;
      // With an endpoint of its own a host needs no relay.
      const relays = isDialled ? [] : peers.filter((each) => each.type === 'connector' && isDirect(each));
      const relay = relays.find(({ withdrawn }) => !withdrawn.includes(range)) ?? null;
      const ways = peers.filter((each) => serving.includes(Number(each.id)) && (isDirect(each) || relay !== null));
      const [via = null, ...standby] = ways;
      const hop = via === null || isDirect(via) ? via : relay;
      const { routes, reaches } = reachPeers({ map, self: host, acceptRoutes: true, failed: [], takesRange: true });
      const owner = routes.find((each) => each.prefix === lan);
      expect([what, owner?.via?.id, owner?.standby, owner?.hop?.id]).toEqual([what, via?.id, standby, hop?.id]);
      const carrying = reaches.filter(({ allowedIps }) => allowedIps.includes(lan)).map((each) => each.peer.id);
      expect([what, carrying]).toEqual([what, hop === null ? [] : [hop.id]]);

      for (const self of peers) {
        const others = serving.filter((id) => id !== self.id);
        const isLost = serving.includes(Number(self.id)) && others.length === 0;
        const lost = isLost ? [lan] : [];
        const losses = findLosses({ routes: [lan, other], peers: listed }, [{ id: Number(self.id) }]);
        expect([what, losses.routes.filter((route) => route === lan)]).toEqual([what, lost]);
        if (self.type !== 'connector') continue;
        const unserved = findUnserved(map, self, []).routes.filter((route) => route === lan);
        expect([what, unserved]).toEqual([what, lost]);
        const isBelow = others.some((id) => id > Number(self.id));
        const leaves = self.withdrawn.includes(lan) ? others.length > 0 : isBelow;
        expect([what, leavesRoute(map, self, lan)]).toEqual([what, leaves]);
      }
    }
  },
);
