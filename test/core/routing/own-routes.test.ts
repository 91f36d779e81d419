import { describe, expect, it } from 'vitest';
import { checkForeign } from '../../../src/core/explain/check-route.ts';
import type { NetworkOnHost } from '../../../src/core/explain/view.ts';
import type { Actual, Route } from '../../../src/core/host-state/actual.ts';
import { acceptedMetric, tunnelTable } from '../../../src/core/host-state/marks.ts';
import { withFormerRoutes } from '../../../src/core/reconcile/desired.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { findForeignRoutes, routeClassifier } from '../../../src/core/routing/own-routes.ts';
import { placeRoutes } from '../../../src/core/routing/place-route.ts';
import { bare, desireFor, dialled, network, peer, prefix, usualConstraints } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const laptop = peer(3, { type: 'admin_device' });
const office = network([connector, laptop]);
const desired = desireFor(laptop, office);
const settled = simulate(bare, plan(desired, bare, now));

const route = (to: string, changes: Partial<Route> = {}): Route => ({
  prefix: prefix(to),
  table: 'main',
  protocol: 'boot',
  metric: to.includes(':') ? 1024 : 0,
  ...changes,
});
const withRoutes = (...routes: readonly Route[]): Actual => ({ ...settled, routes: [...settled.routes, ...routes] });
const inPlace = (changed: Route): Actual => ({
  ...settled,
  routes: settled.routes.map((each) => (each.prefix === changed.prefix ? changed : each)),
});
const lan = '192.168.50.0/24';
const changes = (actual: Actual, wanted = desired) => plan(wanted, actual, now).flatMap((step) => step.changes);

describe('a route into our interface that is none of ours', () => {
  it.each([
    ['by hand', route('10.9.0.0/16'), 'ip route del 10.9.0.0/16 dev cpn0'],
    ['of a routing daemon', route('10.9.0.0/16', { protocol: 'bird' }), 'ip route del 10.9.0.0/16 dev cpn0'],
    ['in another table', route('0.0.0.0/0', { table: '77' }), 'ip route del default dev cpn0 table 77'],
    ['to a part of a route', route('192.168.50.128/25'), 'ip route del 192.168.50.128/25 dev cpn0'],
    [
      'for a type of service',
      route(lan, { tos: '0x10', metric: 5 }),
      'ip route del 192.168.50.0/24 dev cpn0 tos 0x10 metric 5',
    ],
    [
      'that comes after ours',
      route(lan, { metric: 20_000, isOutdone: true, deviation: 'src 192.0.2.7' }),
      'ip route del 192.168.50.0/24 dev cpn0 metric 20000',
    ],
    ['a default route that another one outdoes', route('0.0.0.0/0', { metric: 900, isOutdone: true }), /metric 900$/],
  ])('stays, and is shown with what removes it: %s', (_what, foreign, remedy) => {
    const actual = withRoutes(foreign);
    expect(changes(actual)).toEqual([]);
    const [found, ...others] = findForeignRoutes(desired, actual);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ prefix: foreign.prefix, problem: null, remedy: expect.stringMatching(remedy) });
  });

  it.each([
    ['0.0.0.0/0', 'ip route del default dev cpn0'],
    ['128.0.0.0/1', 'ip route del 128.0.0.0/1 dev cpn0'],
    ['::/0', 'ip -6 route del default dev cpn0'],
  ])('is a problem where it is a default route in force: %s', (to, remedy) => {
    const actual = withRoutes(route(to));
    expect(changes(actual)).toEqual([]);
    const [found] = findForeignRoutes(desired, actual);
    expect(found).toMatchObject({ problem: expect.stringContaining('no --allow-route'), remedy });
  });

  it('is what stops a packet that it leads into the tunnel', () => {
    const view = { desired, actual: withRoutes(route('0.0.0.0/0')) } as unknown as NetworkOnHost;
    const way = { link: 'cpn0', local: false, source: null, gateway: null, table: 'main', protocol: 'boot' };
    expect(checkForeign([view], { ...way, prefix: prefix('0.0.0.0/0') })).toMatchObject({
      ok: false,
      remedy: '"ip route del default dev cpn0" removes that route',
    });
    expect(checkForeign([view], { ...way, prefix: prefix('0.0.0.0/0'), link: 'eth0' })).toBeNull();
    expect(checkForeign([view], { ...way, prefix: prefix(lan) })).toBeNull();
  });
});

describe('a route that contradicts one of ours', () => {
  it.each([
    ['another source', 'src 192.0.2.7'],
    ['another interface too', 'shared with eth0'],
  ])('is replaced at once where it stands in its place: %s', (_what, deviation) => {
    const actual = inPlace(route(lan, { deviation, metric: acceptedMetric }));
    const steps = plan(desired, actual, now);
    expect(steps).toMatchObject([{ commands: [{ add: 'route', prefix: lan, replaces: acceptedMetric }] }]);
    expect(changes(actual)).toMatchObject([{ action: 'update', kind: 'route', target: lan, before: deviation }]);
    expect(plan(desired, simulate(actual, steps), now)).toEqual([]);
  });

  it('is removed where it wins by its type of service or metric, and no other route to the same prefix', () => {
    const service = route(lan, { tos: '0x10', deviation: 'src 192.0.2.7' });
    const actual = withRoutes(service);
    const steps = plan(desired, actual, now);
    expect(steps).toMatchObject([{ commands: [{ remove: 'route', prefix: lan, protocol: 'boot', tos: '0x10' }] }]);
    expect(simulate(actual, steps).routes).toEqual(settled.routes);
  });

  it('stands for the range of our address no more', () => {
    const range = '10.77.0.0/24';
    const twisted = route(range, { deviation: 'src 192.0.2.7' });
    const actual: Actual = { ...settled, onLink: [], routes: [...settled.routes, twisted] };
    expect(plan(desired, actual, now)).toMatchObject([
      { commands: [{ add: 'route', prefix: range, source: laptop.address, replaces: 0 }] },
    ]);
  });

  it('is a default route in the main table while a full tunnel has one in its own', () => {
    const exit = network([connector, laptop], { routes: [prefix('0.0.0.0/0')] });
    const full = desireFor(laptop, exit, {}, { ...usualConstraints, allowed: [prefix('0.0.0.0/0')] });
    const on = simulate(bare, plan(full, bare, now));
    const actual = { ...on, routes: [...on.routes, route('0.0.0.0/0')] };
    expect(changes(actual, full)).toMatchObject([{ action: 'remove', target: '0.0.0.0/0' }]);
  });
});

it('a route of wg-quick goes where the last file led there, also after a try that failed halfway', () => {
  const without = withFormerRoutes(desireFor(laptop, network([connector, laptop], { routes: [] })), desired.config);
  const actual = { ...settled, routes: [route(lan), route('10.9.0.0/16')] };
  expect(changes(actual, without).filter(({ kind }) => kind === 'route')).toMatchObject([
    { action: 'remove', target: lan },
  ]);
  expect(findForeignRoutes(without, actual).map((each) => each.prefix)).toEqual(['10.9.0.0/16']);
  expect(withFormerRoutes(desired, desired.config)).toEqual(desired);
});

describe('a route to a prefix of ours', () => {
  const place = placeRoutes(desired, settled)(prefix(lan));
  const metric = place?.metric ?? 0;
  const cpn = settled.routes.find((each) => each.prefix === lan)?.protocol ?? '';
  const standingOf = (changed: Partial<Route>) =>
    routeClassifier(desired, () => place)(route(lan, { table: place?.table ?? '', metric, ...changed }));

  it.each<[string, Partial<Route>, string]>([
    ['ours', { protocol: cpn }, 'kept'],
    ['without a metric', { protocol: cpn, metric: null }, 'kept'],
    ['of wg-quick with our metric', {}, 'kept'],
    ['of wg-quick that comes before ours', { metric: metric - 1 }, 'surplus'],
    ['of wg-quick that comes after ours', { metric: metric + 1 }, 'foreign'],
    ['ours with a lower metric', { protocol: cpn, metric: metric - 1 }, 'surplus'],
    ['ours with a higher metric', { protocol: cpn, metric: metric + 1 }, 'surplus'],
    ['of a routing daemon, with its metric', { protocol: 'bird', metric: metric + 1 }, 'kept'],
    ['ours for a type of service', { protocol: cpn, tos: '0x10' }, 'surplus'],
    ['of another for a type of service', { tos: '0x10' }, 'foreign'],
    ['with another source', { deviation: 'src 192.0.2.7' }, 'altered'],
    ['with another source and metric', { deviation: 'src 192.0.2.7', metric: metric - 1 }, 'surplus'],
    ['with another source, for a type of service', { deviation: 'src 192.0.2.7', tos: '0x10' }, 'surplus'],
    ['ours with another source, outdone', { protocol: cpn, deviation: 'src 192.0.2.7', isOutdone: true }, 'surplus'],
    ['of another with another source, outdone', { deviation: 'src 192.0.2.7', isOutdone: true }, 'foreign'],
    ['ours in a table of another program', { protocol: cpn, table: '77' }, 'foreign'],
    ['of wg-quick in the table of the tunnel', { table: String(tunnelTable) }, 'surplus'],
    ['of a routing daemon in the table of the tunnel', { protocol: 'bird', table: String(tunnelTable) }, 'foreign'],
  ])('stands as it should: %s', (_, changed, standing) => {
    expect(metric).toBeGreaterThan(0);
    expect(standingOf(changed)).toBe(standing);
  });

  it('of another program in the main table, before our table of accepted routes, is judged as in its place', () => {
    const classify = routeClassifier(desired, () => ({ table: '8350', metric: 0 }));
    const inMain = (changed: Partial<Route>) => classify(route(lan, { protocol: 'bird', metric: 20, ...changed }));
    expect(inMain({})).toBe('kept');
    expect(inMain({ deviation: 'src 192.0.2.7' })).toBe('surplus');
    expect(inMain({ deviation: 'src 192.0.2.7', isOutdone: true })).toBe('foreign');
    expect(inMain({ tos: '0x10' })).toBe('foreign');
  });

  it('of wg-quick to any prefix is surplus in the table of the tunnel, which is ours alone', () => {
    const classify = routeClassifier(desired, () => place);
    expect(classify(route('10.9.0.0/16', { table: String(tunnelTable) }))).toBe('surplus');
    expect(classify(route('10.9.0.0/16'))).toBe('foreign');
  });

  it('is removed with its table and metric, and no problem where it harms nothing', () => {
    const found = findForeignRoutes(desired, withRoutes(route('fd00:9::/64', { table: '77', metric: null })));
    expect(found).toMatchObject([{ problem: null, remedy: 'ip route del fd00:9::/64 dev cpn0 table 77' }]);
  });
});
