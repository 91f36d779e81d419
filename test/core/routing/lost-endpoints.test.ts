import { describe, expect, it } from 'vitest';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { address, desireFor, dialled, network, options, peer, prefix, underlay, usualConstraints } from '../samples.ts';

const route = prefix('192.168.50.0/24');
const dc = peer(1, { name: 'dc', type: 'connector', endpoint: dialled(1) });
const web = peer(2, { endpoint: dialled(2) });
const laptop = peer(3, { type: 'admin_device' });
/** A peer that says of itself that it is in the LAN behind `dc`. */
const liar = (endpoint = '192.168.50.99:51820') => peer(4, { endpoint: parseEndpoint(endpoint) });
const office = (...more: ReturnType<typeof peer>[]) => network([dc, web, laptop, liar(), ...more]);
const endpointOf = (desired: ReturnType<typeof desireFor>, number: number) =>
  desired.config.peers.find(({ publicKey }) => publicKey === peer(number).publicKey)?.endpoint;
const taken = [{ prefix: route, via: 'dc', state: 'taken', reason: null }];

describe('an endpoint in an advertised route', () => {
  it('loses, and not the route: the peer is met through the relay', () => {
    const desired = desireFor(laptop, office());
    expect(desired.report).toEqual(taken);
    expect([...desired.lostEndpoints]).toEqual([[4, '192.168.50.99:51820 lies in the route 192.168.50.0/24 of dc']]);
    expect(endpointOf(desired, 4)).toBeUndefined();
    expect(desired.config.peers[0]?.allowedIps).toContain('10.77.0.0/24');
  });

  it('leaves the peer to dial a host that can be dialled', () => {
    const desired = desireFor(web, office());
    expect(desired.report).toEqual(taken);
    expect(endpointOf(desired, 4)).toBeNull();
  });

  it('loses where a person lets the route through, and where it is a name', () => {
    const allowed = { ...usualConstraints, allowed: [route] };
    expect(desireFor(laptop, office(), {}, allowed)).toMatchObject({ report: taken });
    expect(desireFor(laptop, office(), {}, allowed).lostEndpoints.size).toBe(1);
    const named = network([dc, laptop, liar('liar.example:51820')]);
    const resolved = { 'liar.example': [address('192.168.50.99')] };
    expect([...desireFor(laptop, named, { resolved }).lostEndpoints]).toEqual([
      [4, 'liar.example:51820 (192.168.50.99) lies in the route 192.168.50.0/24 of dc'],
    ]);
    expect(desireFor(laptop, named).lostEndpoints.size).toBe(0);
  });

  it('is used by a host that does not take the route: in the LAN itself, serving it, or not wanting any', () => {
    const connected = [{ prefix: route, link: 'eth1' }];
    const inLan = { ...usualConstraints, underlay: { ...underlay, connected } };
    const unwanted = { options: { ...options, acceptRoutes: false } };
    for (const desired of [
      desireFor(laptop, office(), {}, inLan),
      desireFor(dc, office(), {}, inLan),
      desireFor(dc, office()),
      desireFor(laptop, office(), unwanted),
      desireFor(laptop, { ...office(), routes: [] }),
    ]) {
      expect(endpointOf(desired, 4)).toEqual({ host: '192.168.50.99', port: 51820 });
      expect(desired.lostEndpoints.size).toBe(0);
    }
  });

  it('leaves the route to a connector whose own endpoint is not known', () => {
    for (const unknown of [
      { ...dc, endpoint: parseEndpoint('dc.example:51820') },
      { ...dc, endpoint: null },
    ]) {
      const desired = desireFor(web, network([unknown, web, laptop, liar()]));
      expect(desired.report).toEqual(taken);
      expect([...desired.lostEndpoints.keys()]).toEqual([4]);
    }
  });

  it('in two routes is lost to the first of them', () => {
    const two = { ...office(), routes: [route, prefix('192.168.0.0/16')] };
    expect([...desireFor(laptop, two).lostEndpoints.values()]).toEqual([
      '192.168.50.99:51820 lies in the route 192.168.50.0/24 of dc',
    ]);
  });

  it('is not this host’s own', () => {
    const inside = { ...laptop, endpoint: parseEndpoint('192.168.50.7:51820') };
    expect([...desireFor(inside, network([dc, web, inside, liar()])).lostEndpoints.keys()]).toEqual([4]);
  });

  it('is used where no connector serves the route, and with a full tunnel', () => {
    for (const allowed of [[], [route]]) {
      expect(
        desireFor(laptop, network([web, laptop, liar()]), {}, { ...usualConstraints, allowed }).lostEndpoints.size,
      ).toBe(0);
    }
    const exit = { ...office(), routes: [prefix('0.0.0.0/0')] };
    expect(
      desireFor(laptop, exit, {}, { ...usualConstraints, allowed: [prefix('0.0.0.0/0')] }).lostEndpoints.size,
    ).toBe(0);
  });

  it('loses for a connector too, where another serves the route', () => {
    const second = peer(5, { name: 'dc-2', type: 'connector', endpoint: parseEndpoint('192.168.50.2:51820') });
    const desired = desireFor(laptop, office(second));
    expect(desired.report).toMatchObject([
      { via: 'dc', state: 'taken' },
      { via: 'dc-2', state: 'standby' },
    ]);
    expect([...desired.lostEndpoints.keys()]).toEqual([4, 5]);
    // An endpoint is no rank: the first in rank keeps the route, and is met through the relay.
    const first = desireFor(laptop, network([{ ...second, id: 0 }, dc, laptop]));
    expect(first.report[0]).toMatchObject({ via: 'dc-2', state: 'taken' });
    expect(first.config.peers).toMatchObject([
      { publicKey: dc.publicKey, allowedIps: ['10.77.0.0/24', expect.anything(), route] },
    ]);
  });
});

describe('a route in which all its connectors are reached', () => {
  const inside = { ...dc, endpoint: parseEndpoint('192.168.50.1:51820') };
  const tunnelled = { ...network([inside, laptop, web, liar()]), routes: [route, prefix('192.168.60.0/24')] };

  it('is refused alone: without its connector there would be no route, and no relay', () => {
    const desired = desireFor(laptop, tunnelled);
    expect(desired.report).toMatchObject([
      { prefix: route, state: 'refused', reason: 'covers the endpoint of dc, which serves it (192.168.50.1)' },
      { prefix: '192.168.60.0/24', via: 'dc', state: 'taken' },
    ]);
    expect(desired.lostEndpoints.size).toBe(0);
    expect(endpointOf(desired, 1)).toEqual({ host: '192.168.50.1', port: 51820 });
    expect(desired.config.peers[0]?.allowedIps).toEqual(['10.77.0.0/24', '10.77.0.1/32', '192.168.60.0/24']);
  });

  it('is taken if an operator allows it; other endpoints still lose', () => {
    const desired = desireFor(laptop, tunnelled, {}, { ...usualConstraints, allowed: [route] });
    expect(desired.report).toMatchObject([{ state: 'taken' }, { state: 'taken' }]);
    expect(endpointOf(desired, 1)).toEqual({ host: '192.168.50.1', port: 51820 });
    expect([...desired.lostEndpoints]).toEqual([[4, '192.168.50.99:51820 lies in the route 192.168.50.0/24 of dc']]);
  });

  it('is refused also if an allowed prefix contains it: only the same prefix allows a route', () => {
    const wider = { ...usualConstraints, allowed: [prefix('192.168.0.0/16')] };
    expect(desireFor(laptop, tunnelled, {}, wider).report[0]).toMatchObject({ prefix: route, state: 'refused' });
  });

  it('is taken if any of them may be elsewhere: one whose name has no address', () => {
    const second = peer(5, { name: 'dc-2', type: 'connector', endpoint: parseEndpoint('dc-2.example:51820') });
    const desired = desireFor(laptop, network([inside, laptop, web, second]));
    expect(desired.report[0]).toMatchObject({ prefix: route, state: 'taken' });
    expect([...desired.lostEndpoints]).toEqual([[1, '192.168.50.1:51820 lies in the route 192.168.50.0/24 of dc-2']]);
  });

  it('is refused also if another connector outside does not serve it', () => {
    const rest = { type: 'connector', endpoint: dialled(5), name: 'dc-2' } as const;
    for (const other of [
      peer(5, { ...rest, routes: [prefix('192.168.60.0/24')] }),
      peer(5, { ...rest, withdrawn: [route] }),
      peer(5, { ...rest, type: 'origin' }),
    ])
      expect(
        desireFor(laptop, { ...tunnelled, peers: [...tunnelled.peers, other] }).report[0],
        other.type,
      ).toMatchObject({
        prefix: route,
        state: 'refused',
      });
  });
});

describe('of the addresses of a name, the first stays first', () => {
  const [far, inLan, subnet] = ['198.51.100.7', '192.168.50.99', { prefix: route, link: 'eth1' }];
  const named = network([dc, web, laptop, peer(4, { endpoint: parseEndpoint('named.example:51820') })]);
  const firstOf = (
    first: string,
    { map = named, self = laptop, on = usualConstraints, changes = {} }: Partial<NamedCase> = {},
  ) => {
    const resolved = { 'named.example': [address(first), address(far)] };
    const desired = desireFor(self, map, { resolved, ...changes }, on);
    const isFirst = desired.resolved['named.example']?.[0] === first;
    expect(desired.avoided.has(address(first))).toBe(!isFirst);
    return isFirst;
  };
  interface NamedCase {
    readonly map: typeof named;
    readonly self: typeof laptop;
    readonly on: typeof usualConstraints;
    readonly changes: Parameters<typeof desireFor>[2];
  }
  const declining = { options: { ...options, acceptRoutes: false } };
  const withConnected = (...connected: (typeof subnet)[]) => ({
    ...usualConstraints,
    underlay: { ...underlay, connected },
  });

  it.each<[string, string, Partial<NamedCase>]>([
    ['outside', '198.51.100.9', {}],
    ['in a route that is not accepted', inLan, { changes: declining }],
    ['in a route that the guard refuses', inLan, { on: withConnected(subnet) }],
    ['in a route that this host serves', inLan, { self: dc }],
    [
      'in a narrower subnet of this host',
      inLan,
      { on: withConnected({ ...subnet, prefix: prefix('192.168.50.0/25') }) },
    ],
    ['in the default route', inLan, { map: { ...named, routes: [prefix('0.0.0.0/0')] }, on: allowing('0.0.0.0/0') }],
    ['in the range, which is refused', '10.77.0.200', { on: withConnected({ ...subnet, prefix: named.cidr }) }],
  ])('if it is %s', (_, first, given) => expect(firstOf(first, given)).toBe(true));

  it.each<[string, string, Partial<NamedCase>]>([
    ['in the range', '10.77.0.200', {}],
    ['that of a peer, and the range is unknown', '10.77.0.2', { map: { ...named, cidr: prefix('10.77.0.3/32') } }],
    ['in an accepted route', inLan, {}],
    ['in the second of the accepted routes', inLan, { map: { ...named, routes: [prefix('172.20.0.0/16'), route] } }],
    ['one at which no peer can listen', '0.0.0.0', {}],
    ['one to which no route leads outside', '198.51.100.9', { changes: { unreachable: [address('198.51.100.9')] } }],
  ])('but not if it is %s', (_, first, given) => expect(firstOf(first, given)).toBe(false));

  function allowing(text: string) {
    return { ...usualConstraints, allowed: [prefix(text)] };
  }
});

describe('an endpoint in the range of the network', () => {
  const loop = network([dc, web, laptop, liar('10.77.0.200:51820')]);

  it('loses, and not the range', () => {
    const desired = desireFor(laptop, loop);
    expect(desired.config.address.length).toBe(24);
    expect([...desired.lostEndpoints]).toEqual([[4, "10.77.0.200:51820 lies in the network's own range 10.77.0.0/24"]]);
    expect(endpointOf(desired, 4)).toBeUndefined();
    expect(desireFor(laptop, network([dc, laptop, liar('10.77.0.1:51820')])).lostEndpoints.size).toBe(1);
  });

  it('is used where the range cannot be taken, because the host is in that very LAN', () => {
    const connected = [{ prefix: prefix('10.77.0.0/24'), link: 'eth1' }];
    const desired = desireFor(laptop, loop, {}, { ...usualConstraints, underlay: { ...underlay, connected } });
    expect(endpointOf(desired, 4)).toEqual({ host: '10.77.0.200', port: 51820 });
    expect(desired.lostEndpoints.size).toBe(0);
  });
});

it('an endpoint that lost takes neither range nor route from a host that has the ready text of a tunnel', () => {
  const given = (...prefixes: string[]) => ({ allowedIps: prefixes.map(prefix), presharedKey: null, keepalive: null });
  const hub = peer(1, { name: 'hub', endpoint: dialled(1), given: given('10.77.0.0/24', '192.168.50.0/24') });
  const other = peer(4, { endpoint: parseEndpoint('192.168.50.99:51820'), given: given('10.77.0.4/32') });
  const desired = desireFor(laptop, network([hub, laptop, other]));
  expect(desired.report).toMatchObject([{ prefix: route, via: 'hub', state: 'taken' }]);
  expect(endpointOf(desired, 4)).toBeNull();
  const inside = { ...hub, endpoint: parseEndpoint('192.168.50.1:51820') };
  expect(desireFor(laptop, network([inside, laptop])).report).toMatchObject([{ prefix: route, state: 'refused' }]);
});
