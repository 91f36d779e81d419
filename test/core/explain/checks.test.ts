import { describe, expect, it } from 'vitest';
import { type Check, findStop } from '../../../src/core/explain/check.ts';
import { checkAnswers } from '../../../src/core/explain/check-reverse-path.ts';
import { checkForeign } from '../../../src/core/explain/check-route.ts';
import type { NetworkOnHost } from '../../../src/core/explain/view.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import type { KernelRoute } from '../../../src/core/host-state/kernel-route.ts';
import type { Rule } from '../../../src/core/host-state/policy-rule.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Prefix } from '../../../src/core/net/cidr.ts';
import { problem } from '../../../src/core/problems/problem.ts';
import { tunnelRule } from '../../../src/core/routing/tunnel-rules.ts';
import { address, desireFor, dialled, keyPair, network, peer, prefix } from '../samples.ts';
import { away, check, connector, explain, heard, into, now, office, viewOf, withFilter } from './samples.ts';

describe('the route', () => {
  const stop = (to: string, view: NetworkOnHost, there: KernelRoute) => findStop(explain(to, view, there));

  it('stops a packet that a narrower route, a rule, a refusal or an own address draws away', () => {
    const view = viewOf(office);
    const ruled = {
      ...view,
      actual: { ...view.actual, rules: [{ ...tunnelRule, priority: 100, not: false, fwmark: null, table: '100' }] },
    };
    const found: [Check | null, RegExp, RegExp][] = [
      [
        stop('192.168.50.200', view, away('192.168.50.128/25')),
        /by eth0 .*not into cpn0$/,
        /the route to 192\.168\.50\.128\/25 by eth0/,
      ],
      // Where the system does not tell by which route.
      [
        stop('192.168.50.200', view, away('0.0.0.0/0', { prefix: null })),
        /^leaves by eth0[^,]*, not into cpn0$/,
        /cpn up/,
      ],
      [stop('192.168.50.200', view, away('0.0.0.0/0')), /the route to 192\.168\.50\.0\/24 is gone$/, /cpn reconcile/],
      [
        stop('10.77.0.1', ruled, away('0.0.0.0/0', { table: '100' })),
        /policy rule "100: from all lookup 100" leads there$/,
        /remove that rule/,
      ],
      [stop('10.77.0.1', view, { link: null, why: 'blackhole' }), /^a blackhole route or rule/, /remove/],
      [stop('10.77.0.1', view, { link: null, why: 'none' }), /no route there$/, /cpn reconcile/],
      [
        stop('10.77.0.1', view, away('10.77.0.1/32', { local: true, table: '255' })),
        /has that address$/,
        /remove the address/,
      ],
      [
        stop('10.77.0.1', view, into('10.77.0.0/24', { source: address('203.0.113.22') })),
        /instead of 10\.77\.0\.3/,
        /cpn reconcile/,
      ],
    ];
    for (const [at, detail, remedy] of found)
      expect(at).toMatchObject({
        check: 'route',
        detail: expect.stringMatching(detail),
        remedy: expect.stringMatching(remedy),
      });
  });

  it('names a policy rule only where it leads this packet there, and is not ours', () => {
    const view = viewOf(office);
    const leading: Rule = { ...tunnelRule, priority: 100, not: false, fwmark: null, table: '100' };
    const detail = (rules: readonly Rule[], { desired } = view) =>
      stop('10.77.0.1', { ...view, desired, actual: { ...view.actual, rules } }, away('0.0.0.0/0', { table: '100' }))
        ?.detail;
    for (const to of [null, prefix('10.77.0.0/16')])
      expect(detail([{ ...leading, to }])).toContain('policy rule "100: ');
    for (const other of [
      { table: '101' },
      { suppress: 0 },
      { from: prefix('10.0.0.0/8') },
      { to: prefix('192.168.0.0/16') },
    ])
      expect(detail([{ ...leading, ...other }])).not.toContain('policy rule');
    expect(detail([leading], { ...view, desired: { ...view.desired, rules: [leading] } })).not.toContain('policy rule');
  });

  it('may have no source of its own, and does not matter for what this host serves or took out of service', () => {
    const view = viewOf(office);
    expect(stop('10.77.0.1', view, into('10.77.0.0/24', { source: null }))?.check).not.toBe('route');
    const edge = { ...connector, withdrawn: [prefix('192.168.50.0/24')] };
    const drained = viewOf(network([edge, peer(3)]), {}, {}, {}, edge);
    expect(check(explain('192.168.50.9', drained, away('192.168.50.0/24', { link: 'eth1' })), 'route')?.ok).toBe(true);
    expect(stop('192.168.50.9', drained, { link: null, why: 'none' })?.remedy).toMatch(/a route to its LAN$/);
    expect(stop('192.168.50.9', drained, { link: null, why: 'prohibit' })?.remedy).toMatch(/the one to the LAN$/);
  });

  it('stops where this connector has an outdated map, or the peer has expired', () => {
    const route = away('192.168.50.0/24', { link: 'eth1' });
    const outdated = problem('map-expired', { interface: 'cpn0', confirmed_at: '2030-01-01T00:00:00.000Z' });
    const edge = viewOf(network([connector, peer(3)]), { outdated }, {}, {}, connector);
    expect(stop('192.168.50.9', edge, route)).toMatchObject({ check: 'firewall', detail: outdated.text });
    const map = network([connector, peer(3), { ...peer(4, { name: 'laptop' }), expiresAt: 1_800_000_000_000 }]);
    expect(stop('10.77.0.4', viewOf(map, { expired: [4] }), away('0.0.0.0/0'))).toMatchObject({
      detail: expect.stringMatching(/laptop.*; it expired on 2027-01-15T08:00:00\.000Z$/),
      remedy: expect.stringMatching(/cpn peer update \S+ 4 --expires 90d$/),
    });
  });

  it('of another table is no reason to take away a route that is as narrow as ours', () => {
    const remedy = (table: string) => stop('10.77.0.1', viewOf(office), away('10.77.0.0/28', { table }))?.remedy;
    expect(remedy('main')).toMatch(/^remove the route to 10\.77\.0\.0\/28/);
    expect(remedy('100')).toMatch(/cpn reconcile/);
  });

  it('stops where the interface is missing, is down or has no address', () => {
    const view = viewOf(office);
    const { link } = view.actual;
    const gone = { ...view, actual: { ...view.actual, link: null, device: null } };
    const down = { ...view, actual: { ...view.actual, link: link && { ...link, up: false } } };
    const naked = { ...view, actual: { ...view.actual, link: link && { ...link, addresses: [] } } };
    expect(stop('10.77.0.1', gone, away('0.0.0.0/0'))?.detail).toMatch(
      /^the interface cpn0 is missing: the packet leaves by eth0/,
    );
    expect(stop('10.77.0.1', down, away('0.0.0.0/0'))?.detail).toMatch(/^cpn0 is down/);
    expect(stop('10.77.0.3', naked, away('0.0.0.0/0'))?.detail).toMatch(/^cpn0 does not have the address 10\.77\.0\.3/);
  });
});

describe('WireGuard', () => {
  const kernelRoute = into('10.77.0.0/24');
  const owning = (number: number, allowedIps: readonly Prefix[]): NetworkOnHost => {
    const view = viewOf(office);
    const { device } = view.actual;
    const peers = device?.peers.map((each) =>
      each.publicKey === keyPair(number).publicKey ? { ...each, allowedIps } : each,
    );
    return { ...view, actual: { ...view.actual, device: device && { ...device, peers: peers ?? [] } } };
  };

  it('stops an address that no peer owns, or that the wrong peer owns', () => {
    expect(check(explain('192.168.50.9', owning(1, []), kernelRoute), 'allowed_ips')).toMatchObject({
      ok: false,
      detail: 'no peer of cpn0 has it among its allowed IPs; it should be edge-1',
    });
    expect(
      check(
        explain('10.77.0.1', owning(2, [prefix('10.77.0.1/32'), prefix('10.77.0.2/32')]), kernelRoute),
        'allowed_ips',
      )?.ok,
    ).toBe(true);
    expect(
      check(explain('192.168.50.9', owning(2, [prefix('192.168.50.0/25')]), kernelRoute), 'allowed_ips'),
    ).toMatchObject({
      ok: false,
      detail: '192.168.50.0/25 belongs to edge-2; it should be edge-1',
    });
  });

  it.each<[string, Partial<ActualPeer>, Partial<NetworkOnHost>, boolean | null, RegExp]>([
    [
      'was idle',
      { latestHandshake: now - 900, keepalive: null },
      {},
      null,
      /last handshake 15 min ago, at 203.*starts a new one$/,
    ],
    ['does not renew', { latestHandshake: now - 900, keepalive: 25 }, {}, false, /and it does not answer$/],
    ['is noted as silent', {}, { silent: { [connector.publicKey]: 500 } }, false, /and it does not answer$/],
    ['was seen to fail', {}, { failed: [1] }, false, /and it does not answer$/],
    [
      'never answered',
      { latestHandshake: null, rxBytes: 0, txBytes: 296 },
      {},
      false,
      /never a handshake, at 203\.0\.113\.11:51820, 296 bytes sent$/,
    ],
    ['was never asked', { latestHandshake: null, rxBytes: 0, txBytes: 0 }, {}, null, /nothing was sent yet$/],
    [
      'cannot be asked',
      { latestHandshake: null, rxBytes: 0, txBytes: 0, endpoint: null },
      {},
      false,
      /no endpoint is known$/,
    ],
  ])('reports a peer that %s', (_, observed, changes, ok, detail) => {
    const view = viewOf(office);
    const checks = explain('10.77.0.1', { ...view, actual: heard(view.actual, observed), ...changes }, kernelRoute);
    expect(check(checks, 'handshake')).toMatchObject({ ok, detail: expect.stringMatching(detail) });
  });

  it('cannot send to a peer at whose endpoint no route leads, or one that leads back into the tunnel', () => {
    const view = viewOf(office);
    const outer = (outer: KernelRoute | null, observed: Partial<ActualPeer> = {}) =>
      explain('10.77.0.1', { ...view, actual: heard(view.actual, observed) }, kernelRoute, { outer });
    const checks = outer({ link: null, why: 'none' });
    expect(findStop(checks)).toEqual({
      check: 'endpoint',
      ok: false,
      detail: 'edge-1 at 203.0.113.11:51820: this host has no route there',
      remedy: 'give this host a route to 203.0.113.11',
    });
    expect(findStop(outer({ link: null, why: 'blackhole' }))?.detail).toMatch(/a blackhole route or rule/);
    expect(findStop(outer(into('0.0.0.0/0')))).toMatchObject({
      check: 'endpoint',
      detail: expect.stringMatching(/by the default route .*, back into the tunnel$/),
    });
    expect(check(outer(away('0.0.0.0/0')), 'endpoint')).toMatchObject({
      ok: true,
      detail: expect.stringMatching(/^edge-1 at 203\.0\.113\.11:51820: leaves by eth0 /),
    });
    // An address of this host: the packet leaves by no interface.
    expect(check(outer(into('203.0.113.11/32', { local: true })), 'endpoint')?.ok).toBe(true);
    expect(check(outer(null), 'endpoint')).toBeUndefined();
    expect(check(outer(away('0.0.0.0/0'), { endpoint: null }), 'endpoint')).toBeUndefined();
  });

  it('reports a network secret on one side only, which stops every handshake, unless a session still lives', () => {
    const tagged = network(office.peers.map((each) => ({ ...each, secretTag: '00112233445566ff' })));
    const handshake = (map: NetworkMap, observed: Partial<ActualPeer>, secretTag: string | null) => {
      const view = { ...viewOf(map), secretTag };
      const checks = explain('10.77.0.1', { ...view, actual: heard(view.actual, observed) }, kernelRoute);
      return check(checks, 'handshake');
    };
    const silence = { latestHandshake: null, rxBytes: 0, txBytes: 148 };
    for (const seen of [silence, { latestHandshake: now - 900, keepalive: null }])
      expect(handshake(tagged, seen, null)).toMatchObject({
        ok: false,
        detail: expect.stringMatching(/edge-1 has a network secret and this host has none: no handshake succeeds$/),
        remedy: expect.stringMatching(/^on this host, type: cpn set cpn0 --network-secret-file PATH/),
      });
    expect(handshake(tagged, {}, null)?.ok).toBe(true);
    expect(handshake(tagged, silence, '00112233445566ff')?.remedy).toMatch(/UDP to 203\.0\.113\.11/);
    expect(handshake(office, { ...silence, rxBytes: 148 }, null)?.detail).toMatch(/and none was completed/);
  });

  it('fits its packets into the underlay’s MTU, or reports it as unknown', () => {
    const view = viewOf(office);
    const over = (underlayMtu: number | null, host: string, mtu?: number) => {
      const actual = heard(view.actual, { endpoint: { host: address(host), port: 51820 } });
      const lan = mtu && {
        connected: [{ prefix: prefix('203.0.113.0/24'), link: 'eth0' }],
        links: [{ name: 'eth0', kind: 'card' as const, mtu }],
      };
      const around = { ...actual, underlay: { ...actual.underlay, connected: [], underlayMtu, ...lan } };
      return check(explain('10.77.0.1', { ...view, actual: around }, kernelRoute), 'mtu')?.ok;
    };
    expect(over(1480, '203.0.113.11')).toBe(true);
    expect(over(1479, '203.0.113.11')).toBeNull();
    expect(over(1480, '2001:db8::11')).toBeNull();
    expect(over(1500, '2001:db8::11')).toBe(true);
    expect(over(null, '203.0.113.11')).toBeNull();
    // Without a default route, by that of the link in whose subnet the endpoint is.
    expect(over(null, '203.0.113.11', 1480)).toBe(true);
    expect(over(null, '203.0.113.11', 1479)).toBeNull();
    expect(over(null, '198.51.100.11', 1480)).toBeNull();
    const pathMtu = { mtu: 1420, peer: 1, underlay: '', measuredAt: '2026-11-22T12:00:00.000Z' };
    const limited = { ...view, desired: { ...view.desired, pathMtu }, actual: heard(view.actual, {}) };
    expect(check(explain('10.77.0.1', limited, kernelRoute), 'mtu')?.detail).toMatch(
      /^packets up to 1420 bytes, measured to \S+ on 2026-11-22/,
    );
  });
});

describe('the reverse path filter', () => {
  const filtered = (all: string, own: string, back: KernelRoute | null) => {
    const view = viewOf(office);
    const seen = { ...view, actual: withFilter(view.actual, all, own) };
    return check(explain('10.77.0.1', seen, into('10.77.0.0/24'), { back }), 'rp_filter');
  };

  it('is the larger of two keys', () => {
    const elsewhere = away('0.0.0.0/0', { table: '100' });
    expect(filtered('1', '0', elsewhere)).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^strict, and drops replies .* the return path leaves by eth0/),
      remedy: expect.stringContaining('"sysctl -w net.ipv4.conf.cpn0.rp_filter=2"'),
    });
    expect(filtered('0', '1', elsewhere)?.ok).toBe(false);
    expect(filtered('1', '2', elsewhere)?.ok).toBe(true);
    expect(filtered('0', '0', elsewhere)?.ok).toBe(true);
    expect(filtered('1', '1', into('10.77.0.0/24'))?.ok).toBe(true);
  });

  it('drops in loose mode too if no route leads back', () => {
    expect(filtered('2', '0', { link: null, why: 'none' })?.ok).toBe(false);
    expect(filtered('1', '0', null)?.ok).toBeNull();
  });
});

it('a peer that dials a connector alone is relayed by it, and the check names it, also if it is silent or gone', () => {
  const second = peer(2, { type: 'connector', name: 'edge-2', endpoint: dialled(12) });
  const phone = peer(5, { name: 'phone', via: { connector: 2 } });
  const map = network([connector, second, peer(3), phone]);
  const detailOf = (view: NetworkOnHost) => check(explain('10.77.0.5', view, into('10.77.0.0/24')), 'network')?.detail;
  const what = 'phone (origin) of network office, relayed by';
  expect(detailOf(viewOf(map))).toBe(`${what} edge-2 with the relay's address, as it dials only edge-2`);
  const failed = { failed: [2] };
  expect(detailOf(viewOf(map, failed))).toBe(
    `${what} edge-2 with the relay's address, as it dials only edge-2, which does not answer this host`,
  );
  const unnamed = network([connector, peer(3), { ...phone, via: { connector: null } }]);
  expect(detailOf(viewOf(unnamed))).toBe(
    `${what} edge-1 with the relay's address, as it dials a connector that this host does not have`,
  );
  const gone = explain('10.77.0.5', viewOf(network([connector, peer(3), phone])), into('10.77.0.0/24'));
  expect(findStop(gone)).toMatchObject({
    check: 'network',
    detail: expect.stringContaining('the connector that it dials is not in the network, so it reaches no peer'),
    remedy: 'make a profile through another connector: cpn export 7 --new-peer NAME',
  });
  const others = { via: { connector: null } };
  const silent = network([peer(3), { ...phone, ...others }]);
  expect(check(explain('10.77.0.5', viewOf(silent), into('10.77.0.0/24')), 'network')).toMatchObject({
    ok: false,
    detail: expect.stringContaining('it dials only a connector, and this host reaches no connector that relays to it'),
  });
});

describe('the network', () => {
  const networkOf = (to: string, view: NetworkOnHost, there = into('10.77.0.0/24')) =>
    check(explain(to, view, there), 'network');
  const refused = { by: 'token', error: 'refused (401)' } as const;
  const lan = '192.168.50.9';

  it('stops a packet also while the service refuses this host the map', () => {
    expect(networkOf('10.77.0.99', viewOf(office, { refused }))).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/no peer has this address$/),
    });
  });

  it('carries packets to a peer that expires later', () => {
    const map = network([connector, peer(3), { ...peer(4), expiresAt: 1_900_000_000_000 }]);
    expect(networkOf('10.77.0.4', viewOf(map, { expired: [9] }))?.ok).toBe(true);
  });

  it('separates standbys from connectors that never answered', () => {
    const view = viewOf(office);
    const { device } = view.actual;
    const peers = (device?.peers ?? []).map((each) =>
      each.publicKey === keyPair(2).publicKey ? { ...each, latestHandshake: null } : each,
    );
    const seen = { ...view, actual: { ...view.actual, device: device && { ...device, peers } } };
    const by = 'behind 192.168.50.0/24 of network office, by edge-1 (active)';
    expect(networkOf(lan, seen)?.detail).toBe(`${by}; never answered: edge-2`);
    expect(networkOf(lan, { ...seen, failures: [{ peer: 2, back: true }] })?.detail).toBe(`${by}; standby: edge-2`);
  });

  it('names the relay by which an active connector without an endpoint is reached', () => {
    const hidden = { ...connector, endpoint: null };
    const relay = peer(2, { type: 'connector', name: 'edge-2', endpoint: dialled(12), routes: [] });
    expect(networkOf(lan, viewOf(network([hidden, relay, peer(3)])))?.detail).toMatch(
      /by edge-1 \(active\); reached through edge-2$/,
    );
  });

  it('reports the failure of the connector that a peer dials, and of no other', () => {
    const edge2 = peer(2, { type: 'connector', name: 'edge-2', endpoint: dialled(12) });
    const map = network([connector, edge2, peer(3), peer(5, { via: { connector: 2 } })]);
    expect(networkOf('10.77.0.5', viewOf(map, { failed: [1] }))?.detail).toMatch(/dials only edge-2$/);
  });

  it('is refused for a peer only if the range is, whatever route is', () => {
    // This connector serves a route, and does not relay.
    const edge = { ...connector, withdrawn: [prefix('10.77.0.0/24')] };
    const alone = network([edge, peer(3), peer(4)], { routes: [prefix('172.20.0.0/16')] });
    const taken = (text: string) => ({ taken: [{ prefix: prefix(text), by: 'network lab' }] });
    expect(networkOf('10.77.0.4', viewOf(alone, {}, taken('172.20.0.0/16')))?.detail).toMatch(
      /neither it nor this host has an endpoint, and no connector relays$/,
    );
    expect(networkOf('10.77.0.4', viewOf(alone, {}, taken('10.77.0.0/24')))?.detail).toMatch(
      /it is refused here: 10\.77\.0\.0\/24 overlaps 10\.77\.0\.0\/24 of network lab$/,
    );
  });
});

it('a peer is stale if it failed, and not because another did', () => {
  const view = viewOf(office, { failed: [2] });
  const handshake = (to: string) => check(explain(to, view, into('10.77.0.0/24')), 'handshake')?.ok;
  expect([handshake('10.77.0.1'), handshake('10.77.0.2')]).toEqual([true, false]);
});

it('a route that this connector serves is no path if the kernel does not forward to it', () => {
  const edge = viewOf(network([connector, peer(3)]), {}, {}, {}, connector);
  const forwarded = { [prefix('192.168.50.0/24')]: { links: [], why: 'a blackhole route refuses it' } };
  const seen = { ...edge, actual: { ...edge.actual, underlay: { ...edge.actual.underlay, forwarded } } };
  const routeOf = (view: NetworkOnHost) =>
    check(explain('192.168.50.9', view, away('192.168.50.0/24', { link: 'eth1' })), 'route');
  expect(routeOf(seen)).toEqual({
    check: 'route',
    ok: false,
    detail: 'packets from cpn0 are not forwarded: a blackhole route refuses it',
    remedy: 'give this connector a route to its LAN',
  });
  expect(routeOf(edge)?.ok).toBe(true);
});

describe('a route of another table', () => {
  it('into the tunnel is foreign only in the table that the kernel used', () => {
    const view = viewOf(office);
    const stray = {
      ...{ prefix: prefix('10.99.0.0/16'), table: '100', protocol: 'static', metric: 0 },
    };
    const views = [{ ...view, actual: { ...view.actual, routes: [...view.actual.routes, stray] } }];
    const found = (table: string) => checkForeign(views, into('10.99.0.0/16', { table, protocol: 'static' }));
    expect(found('100')).toMatchObject({
      ok: false,
      remedy: '"ip route del 10.99.0.0/16 dev cpn0 table 100" removes that route',
    });
    expect(found('101')).toBeNull();
    expect(checkForeign(views, into('10.99.0.0/16', { table: '100', local: true }))).toBeNull();
    expect(checkForeign(views, into('10.99.0.0/16', { table: '100', link: 'cpn1' }))).toBeNull();
  });

  it('takes the packets of an accepted route if it is in the main table, however wide it is', () => {
    const desired = desireFor(peer(3), office, { routeTable: '8350' });
    const view = { ...viewOf(office), desired };
    const remedy = (range: string, table = 'main') =>
      check(explain('192.168.50.9', view, away(range, { table })), 'route')?.remedy;
    expect(remedy('192.168.0.0/16')).toBe('remove the route to 192.168.0.0/16 by eth0, or narrow it');
    expect(remedy('0.0.0.0/0')).toMatch(/cpn reconcile/);
    expect(remedy('192.168.50.0/24', '8350')).toMatch(/^remove the route/);
  });
});

it('one of several answers that the full tunnel takes is enough for a remark', () => {
  const view = viewOf(office);
  const outside = away('0.0.0.0/0');
  const path = (from: string, route: KernelRoute) => ({ from: address(from), route, outside });
  const [found] = checkAnswers([path('203.0.113.22', outside), path('203.0.113.23', into('0.0.0.0/0'))], view);
  expect(found).toMatchObject({ check: 'answers', ok: null, remedy: expect.stringContaining('cpn doctor') });
  expect(found?.detail).toMatch(/^from 203\.0\.113\.22: leaves by eth0.*; from 203\.0\.113\.23: leaves by cpn0/);
});

it('the MTU toward an endpoint is that of the narrowest subnet with it', () => {
  const view = viewOf(office);
  const links = [
    { name: 'eth0', kind: 'card' as const, mtu: 1400 },
    { name: 'eth1', kind: 'card' as const, mtu: 1500 },
  ];
  const subnets = [
    { prefix: prefix('203.0.0.0/16'), link: 'eth0' },
    { prefix: prefix('203.0.113.0/24'), link: 'eth1' },
  ];
  for (const connected of [subnets, subnets.toReversed()]) {
    const underlay = { ...view.actual.underlay, connected, links, underlayMtu: null };
    const seen = { ...view, actual: { ...view.actual, underlay } };
    expect(check(explain('10.77.0.1', seen, into('10.77.0.0/24')), 'mtu')?.detail).toMatch(
      /they fit \(1420 \+ 60 ≤ 1500\)$/,
    );
  }
});
