import { describe, expect, it } from 'vitest';
import {
  acceptDefaultRoute,
  findGone,
  initialLanRoutes,
  type LanObservation,
  type LanRoutes,
  trackLanRoutes,
} from '../../../src/core/health/lan-routes.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { behindRoutes, type PrefixMap } from '../../../src/core/map/prefix-maps.ts';
import { prefix, underlay } from '../samples.ts';

const lan = prefix('192.168.50.0/24');
const half = prefix('192.168.50.128/25');
const onLan = { prefix: lan, link: 'eth1' };

/** A host with a default route by eth0, that reaches these subnets. */
function around(reached: Underlay['reached'], changes: Partial<Underlay> = {}): Underlay {
  return { ...underlay, reached, ...changes } as Underlay;
}
const atLan = around([onLan]);
const links = (...down: readonly string[]): Underlay['links'] =>
  ['eth0', 'eth1'].map((name) => ({ name, kind: 'card', ...(down.includes(name) && { isDown: true as const }) }));
const offline = { uplinks: [] };

const usual: LanObservation = {
  underlay: atLan,
  dropped: new Map(),
  isOnline: true,
  withdrawn: [],
  since: new Map(),
  now: 100,
  settling: 5,
};
const follow = (
  before: LanRoutes,
  to: Underlay,
  changes: Partial<LanObservation> = {},
  routes = [lan],
  maps: readonly PrefixMap[] = [],
) => trackLanRoutes(before, behindRoutes(routes, maps), { ...usual, underlay: to, ...changes });
const begun = follow({}, atLan).lanRoutes;
const reasonAt = (to: Underlay, before: LanRoutes = begun) => follow(before, to).lanRoutes[lan]?.gone;

describe('the path to the LAN behind a route', () => {
  it('is that to the local prefix if the route is mapped', () => {
    const route = prefix('10.201.1.0/24');
    const maps = [{ route, local: lan }];
    const before = follow({}, atLan, {}, [route], maps).lanRoutes;
    expect(before).toEqual({ [route]: { isOwn: true, links: ['eth1'], gone: null } });
    const after = follow(before, around([], { links: links('eth1') }), {}, [route], maps).lanRoutes;
    expect(after[route]?.gone).toBe('eth1 is down, or has no carrier');
    const refused = { [lan]: { links: [], why: 'the kernel drops them' } };
    expect(follow(before, around([], { forwarded: refused }), {}, [route], maps).lanRoutes[route]?.gone).toBe(
      'the kernel drops them',
    );
  });

  it.each([
    ['its interface was set down', around([], { links: links('eth1') }), 'eth1 is down, or has no carrier'],
    ['its card has no carrier', around([onLan], { links: links('eth1') }), 'eth1 is down, or has no carrier'],
    ['its interface is gone', around([], { links: links().slice(0, 1) }), 'there is no interface eth1 any more'],
    ['its route is gone', around([], { links: links() }), 'the route there by eth1 is gone'],
  ])('is gone at once where %s, though a default route is there', (_what, to, why) => {
    expect(reasonAt(to)).toBe(why);
    expect(reasonAt({ ...to, ...offline })).toBe(why);
  });

  it.each([
    ['there is a second one', around([onLan, { prefix: lan, link: 'eth2' }], { links: links('eth1') })],
    ['a part of it is still there', around([{ prefix: half, link: 'eth1' }], { links: links() })],
    ['parts make it up', around([half, prefix('192.168.50.0/25')].map((part) => ({ prefix: part, link: 'tun9' })))],
    ['a wider route leads there', around([{ prefix: prefix('192.168.0.0/16'), link: 'eth2' }])],
  ])('is there as long as %s', (_what, to) => {
    expect(reasonAt(to)).toBeNull();
  });

  it('is gone where another program drops the packets there, unless its interface is the cause', () => {
    const dropped = new Map([[lan, 'nft table ip filter drops what this host forwards there']]);
    const lanRoute = (to: Underlay, before = begun) => follow(before, to, { dropped }).lanRoutes[lan];
    expect(lanRoute(atLan)).toEqual({ isOwn: true, links: ['eth1'], gone: dropped.get(lan) });
    expect(lanRoute(atLan, {})?.gone).toBe(dropped.get(lan));
    expect(lanRoute(around([onLan], { links: links('eth1') }))?.gone).toBe('eth1 is down, or has no carrier');
    const back = follow({ [lan]: lanRoute(atLan) as never }, atLan, { withdrawn: [lan] });
    expect([back.lanRoutes[lan]?.gone, back.since.get(lan)]).toEqual([dropped.get(lan), 100]);
  });

  it('may be the default route alone, and is gone with that', () => {
    const { lanRoutes } = follow({}, around([]));
    expect(lanRoutes[lan]).toEqual({ isOwn: false, links: [], gone: null });
    expect(reasonAt(around([], offline), lanRoutes)).toBe('this host has no route there');
  });

  it('stays the default route where containers or a VPN come to a part of it, and go', () => {
    const { lanRoutes } = follow({}, around([]));
    const part = { prefix: half, link: 'br-1234' };
    const met = follow(lanRoutes, around([part])).lanRoutes;
    expect(met[lan]).toEqual({ isOwn: false, links: ['br-1234'], gone: null });
    expect(follow(met, around([])).lanRoutes).toEqual(lanRoutes);
    expect(follow({}, around([part])).lanRoutes).toEqual(met);
  });

  it('is not a part by containers where its own is gone, and the reason names its own', () => {
    const part = { prefix: half, link: 'br-1234' };
    const both = follow({}, around([part, onLan])).lanRoutes;
    expect(reasonAt(around([part], { links: links('eth1') }), both)).toBe('eth1 is down, or has no carrier');
  });

  it('may be parts by containers where there is no default route, and then the default route', () => {
    const { lanRoutes } = follow({}, around([{ prefix: half, link: 'br-1234' }], offline));
    expect(lanRoutes[lan]).toEqual({ isOwn: false, links: ['br-1234'], gone: null });
    expect(reasonAt(around([]), lanRoutes)).toBeNull();
    expect(reasonAt(around([], offline), lanRoutes)).toBe('there is no interface br-1234 any more');
  });

  it('of a default route that is served is the default route', () => {
    const exit = prefix('0.0.0.0/0');
    const { lanRoutes } = follow({}, atLan, {}, [exit]);
    expect(lanRoutes[exit]).toEqual({ isOwn: false, links: [], gone: null });
    expect(findGone(follow(lanRoutes, around([onLan], offline), {}, [exit]).lanRoutes, [exit])).toEqual([exit]);
  });

  it('is not judged where it was never there, if the host is offline, or if the platform does not report it', () => {
    expect(follow({}, around([], offline)).lanRoutes).toEqual({});
    expect(follow(begun, around([]), { isOnline: false }).lanRoutes).toEqual(begun);
    expect(follow(begun, underlay).lanRoutes).toBe(begun);
  });
});

describe('a path that is back', () => {
  const gone = follow(begun, around([], { links: links('eth1') })).lanRoutes;
  const withdrawn = [lan];

  it('settles for a while before its route is served, and not longer', () => {
    const first = follow(gone, atLan, { withdrawn });
    expect([findGone(first.lanRoutes, [lan]), [...first.since]]).toEqual([[lan], [[lan, 100]]]);
    const soon = follow(first.lanRoutes, atLan, { withdrawn, since: first.since, now: 104 });
    expect([findGone(soon.lanRoutes, [lan]), [...soon.since]]).toEqual([[lan], [[lan, 100]]]);
    const later = follow(soon.lanRoutes, atLan, { withdrawn, since: soon.since, now: 105 });
    expect([later.lanRoutes, later.since.size]).toEqual([begun, 0]);
  });

  it('settles from the start where it was gone again meanwhile', () => {
    const first = follow(gone, atLan, { withdrawn });
    const again = follow(first.lanRoutes, around([]), { withdrawn, since: first.since, now: 103 });
    expect(again.since.size).toBe(0);
    expect(follow(again.lanRoutes, atLan, { withdrawn, since: again.since, now: 106 }).since.get(lan)).toBe(106);
  });

  it('is served at once if its loss was never reported', () => {
    expect(follow(gone, atLan).lanRoutes).toEqual(begun);
  });

  it('has its own route again: the default route alone is not enough, also after a reboot', () => {
    expect(findGone(follow(gone, around([]), { withdrawn }).lanRoutes, [lan])).toEqual([lan]);
    const booted = initialLanRoutes([lan]);
    expect(findGone(follow(booted, around([]), { withdrawn, settling: 0 }).lanRoutes, [lan])).toEqual([lan]);
    expect(findGone(follow(booted, atLan, { withdrawn, settling: 0 }).lanRoutes, [lan])).toEqual([]);
  });

  it('may be any if an operator accepts it', () => {
    const any = acceptDefaultRoute(gone);
    expect(findGone(follow(any, around([], offline), { withdrawn, settling: 0 }).lanRoutes, [lan])).toEqual([lan]);
    expect(follow(any, around([]), { withdrawn, settling: 0 }).lanRoutes).toEqual(follow({}, around([])).lanRoutes);
    expect(acceptDefaultRoute(begun)).toEqual(begun);
  });
});

describe('what the kernel does with packets of the network', () => {
  const everything = prefix('0.0.0.0/0');
  const noRoute = { links: [], why: 'this host has no route there for packets of the network' };
  const by = (link: string) => ({ links: [link], why: null });
  const exit = (forwarded: Underlay['forwarded'], changes: Partial<Underlay> = {}) =>
    around([], { ...offline, ...(forwarded && { forwarded }), ...changes });

  it('counts where this host itself reaches the LAN', () => {
    const refused = around([onLan], { forwarded: { [lan]: noRoute } });
    expect(follow(begun, refused).lanRoutes[lan]?.gone).toBe(noRoute.why);
  });

  it('counts from the first look on', () => {
    expect(follow({}, exit({ [everything]: noRoute }), {}, [everything]).lanRoutes[everything]).toEqual({
      ...{ isOwn: false, links: [], gone: noRoute.why },
    });
  });

  it('does not count while this host is offline', () => {
    const seen = follow({}, exit({ [everything]: noRoute }), { isOnline: false }, [everything]);
    expect(seen.lanRoutes[everything]).toBeUndefined();
  });

  it('is a way for a default route by another table than the main one, also after it was out of service', () => {
    const served = exit({ [everything]: by('eth1') });
    expect(follow({}, served, {}, [everything]).lanRoutes[everything]).toEqual({
      isOwn: false,
      links: ['eth1'],
      gone: null,
    });
    const lost = initialLanRoutes([everything]);
    expect(follow(lost, served, {}, [everything]).lanRoutes[everything]?.gone).toBeNull();
  });

  it('is a way for a LAN by another table, and none by a link that is down', () => {
    const served = { forwarded: { [lan]: by('eth1') } };
    expect(follow({}, around([], { ...served, links: links() })).lanRoutes[lan]).toMatchObject({
      isOwn: true,
      gone: null,
    });
    const down = around([], { ...served, ...offline, links: links('eth1') });
    expect(follow({}, down).lanRoutes[lan]).toBeUndefined();
  });
});

it('the path to a LAN keeps the first reason for which it is gone', () => {
  const first = follow(begun, around([onLan], { links: links('eth1') })).lanRoutes;
  expect(follow(first, around([], { links: links() })).lanRoutes[lan]?.gone).toBe('eth1 is down, or has no carrier');
});

it('a default route by an interface without carrier is no path to a LAN', () => {
  const byDefault = (...down: readonly string[]) =>
    follow({}, around([], { uplinks: ['eth0'], links: links(...down) })).lanRoutes[lan];
  expect(byDefault()).toEqual({ isOwn: false, links: [], gone: null });
  expect(byDefault('eth0')).toBeUndefined();
});

it('the path to a LAN has the interfaces of its parts, and those of policy rules for the network', () => {
  const to = around([{ prefix: half, link: 'tun9' }], { forwarded: { [lan]: { links: ['eth5', 'eth0'], why: null } } });
  expect(follow({}, to).lanRoutes[lan]).toEqual({ isOwn: true, links: ['tun9', 'eth5'], gone: null });
  const parts = ['192.168.50.0/25', '192.168.50.128/25'].map(prefix);
  const both = around(parts.map((part, at) => ({ prefix: part, link: `tun${at}` })));
  expect(follow({}, both).lanRoutes[lan]?.links).toEqual(['tun0', 'tun1']);
});
