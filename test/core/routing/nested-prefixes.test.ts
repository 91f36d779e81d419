import { describe, expect, it } from 'vitest';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import {
  acceptedBy,
  isServerInside,
  isSessionInside,
  type TunnelPrefixes,
} from '../../../src/core/routing/nested-prefixes.ts';
import { findOuterResolvers, findTunnelledResolvers } from '../../../src/core/routing/tunnelled-resolvers.ts';
import { address, desireFor, dialled, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';

const lan = prefix('192.168.50.0/24');
const server = address('192.168.50.53');
const usual = usualConstraints.tunnelPrefixes;
const { range, own } = usual;
const host: Underlay = { ...underlay, connected: [], routed: [], resolvers: [server] };

describe('a server', () => {
  const isInside = (known: Partial<TunnelPrefixes>, to = server, around = host) =>
    isServerInside(to, { ...usual, ...known }, around, false);

  it.each<[string, Partial<TunnelPrefixes>, boolean]>([
    ['nothing', {}, false],
    ['a route that is present', { present: [lan] }, true],
    ['a route of the last file', { accepted: [lan] }, true],
    ['a route that led to it', { tunnelled: [{ address: server, route: lan }] }, true],
    ['a route that led to another', { tunnelled: [{ address: address('192.168.50.54'), route: lan }] }, false],
    ['a route while it was kept outside', { present: [lan], accepted: [lan], outside: [server] }, false],
    ['a route while another was kept outside', { present: [lan], outside: [address('192.168.50.54')] }, true],
  ])('is behind the tunnel by %s', (_, known, inside) => expect(isInside(known)).toBe(inside));

  it('is not behind the tunnel where the host has a route that is as narrow', () => {
    for (const past of [lan, prefix('192.168.50.53/32')]) {
      const link = { prefix: past, link: 'eth1' };
      expect(isInside({ present: [lan] }, server, { ...host, connected: [link] })).toBe(false);
      expect(isInside({ present: [lan] }, server, { ...host, routed: [link] })).toBe(false);
    }
    const wider = { prefix: prefix('192.168.0.0/16'), link: 'eth1' };
    expect(isInside({ present: [lan] }, server, { ...host, routed: [wider] })).toBe(true);
  });
});

describe('an SSH session', () => {
  const session = (from: string, to: string | null) => ({
    address: address(from),
    local: to === null ? null : address(to),
  });
  const addresses = [address('203.0.113.22'), address('10.77.0.9')];
  const isInside = (from: string, to: string | null, known: Partial<TunnelPrefixes> = {}, takesRange = true) =>
    isSessionInside(session(from, to), { ...usual, ...known }, { ...host, addresses }, takesRange);

  it('to the own address in the network is inside, wherever it comes from', () => {
    for (const from of ['10.77.0.1', '192.168.50.7', '198.51.100.7'])
      for (const outside of [[], [address(from)]]) expect(isInside(from, own, { outside }, false)).toBe(true);
  });

  it('to an address in the range is inside only where the host does not have it', () => {
    expect([isInside('198.51.100.7', '10.77.0.8'), isInside('198.51.100.7', '10.77.0.9')]).toEqual([true, false]);
  });

  it('from the range is inside where the tunnel takes the range, and the last file did', () => {
    const known = { accepted: [range] };
    expect(isInside('10.77.0.1', '203.0.113.22', known)).toBe(true);
    expect(isInside('10.77.0.1', '203.0.113.22', known, false)).toBe(false);
    expect(isInside('10.77.0.1', '203.0.113.22')).toBe(false);
    expect(isInside('10.77.0.1', null, known)).toBe(true);
  });

  it('from a route is inside by the routes that are present alone', () => {
    expect(isInside('192.168.50.7', '203.0.113.22', { present: [lan] })).toBe(true);
    expect(isInside('192.168.50.7', '203.0.113.22', { accepted: [lan] })).toBe(false);
    expect(isInside('192.168.50.7', '203.0.113.22', { present: [lan], outside: [address('192.168.50.7')] })).toBe(
      false,
    );
  });
});

it('a file leads its range, and the allowed IPs beyond it, into the tunnel', () => {
  const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
  const { config } = desireFor(peer(3), network([connector, peer(3), peer(2, { endpoint: dialled(2) })]));
  expect(acceptedBy(config)).toEqual([range, lan]);
});

describe('the resolvers behind the tunnel', () => {
  it('have the narrowest of the routes that lead to them', () => {
    const narrow = prefix('192.168.50.32/27');
    for (const present of [
      [lan, narrow],
      [narrow, lan],
    ])
      expect(findTunnelledResolvers(host, [], { ...usual, present })).toEqual([{ address: server, route: narrow }]);
  });

  it('are none in the range, and none that are kept outside', () => {
    const inRange = { ...host, resolvers: [address('10.77.0.1')] };
    expect(findTunnelledResolvers(inRange, [], { ...usual, present: [range] })).toEqual([]);
    const known = { ...usual, present: [lan], tunnelled: [{ address: server, route: lan }], outside: [server] };
    expect(findTunnelledResolvers(host, [], known)).toEqual([]);
  });

  it('are kept while a route is missing, as long as the host names them', () => {
    const known = { ...usual, tunnelled: [{ address: server, route: lan }] };
    expect(findTunnelledResolvers(host, [], known)).toEqual(known.tunnelled);
    const other = { ...host, resolvers: [address('198.51.100.53')] };
    expect(findTunnelledResolvers(other, [], known)).toEqual([]);
    expect(findTunnelledResolvers(other, [server], known)).toEqual(known.tunnelled);
    // During boot no resolver is known yet.
    expect(findTunnelledResolvers({ ...host, resolvers: [] }, [], known)).toEqual(known.tunnelled);
  });
});

describe('the resolvers behind the tunnel, with local ones,', () => {
  const stub = { address: address('127.0.0.53'), isListening: true, program: null, stated: [], observed: [] };
  const known = { ...usual, present: [lan] };
  const find = (...stubs: { readonly isStated: boolean; readonly tunnelled: (typeof server)[] }[]) =>
    findTunnelledResolvers(
      { ...host, resolvers: [stub.address], stubs: stubs.map((each) => ({ ...stub, ...each })) },
      [],
      known,
    ).map((each) => each.address);

  it('are those of their sockets in the tunnel, unless their settings name all', () => {
    expect(find({ isStated: false, tunnelled: [server] })).toEqual([server]);
    expect(find({ isStated: true, tunnelled: [server] })).toEqual([]);
    expect(find({ isStated: true, tunnelled: [] }, { isStated: false, tunnelled: [server] })).toEqual([server]);
  });

  it('are at most 64, the ones known before first', () => {
    const many = Array.from({ length: 80 }, (_, at) => address(`192.168.50.${at + 10}`));
    const all = find({ isStated: false, tunnelled: many });
    expect(all).toEqual(many.slice(0, 64));
    const later = findTunnelledResolvers(
      { ...host, resolvers: [], stubs: [{ ...stub, isStated: false, tunnelled: many }] },
      [],
      { ...known, tunnelled: [{ address: address('192.168.50.99'), route: lan }] },
    ).map((each) => each.address);
    expect(later).toHaveLength(64);
    expect(later).toContain('192.168.50.99');
  });

  it('are no longer those that are kept outside meanwhile, also while no resolver is known', () => {
    const tunnelled = [{ address: server, route: lan }];
    expect(findTunnelledResolvers({ ...host, resolvers: [] }, [], { ...known, tunnelled, outside: [server] })).toEqual(
      [],
    );
  });
});

it.each([
  ['no route', [], [], true],
  ['a route to it', ['192.168.50.0/24'], [], false],
  ['a route to it that leaves it out', ['192.168.50.0/24'], [server], true],
  ['a default route', ['0.0.0.0/0'], [], true],
  ['halves of it', ['0.0.0.0/1', '128.0.0.0/1'], [], true],
  ['a default route and a route to it', ['0.0.0.0/0', '192.168.50.0/24'], [], false],
])('a resolver is outside with %s', (_, routes, kept, isOutside) => {
  const keptOutside = kept.map((each) => ({ address: each, what: 'a resolver' }));
  expect(findOuterResolvers(host, routes.map(prefix), keptOutside)).toEqual(isOutside ? [server] : []);
});
