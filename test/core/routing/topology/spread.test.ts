import { describe, expect, it } from 'vitest';
import type { Rule, Selector } from '../../../../src/core/map/access-rules.ts';
import type { NetworkMap, Peer, PeerFailure } from '../../../../src/core/map/model.ts';
import { judgeService } from '../../../../src/core/routing/topology/in-service.ts';
import { reachPeers } from '../../../../src/core/routing/topology/topology.ts';
import { dialled, network, peer, prefix } from '../../samples.ts';

const lan = prefix('192.168.50.0/24');
const hosts = Array.from({ length: 1000 }, (_, index) => peer(10 + (index % 200), { id: 1000 + index }));
const edge = (id: number, more: Partial<Peer> = {}) =>
  peer(id, { type: 'connector', endpoint: dialled(id), masquerades: true, servingSince: id, ...more });
const four = [edge(1), edge(2), edge(3), edge(4)];
const mapOf = (connectors: readonly Peer[], more: Partial<NetworkMap> = {}) =>
  network(connectors, { routes: [lan], spread: true, ...more });

/** The connector that each host uses. */
function choices(map: NetworkMap, failed: readonly PeerFailure[] = []): number[] {
  return hosts.map((self) => {
    const view = { map: { ...map, peers: [...map.peers, self] }, self, acceptRoutes: true, failed, takesRange: true };
    return reachPeers(view).routes[0]?.via?.id as number;
  });
}

function countsOf(chosen: readonly number[]): number[] {
  const counts = new Map<number, number>();
  for (const each of chosen) counts.set(each, (counts.get(each) ?? 0) + 1);
  return [...counts].toSorted(([one], [other]) => one - other).map(([, count]) => count);
}

describe('1,000 hosts over 4 equal connectors', () => {
  const before = choices(mapOf(four));

  it('are 250 of each, within 40', () => {
    expect(countsOf(before)).toHaveLength(4);
    for (const count of countsOf(before)) expect(Math.abs(count - 250)).toBeLessThanOrEqual(40);
  });

  it('stay where they are when one dies, but for its own, which spread over the others', () => {
    const after = choices(mapOf(four), [{ peer: 3, back: false }]);
    expect(after.filter((each, index) => each !== before[index] && before[index] !== 3)).toEqual([]);
    const moved = after.filter((_, index) => before[index] === 3);
    expect(new Set(moved)).toEqual(new Set([1, 2, 4]));
    // Until it is trusted again, it has no share.
    expect(choices(mapOf(four), [{ peer: 3, back: true }])).toEqual(after);
  });

  it('stay where they are when one joins, but for its share, which moves once', () => {
    const after = choices(mapOf([...four, edge(5)]));
    const moved = after.filter((each, index) => each !== before[index]);
    expect(new Set(moved)).toEqual(new Set([5]));
    expect(Math.abs(moved.length - 200)).toBeLessThanOrEqual(40);
  });

  it('choose the same in every version, by numbers and by texts', () => {
    expect(before.slice(0, 8)).toMatchInlineSnapshot(`
      [
        4,
        4,
        1,
        2,
        3,
        1,
        1,
        2,
      ]
    `);
    const self = peer(9, { id: 'laptop' });
    const map = mapOf([edge(1, { id: 'a' }), edge(2, { id: 'b' }), edge(3, { id: 'c' }), self]);
    const view = { map, self, acceptRoutes: true, failed: [], takesRange: true };
    expect(reachPeers(view).routes[0]?.via?.id).toMatchInlineSnapshot(`"c"`);
  });

  it('have the others as standbys, in the order in which they would take over', () => {
    const [self = edge(9)] = hosts;
    const view = { map: mapOf([...four, self]), self, acceptRoutes: true, takesRange: true };
    const [route] = reachPeers({ ...view, failed: [] }).routes;
    expect(route?.standby).toHaveLength(3);
    const [next] = reachPeers({ ...view, failed: [{ peer: route?.via?.id as number, back: false }] }).routes;
    expect(next?.via).toEqual(route?.standby[0]);
  });
});

it.each<[string, NetworkMap, readonly PeerFailure[]]>([
  ['the network does not spread', { ...network(four, { routes: [lan] }) }, []],
  [
    'one of the equals does not masquerade',
    mapOf([edge(1), edge(2), peer(3, { type: 'connector', endpoint: dialled(3) })]),
    [],
  ],
  ['one has a higher priority', mapOf([edge(1, { priority: 5 }), edge(2), edge(3)]), []],
  [
    'none is healthy',
    mapOf([edge(1), edge(2)]),
    [
      { peer: 1, back: false, heard: 2 },
      { peer: 2, back: false, heard: 1 },
    ],
  ],
])('all hosts use the first connector where %s', (_, map, failed) => {
  expect(new Set(choices(map, failed))).toEqual(new Set([1]));
});

it('a connector of lower priority gets no share', () => {
  expect(new Set(choices(mapOf([edge(1, { priority: 5 }), edge(2, { priority: 5 }), edge(3)])))).toEqual(
    new Set([1, 2]),
  );
});

describe('in a closed network', () => {
  const toPeer: Selector = { kind: 'peer', id: 1000 };
  const inLan: Selector = { kind: 'cidr', prefix: prefix('192.168.50.7/32') };
  const other: Selector = { kind: 'route', prefix: prefix('192.168.60.0/24') };
  const sharing = (from: Selector, to: Selector, route = lan) => {
    const rule: Rule = { name: 'one', from: [from], to: [to], protocol: 'any', ports: [] };
    return new Set(choices(mapOf(four, { routes: [route], rules: { rules: [rule], requiresEnforcement: false } })))
      .size;
  };

  it.each<[string, Selector, Selector]>([
    ['an address of the LAN', inLan, toPeer],
    ['the LAN and more', { kind: 'cidr', prefix: prefix('192.168.0.0/16') }, toPeer],
    ['any, and so the LAN,', { kind: 'any' }, toPeer],
    ['the LAN, into another LAN,', inLan, other],
  ])('all hosts use the first connector where %s may begin connections', (_, from, to) => {
    expect(sharing(from, to)).toBe(1);
  });

  it.each<[string, Selector, Selector]>([
    ['peers alone begin connections', toPeer, { kind: 'any' }],
    ['another LAN begins connections', other, toPeer],
    ['the LAN is allowed what does not leave it', { kind: 'any' }, inLan],
    ['the only destination is gone', inLan, { kind: 'gone', name: 'db' }],
  ])('they spread where %s', (_, from, to) => {
    expect(sharing(from, to)).toBe(4);
  });

  it('they spread over exits, behind which nothing begins connections', () => {
    expect(sharing({ kind: 'any' }, toPeer, prefix('0.0.0.0/0'))).toBe(4);
  });
});

it('the relay is the same for all hosts', () => {
  const laptop = peer(20, { id: 2000 });
  const relays = hosts.slice(0, 50).map((self) => {
    const map = mapOf([...four, self, laptop]);
    return reachPeers({ map, self, acceptRoutes: true, failed: [], takesRange: true }).relay?.id;
  });
  expect(new Set(relays)).toEqual(new Set([1]));
});

describe('of equal connectors in a network that spreads', () => {
  const judge = (self: Peer, failed: readonly PeerFailure[] = [], connectors: readonly Peer[] = four) =>
    judgeService({ map: mapOf(connectors), self, failed })(lan).is;

  it('each is in service', () => {
    expect(four.map((self) => judge(self))).toEqual(four.map(() => 'in service'));
  });

  it('one that recovers is not, and one of lower priority is not', () => {
    expect(judge(edge(2), [{ peer: 2, back: true }])).toBe('standby');
    const lower = edge(3, { priority: 0 });
    expect(judge(lower, [], [edge(1, { priority: 1 }), edge(2, { priority: 1 }), lower])).toBe('standby');
  });
});
