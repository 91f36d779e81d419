import { describe, expect, it } from 'vitest';
import { explainOutside, findNetwork, remedyOutside } from '../../../src/core/explain/find-target.ts';
import type { NetworkOnHost } from '../../../src/core/explain/view.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Prefix } from '../../../src/core/net/cidr.ts';
import { strictRules } from '../../../src/core/routing/strict-rules.ts';
import { address, network, prefix, underlay } from '../samples.ts';
import { connector, laptop, office, self, viewOf } from './samples.ts';

const lan = prefix('192.168.50.0/24');
const everything = prefix('0.0.0.0/0');
const exit = network([connector, self], { routes: [everything] });
const targetOf = (to: string, ...views: NetworkOnHost[]) => findNetwork(address(to), views)?.target;
const pick = (to: string, ...views: NetworkOnHost[]) => findNetwork(address(to), views)?.view.map.name;
const near = (changes: Partial<Underlay>) => ({ underlay: { ...underlay, ...changes } });
/** The view of a host that observes this underlay. */
const observed = (view: NetworkOnHost, on: ReturnType<typeof near>) => ({ ...view, actual: { ...view.actual, ...on } });
const withTunnel = (changes: Partial<NetworkOnHost['desired']>) => {
  const view = viewOf(exit, {}, { allowed: [everything] });
  return { ...view, desired: { ...view.desired, ...changes } };
};

describe('an address', () => {
  it('of a mapped LAN of this host belongs to no wider route, and to a narrower one', () => {
    const [site, wide, narrow] = ['10.201.1.0/24', '192.168.0.0/16', '192.168.50.0/25'].map(prefix) as [
      Prefix,
      Prefix,
      Prefix,
    ];
    const edge = { ...connector, routes: [site] };
    const view = (...routes: Prefix[]) => {
      const mapped = { maps: [{ route: site, local: lan }] };
      return viewOf(network([edge, self], { routes: [site, ...routes] }), {}, {}, mapped, edge);
    };
    expect(targetOf('192.168.50.9', view(wide))).toBeUndefined();
    expect(explainOutside(address('192.168.50.9'), view(wide))).toContain('only as 10.201.1.9, through this host');
    expect(targetOf('192.168.50.9', view(wide, narrow))).toMatchObject({ report: { prefix: narrow } });
  });

  it('in a route that is not accepted belongs to that route, also in a subnet of this host', () => {
    const narrower = near({ connected: [{ prefix: prefix('192.168.50.0/25'), link: 'eth1' }] });
    const view = observed(viewOf(office, {}, narrower, { acceptRoutes: false }), narrower);
    expect(targetOf('192.168.50.9', view)).toMatchObject({ is: 'route', report: { state: 'refused' } });
    expect(explainOutside(address('192.168.50.9'), view)).toBeNull();
  });

  it('in an allowed route belongs to it, also if this host is in a wider subnet', () => {
    const wider = near({ connected: [{ prefix: prefix('192.168.0.0/16'), link: 'eth1' }] });
    const view = observed(viewOf(office, {}, { ...wider, allowed: [lan] }), wider);
    expect(targetOf('192.168.50.9', view)).toMatchObject({ is: 'route', report: { prefix: lan, state: 'taken' } });
    expect(explainOutside(address('192.168.50.9'), view)).toBeNull();
  });

  it('in two routes belongs to the one in use, and of several to the narrowest', () => {
    const inner = prefix('192.168.50.0/25');
    const map = network([connector, self], { routes: [lan, inner] });
    const routeOf = (view: NetworkOnHost) => targetOf('192.168.50.9', view);
    expect(routeOf(viewOf(map))).toMatchObject({ report: { prefix: inner } });
    expect(routeOf(viewOf(map, {}, { taken: [{ prefix: inner, by: 'network lab' }], allowed: [lan] }))).toMatchObject({
      report: { prefix: lan, state: 'taken' },
    });
  });

  it('in a route of a network that lacks this host is reported as missing', () => {
    expect(targetOf('192.168.50.9', viewOf(office, { listed: false }))).toEqual({
      is: 'route',
      report: { prefix: lan, via: null, state: 'missing', reason: null },
    });
  });

  it('of no peer is unassigned, also if the range is refused', () => {
    const refused = viewOf(office, {}, { taken: [{ prefix: prefix('10.77.0.0/24'), by: 'network lab' }] });
    expect(targetOf('10.77.0.99', refused)).toEqual({ is: 'unassigned' });
  });
});

describe('of two networks, an address belongs to', () => {
  const spareOf = (map: NetworkMap) => viewOf({ ...map, name: 'spare' });

  it('the one that lists this host', () => {
    for (const to of ['10.77.0.1', '10.77.0.3', '192.168.50.9'])
      expect(pick(to, viewOf(office, { listed: false }), spareOf(office)), to).toBe('spare');
  });

  it('the one in which a peer is reached', () => {
    expect(pick('10.77.0.4', viewOf(network([self, laptop])), spareOf(office))).toBe('spare');
  });

  it('the one that this host serves, also out of service', () => {
    const edge = { ...connector, withdrawn: [lan] };
    const drained = viewOf({ ...network([edge, self]), name: 'spare' }, {}, {}, {}, edge);
    expect(pick('192.168.50.9', viewOf(office, {}, {}, { acceptRoutes: false }), drained)).toBe('spare');
  });
});

describe('a full tunnel', () => {
  it('that is strict carries what other routes lead elsewhere, and never the own addresses of the host', () => {
    const { desired } = withTunnel({});
    const strict = withTunnel({ rules: strictRules(desired.rules, { prefixes: [], tables: [] }) });
    for (const inside of ['172.31.0.1', '203.0.113.7'])
      expect(targetOf(inside, strict), inside).toMatchObject({ is: 'route', report: { prefix: everything } });
    expect(targetOf('203.0.113.22', strict)).toBeUndefined();
  });

  it('leaves IPv6 outside: rejected, excepted, or with the network taken down', () => {
    const excepted = {
      prefix: prefix('2001:db8::/64'),
      link: 'eth0',
      gateway: null,
      why: 'this host is in this subnet',
    };
    const exceptions = { links: [], prefixes: [excepted], endpoints: [], ports: [] };
    const view = withTunnel({ ipv6: { exceptions, isAllowed: false, isThere: true } });
    const why = (to: string, changes: Partial<NetworkOnHost> = {}) =>
      explainOutside(address(to), { ...view, ...changes });
    expect(why('2001:db8:9::1')).toBe('the full tunnel of network office carries only IPv4');
    expect(why('2001:db8::1')).toBe('it stays outside the full tunnel of network office');
    expect(why('2001:db8:9::1', { enabled: false })).toBeNull();
    const open = withTunnel({ ipv6: { exceptions: null, isAllowed: true, isThere: true } });
    expect(explainOutside(address('2001:db8:9::1'), open)).toBe('it stays outside the full tunnel of network office');
    expect(explainOutside(address('2001:db8:9::1'), withTunnel({ ipv6: null }))).toBeNull();
  });

  it('that this host serves is explained by the reason for which nothing is forwarded', () => {
    const refusing = near({ forwarded: { [everything]: { links: [], why: 'the main table has no default route' } } });
    const view = observed(viewOf(exit, {}, refusing, {}, connector), refusing);
    expect(explainOutside(address('8.8.8.8'), view)).toBe(
      '0.0.0.0/0 of network office is served on this host: the main table has no default route',
    );
  });

  it('has a remedy for an unexpected route past it, and none for an expected one', () => {
    const routed = [
      { prefix: prefix('198.18.0.0/15'), link: 'eth0', gateway: address('203.0.113.66'), protocol: 'dhcp' },
      { prefix: prefix('192.168.7.0/24'), link: 'eth1', protocol: 'static' },
    ];
    const seen = observed(withTunnel({}), near({ routed }));
    expect(remedyOutside(address('198.18.0.1'), [seen])).toContain('"cpn set cpn0 --strict-tunnel"');
    expect(remedyOutside(address('192.168.7.1'), [seen])).toBeNull();
    expect(remedyOutside(address('9.9.9.9'), [seen])).toBeNull();
  });
});
