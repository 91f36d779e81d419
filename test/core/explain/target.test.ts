import { describe, expect, it } from 'vitest';
import { findStop } from '../../../src/core/explain/check.ts';
import { findForwardPaths } from '../../../src/core/explain/check-firewall.ts';
import { explainOther } from '../../../src/core/explain/explain-path.ts';
import { findNetwork } from '../../../src/core/explain/find-target.ts';
import type { NetworkOnHost } from '../../../src/core/explain/view.ts';
import type { ForwardDrop } from '../../../src/core/forward/foreign/find-drops.ts';
import { firewallMarks } from '../../../src/core/forward/own-table.ts';
import type { KernelRoute } from '../../../src/core/host-state/kernel-route.ts';
import { problem } from '../../../src/core/problems/problem.ts';
import { tunnelRule } from '../../../src/core/routing/tunnel-rules.ts';
import { address, desireFor, dialled, network, peer, prefix } from '../samples.ts';
import { allPass, away, check, connector, explain, into, laptop, office, self, verdicts, viewOf } from './samples.ts';

const facts = { interface: 'cpn0', network: 'office', service: 'https://cp.example' };
const deleted = { ...facts, received_at: '2030-01-01T00:00:00.000Z', resumes: true };
const unlisted = { ...facts, peer: 3, has_other_key: false };

describe('the path to a peer', () => {
  it('passes every check on a healthy host', () => {
    const checks = explain('10.77.0.1', viewOf(office), into('10.77.0.0/24'));
    expect(verdicts(checks)).toEqual(allPass);
    expect(findStop(checks)).toBeNull();
    expect(checks.map(({ detail }) => detail)).toEqual([
      'edge-1 (connector) of network office, reached directly',
      'leaves by cpn0 from 10.77.0.3, by the route to 10.77.0.0/24 (made by cpn)',
      '10.77.0.1/32 belongs to edge-1',
      'off',
      'edge-1: last handshake 30 s ago, at 203.0.113.11:51820',
      'packets up to 1420 bytes; with encapsulation they fit (1420 + 60 ≤ 1500)',
    ]);
  });

  it('may lead through a relay, whose handshake then counts', () => {
    const checks = explain('10.77.0.4', viewOf(office), into('10.77.0.0/24'));
    expect(checks[0]?.detail).toBe(
      "laptop (origin) of network office, relayed by edge-1 with the relay's address, as neither it nor this host has an endpoint",
    );
    expect(check(checks, 'handshake')?.detail).toMatch(/^edge-1: /);
  });

  it('may lead through the relay that the map names, which keeps the address of this host', () => {
    const map = network([connector, self, { ...laptop, followsRelay: true }], { relay: 1 });
    const [first] = explain('10.77.0.4', viewOf(map), into('10.77.0.0/24'));
    expect(first?.detail).toContain("relayed by edge-1 with this host's address, as neither it");
  });

  it('reports a peer that is relayed because it does not answer', () => {
    const [me, far] = [peer(3, { endpoint: dialled(13) }), peer(4, { name: 'far', endpoint: dialled(14) })];
    const map = network([connector, me, far]);
    const desired = desireFor(me, map, { failed: [{ peer: 4, back: false }] });
    const [first] = explain('10.77.0.4', viewOf(map, { desired }), into('10.77.0.0/24'));
    expect(first?.detail).toMatch(/relayed by edge-1 with the relay's address, as it does not answer directly$/);
  });

  it('does not exist without an endpoint on either side and without a relay', () => {
    const checks = explain('10.77.0.4', viewOf(network([self, laptop])), into('10.77.0.0/24'));
    expect(verdicts(checks)).toEqual([
      ['network', false],
      ['route', null],
    ]);
    expect(checks[0]?.detail).toMatch(/neither it nor this host has an endpoint, and no connector relays$/);
  });

  it('stays here for the own address', () => {
    const kernelRoute = into('10.77.0.3/32', { link: 'lo', local: true, table: '255' });
    expect(verdicts(explain('10.77.0.3', viewOf(office), kernelRoute))).toEqual([
      ['network', true],
      ['route', true],
    ]);
  });

  it('ends in the network if no peer has the address', () => {
    const [first] = explain('10.77.0.99', viewOf(office), into('10.77.0.0/24'));
    expect(first).toMatchObject({ ok: false, detail: expect.stringMatching(/no peer has this address$/) });
  });

  it.each([
    ['was taken down', { enabled: false, down: problem('taken-down', facts) }, /"cpn up cpn0"/],
    [
      'was deleted',
      { enabled: false, down: problem('network-deleted', deleted) },
      /comes up automatically.*"cpn leave cpn0"/,
    ],
    ['no longer lists this host', { listed: false, unlisted: problem('peer-unlisted', unlisted) }, /"cpn leave cpn0"/],
  ])('ends in a network that %s', (words, changes, remedy) => {
    const checks = explain('10.77.0.1', viewOf(office, changes), away('0.0.0.0/0'));
    expect(checks[0]).toMatchObject({
      ok: false,
      detail: expect.stringContaining(words),
      remedy: expect.stringMatching(remedy),
    });
    expect(verdicts(checks)).toHaveLength(2);
  });
});

it('has an unknown state if the service refuses this host the map', () => {
  const error = 'reading network 7 was refused (401): Unauthenticated; join again';
  const view = viewOf(office, { refused: { by: 'token', error } });
  const checks = explain('10.77.0.1', view, into('10.77.0.0/24'));
  expect(verdicts(checks)).toEqual(allPass.map(([name, ok]) => [name, name === 'network' ? null : ok]));
  expect(checks[0]?.detail).toMatch(/, by the last known map; sync refused \(token\)$/);
  expect(checks[0]?.remedy).toBe(error);
});

describe('the path to a route', () => {
  const lan = '192.168.50.9';

  it('names the connector and its standbys', () => {
    const checks = explain(lan, viewOf(office), into('192.168.50.0/24'));
    expect(verdicts(checks)).toEqual(allPass);
    expect(checks[0]?.detail).toBe('behind 192.168.50.0/24 of network office, by edge-1 (active); standby: edge-2');
  });

  it.each<[string, NetworkOnHost, RegExp, RegExp]>([
    [
      'what the guard refuses',
      viewOf(office, {}, { api: [address(lan)] }),
      /it is refused here: covers the control plane \(192\.168\.50\.9\)$/,
      /"cpn set cpn0 --allow-route 192\.168\.50\.0\/24"/,
    ],
    [
      'what is not accepted',
      viewOf(office, {}, {}, { acceptRoutes: false }),
      /refused here: not accepted$/,
      /^"cpn set cpn0 --accept-routes"/,
    ],
    ['a route that no connector serves', viewOf(network([self, laptop])), /; no connector$/, /start a connector/],
    [
      'a route of a connector that has no endpoint',
      viewOf(network([{ ...connector, endpoint: null }, self])),
      /; no connector in reach; edge-1 has no endpoint$/,
      /cpn set --endpoint HOST:PORT/,
    ],
    [
      'what is out of service',
      viewOf(network([{ ...connector, withdrawn: [prefix('192.168.50.0/24')] }, self])),
      /; no connector; out of service at edge-1$/,
      /put one back into service/,
    ],
  ])('stops at %s, and reports the path of the packet instead', (_, view, detail, remedy) => {
    const checks = explain(lan, view, away('0.0.0.0/0', { gateway: address('203.0.113.254') }));
    expect(checks).toMatchObject([
      { check: 'network', ok: false, detail: expect.stringMatching(detail), remedy: expect.stringMatching(remedy) },
      {
        check: 'route',
        ok: null,
        detail: 'leaves by eth0 via 203.0.113.254 from 203.0.113.22, by the default route (static)',
      },
    ]);
  });

  it('ends in the LAN of the host that serves it, whose forwarding is checked', () => {
    const view = viewOf(office, {}, {}, {}, connector);
    const kernelRoute = away('192.168.50.0/24', { link: 'eth1' });
    const seen = explain(lan, view, kernelRoute, { drops: { forward: [], inbound: null } });
    expect(verdicts(seen)).toEqual([
      ['network', true],
      ['route', true],
      ['firewall', true],
    ]);
    const unmasked = explain(lan, { ...view, masquerades: false }, kernelRoute);
    expect([seen, unmasked].map(([first]) => first?.detail)).toEqual([
      'behind 192.168.50.0/24 of network office, served by this host',
      "behind 192.168.50.0/24 of network office, served by this host, with the sender's address: " +
        'the LAN needs a route to 10.77.0.0/24 through this host',
    ]);
    const found = findNetwork(address(lan), [view]);
    const paths = found && findForwardPaths(address(lan), found, kernelRoute);
    expect(paths).toMatchObject([
      { iif: 'cpn0', oif: 'eth1', from: '10.77.0.0/24', to: '192.168.50.9/32', state: 'new' },
      { iif: 'eth1', oif: 'cpn0', from: '192.168.50.9/32', to: '10.77.0.0/24', state: 'established' },
    ]);
    const drop: ForwardDrop = {
      family: 'ip',
      table: 'filter',
      chain: 'FORWARD',
      reason: 'its policy is drop',
      author: 'docker',
      remedy: 'let it through',
      paths: paths ?? [],
      some: [],
    };
    expect(findStop(explain(lan, view, kernelRoute, { drops: { forward: [drop], inbound: null } }))).toMatchObject({
      check: 'firewall',
      detail: expect.stringMatching(/nft table ip filter, probably made by docker \(its policy is drop\)$/),
      remedy: 'let it through',
    });
    expect(verdicts(explain(lan, view, kernelRoute))).toContainEqual(['firewall', null]);
    const unread = { forward: [{ kind: 'set', family: 'ip', table: 'geo', name: 'bad' } as const], inbound: [] };
    const unclear = explain(lan, view, kernelRoute, { drops: { forward: [], inbound: null, unread } });
    expect(verdicts(unclear)).toContainEqual(['firewall', null]);
    const flushed = { ...view, actual: { ...view.actual, firewall: null } };
    expect(findStop(explain(lan, flushed, kernelRoute))).toMatchObject({
      check: 'firewall',
      remedy: expect.stringContaining('cpn reconcile'),
    });
    expect(findStop(explain(lan, view, into('192.168.50.0/24')))).toMatchObject({ check: 'route' });
  });
});

describe('of several networks', () => {
  const lab = { ...network([connector, self], { id: 8, name: 'lab', cidr: prefix('10.77.0.0/16') }) };
  const pick = (to: string, ...views: NetworkOnHost[]) => findNetwork(address(to), views)?.view.map.name;

  it('the one counts that carries the address, and of those the narrowest', () => {
    const refused = viewOf(
      lab,
      {},
      {
        taken: [
          { prefix: prefix('10.77.0.0/24'), by: 'network office' },
          { prefix: prefix('192.168.50.0/24'), by: 'network office' },
        ],
      },
    );
    const views = [viewOf(office), refused];
    expect(pick('192.168.50.9', ...views)).toBe('office');
    expect(pick('192.168.50.9', ...views.toReversed())).toBe('office');
    expect(pick('10.77.0.99', ...views)).toBe('office');
    expect(pick('10.77.5.5', ...views)).toBe('lab');
    expect(pick('192.168.50.9', viewOf(office, { enabled: false }), viewOf({ ...office, name: 'spare' }))).toBe(
      'spare',
    );
    expect(pick('8.8.8.8', ...views)).toBeUndefined();
  });
});

describe('a full tunnel', () => {
  const exit = network([connector, self], { routes: [prefix('0.0.0.0/0')] });

  it('carries packets without another route, and excludes reserved addresses', () => {
    const api = [address('198.51.100.9')];
    const view = viewOf(exit, {}, { api, allowed: [prefix('0.0.0.0/0')] });
    const there = into('0.0.0.0/0', { table: '8349' });
    expect(verdicts(explain('8.8.8.8', view, there))).toEqual(allPass);
    expect(check(explain('8.8.8.8', view, away('0.0.0.0/0')), 'route')).toMatchObject({
      ok: false,
      remedy: expect.stringContaining('cpn reconcile'),
    });
    const rule = { ...tunnelRule, priority: 100, not: false, fwmark: null, table: 'main', to: prefix('8.8.8.8/32') };
    const ruled = { ...view, actual: { ...view.actual, rules: [rule, ...view.actual.rules] } };
    expect(check(explain('8.8.8.8', ruled, away('0.0.0.0/0')), 'route')).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/policy rule "100: from all to 8\.8\.8\.8\/32 lookup main" leads there$/),
    });
    for (const outside of ['198.51.100.9', '203.0.113.7', '172.31.0.1', '203.0.113.22', '198.51.100.53', '2001:db8::1'])
      expect(findNetwork(address(outside), [view]), outside).toBeNull();
    const [first] = explainOther(address('198.51.100.9'), [view], away('0.0.0.0/0'));
    expect(first?.detail).toMatch(/; it stays outside the full tunnel of network office$/);
  });

  it('shows where answers to clients go, and that it takes some', () => {
    const view = viewOf(exit, {}, { allowed: [prefix('0.0.0.0/0')] });
    const there = into('0.0.0.0/0', { table: '8349' });
    const outside = away('0.0.0.0/0', { gateway: address('203.0.113.1') });
    const from = address('203.0.113.22');
    const answersBy = (kernelRoute: KernelRoute) =>
      explain('8.8.8.8', view, there, { answers: [{ from, route: kernelRoute, outside }] }).find(
        (each) => each.check === 'answers',
      );
    expect(answersBy(outside)).toEqual({
      check: 'answers',
      ok: true,
      detail: 'from 203.0.113.22: leaves by eth0 via 203.0.113.1, by the default route (static)',
      remedy: null,
    });
    expect(answersBy(there)).toMatchObject({ ok: null, remedy: expect.stringContaining('cpn doctor') });
    const other = explainOther(address('198.51.100.53'), [view], outside, [{ from, route: there, outside }]);
    expect(other.at(-1)).toMatchObject({ check: 'answers', ok: null });
  });

  it('that is refused leaves an address outside, and is reported', () => {
    const view = viewOf(exit);
    expect(findNetwork(address('8.8.8.8'), [view])).toBeNull();
    expect(explainOther(address('8.8.8.8'), [view], away('0.0.0.0/0'))).toMatchObject([
      {
        ok: null,
        detail: expect.stringMatching(
          /; 0\.0\.0\.0\/0 of network office is refused on this host: is the default route$/,
        ),
      },
      { ok: true },
    ]);
    expect(findStop(explainOther(address('8.8.8.8'), [], { link: null, why: 'prohibit' }))).toMatchObject({
      check: 'route',
    });
  });
});

describe('a packet outside every network', () => {
  const exit = network([connector, self], { routes: [prefix('0.0.0.0/0')] });
  const full = viewOf(exit, {}, { allowed: [prefix('0.0.0.0/0')] });
  const renamed = (view: NetworkOnHost, name: string, link: string): NetworkOnHost => ({
    ...view,
    ...{ map: { ...view.map, name }, desired: { ...view.desired, link } },
  });
  const outside = away('0.0.0.0/0');
  const answer = { from: address('203.0.113.22'), route: into('0.0.0.0/0'), outside };

  it('has answers only in a full tunnel, and only of addresses to which no other route leads', () => {
    const answersTo = (to: string) =>
      check(explain(to, full, into('0.0.0.0/0', { table: '8349' }), { answers: [answer] }), 'answers');
    expect(answersTo('8.8.8.8')).toBeDefined();
    expect(answersTo('10.77.0.1')).toBeUndefined();
    const names = (views: readonly NetworkOnHost[]) =>
      explainOther(address('172.31.0.1'), views, outside, [answer]).map((each) => each.check);
    expect(names([viewOf(office)])).toEqual(['network', 'route']);
    expect(names([viewOf(office), full])).toEqual(['network', 'route', 'answers']);
  });

  it('is explained by each network, also by one joined later', () => {
    const refused = renamed(viewOf(exit), 'lab', 'cpn1');
    const [first] = explainOther(address('172.31.0.1'), [viewOf(office), refused], outside);
    expect(first?.detail).toMatch(
      /does not route it; 0\.0\.0\.0\/0 of network lab is refused on this host: is the default route$/,
    );
  });

  it('may follow a foreign route into a tunnel, where no peer accepts it', () => {
    const stray = { prefix: prefix('10.99.0.0/16'), table: 'main', protocol: 'static', metric: 0 };
    const view = viewOf(office);
    const seen = { ...view, actual: { ...view.actual, routes: [...view.actual.routes, stray] } };
    const checks = explainOther(address('10.99.0.1'), [seen], into('10.99.0.0/16', { protocol: 'static' }));
    expect(findStop(checks)).toMatchObject({
      check: 'route',
      detail: expect.stringMatching(/; no peer accepts it there$/),
      remedy: '"ip route del 10.99.0.0/16 dev cpn0" removes that route',
    });
  });

  it('is rejected if it is of IPv6, by the full tunnel of any network', () => {
    const rules = [{ name: 'reject-ipv6', chain: 'outgoing', text: 'reject' } as const];
    const firewall = { link: 'cpn0', rules };
    const ipv6 = {
      ...{ exceptions: { links: ['eth9'], prefixes: [], endpoints: [], ports: [] }, isAllowed: false, isThere: true },
    };
    const rejecting: NetworkOnHost = {
      ...full,
      desired: { ...full.desired, ipv6, firewall },
      actual: { ...full.actual, firewall: firewallMarks(firewall) },
    };
    const stopOf = (view: NetworkOnHost, there: KernelRoute = away('::/0'), to = '2001:db8::1') =>
      findStop(explainOther(address(to), [viewOf(office), view], there));
    expect(stopOf(rejecting)).toMatchObject({
      check: 'firewall',
      detail: 'the full tunnel of network office rejects IPv6 that leaves outside of it',
      remedy: '"cpn set cpn0 --allow-ipv6-outside" lets it out',
    });
    expect(stopOf({ ...rejecting, enabled: false })).toBeNull();
    expect(stopOf({ ...rejecting, actual: full.actual })).toBeNull();
    expect(stopOf({ ...rejecting, desired: { ...rejecting.desired, firewall: null } })).toBeNull();
    expect(stopOf({ ...rejecting, desired: { ...rejecting.desired, ipv6: null } })).toBeNull();
    expect(stopOf(rejecting, away('::/0', { link: 'eth9' }))).toBeNull();
    expect(stopOf(rejecting, away('::/0', { local: true }))).toBeNull();
    expect(stopOf(rejecting, away('fe80::/64'), 'fe80::1')).toBeNull();
    expect(stopOf(rejecting, away('0.0.0.0/0'), '198.51.100.9')).toBeNull();
  });
});
