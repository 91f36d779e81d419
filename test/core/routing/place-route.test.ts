import { describe, expect, it } from 'vitest';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { formatRule, isKernelRule, makeRule, type Rule } from '../../../src/core/host-state/policy-rule.ts';
import type { Receipt } from '../../../src/core/host-state/receipt.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { planCleanup } from '../../../src/core/reconcile/plan-cleanup.ts';
import { recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import { explainBypassRoute, isRoutedInto } from '../../../src/core/routing/bypass-route.ts';
import { placeRoutes } from '../../../src/core/routing/place-route.ts';
import { assignTable, findPairOf, isOfPair, rulePairOf } from '../../../src/core/routing/route-table.ts';
import { mainRule, tunnelRule } from '../../../src/core/routing/tunnel-rules.ts';
import { address, bare, desireFor, dialled, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const lan = prefix('192.168.50.0/24');
const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const laptop = peer(3, { type: 'admin_device' });
const office = network([connector, laptop]);
const desired = desireFor(laptop, office, { routeTable: '8350' });
const allowing = desireFor(laptop, office, { routeTable: '8350' }, { ...usualConstraints, allowed: [lan] });
const inOwn = { table: '8350', metric: 0 };
const inMain = { table: 'main', metric: 10_000 };

const host: Actual = { ...bare, underlay: { ...underlay, connected: [], routed: [] } };
const around = (changes: Partial<Actual['underlay']>): Actual => ({
  ...host,
  underlay: { ...host.underlay, ...changes },
});
const routed = (text: string, link = 'eth1') => ({ prefix: prefix(text), link });
const others = (rule: Partial<Rule>): Rule => ({ ...makeRule(100, { table: '100' }), protocol: '0', ...rule });
const settle = (from: Actual, wanted = desired) => simulate(from, plan(wanted, from, now));
const changes = (steps: readonly Step[]) => steps.flatMap((step) => step.changes);

describe('an accepted route', () => {
  it.each([
    ['nothing', {}],
    ['a wider local network', { connected: [routed('192.168.0.0/16')] }],
    [
      'a wider local network whose route a program made',
      { connected: [routed('192.168.0.0/16')], routed: [routed('192.168.0.0/16')] },
    ],
    ['a narrower route, another prefix', { routed: [routed('192.168.50.0/25'), routed('192.168.48.0/23')] }],
    ['the default route', { routed: [routed('0.0.0.0/0')] }],
  ])('is in the table of its network on a host with %s', (_what, changed) => {
    expect(placeRoutes(desired, around(changed))(lan)).toEqual(inOwn);
  });

  it.each([
    ['a wider static route', { routed: [routed('192.168.0.0/16')] }],
    ['half of the default route', { routed: [routed('128.0.0.0/1')] }],
    [
      'a wider route by another interface than the local network of that prefix',
      { connected: [routed('192.168.0.0/16')], routed: [routed('192.168.0.0/16', 'eth0')] },
    ],
    ['a wider blackhole', { refusing: [prefix('192.168.0.0/16')] }],
    ['an unreachable default route', { refusing: [prefix('0.0.0.0/0')] }],
  ])('is in the main table on a host with %s', (_what, changed) => {
    expect(placeRoutes(desired, around(changed))(lan)).toEqual(inMain);
  });

  it('stays in the main table of a host whose table is too large to read: a lookup finds it there', () => {
    const ours = { prefix: lan, table: 'main', protocol: '157', metric: 10_000 };
    const sampled = { ...around({ isSampled: true }), routes: [ours] };
    expect(placeRoutes(desired, sampled)(lan)).toEqual(inMain);
    expect(placeRoutes(desired, { ...sampled, routes: [{ ...ours, protocol: 'bird' }] })(lan)).toEqual(inOwn);
    expect(placeRoutes(desired, { ...sampled, routes: [{ ...ours, table: '8350' }] })(lan)).toEqual(inOwn);
    expect(placeRoutes(desired, { ...host, routes: [ours] })(lan)).toEqual(inOwn);
  });

  it('is in the main table while there is a later network that has not stood back yet', () => {
    const earlier = { ...desired, newerLinks: ['cpn1'] };
    expect(placeRoutes(earlier, around({ connected: [routed('192.168.0.0/16', 'cpn1')] }))(lan)).toEqual(inMain);
  });

  it.each([
    ['local', 0, '255', true],
    ['main', 32_766, 'main', true],
    ['default', 32_767, '253', true],
    ['main, by another priority', 32_765, 'main', false],
    ['another one', 32_766, '100', false],
  ])('is not moved by a rule of the kernel that a program restored: %s', (_, priority, table, isKernel) => {
    for (const protocol of ['0', 'boot']) expect(isKernelRule(others({ priority, table, protocol }))).toBe(isKernel);
    expect(isKernelRule(others({ priority, table, fwmark: 1 }))).toBe(false);
    expect(isKernelRule(others({ priority, table, more: ['iif'] }))).toBe(false);
  });

  it('is in the main table if rules of other programs exist, and not if all rules are of our networks', () => {
    const withRules = (...rules: Rule[]) => placeRoutes(desired, { ...host, rules })(lan);
    expect(withRules(others({}))).toEqual(inMain);
    expect(withRules(others({ priority: 40_000 }))).toEqual(inMain);
    const quick = [others({ ...mainRule, protocol: '0', priority: 32_764 })];
    quick.push(others({ ...tunnelRule, protocol: '0', priority: 32_765 }));
    expect(withRules(...quick, ...rulePairOf('8350'), ...rulePairOf('8351'), mainRule, tunnelRule)).toEqual(inOwn);
  });

  it('is in the main table where it is let through, of IPv6, or the platform has but that table', () => {
    expect(placeRoutes(allowing, host)(lan)).toEqual({ table: 'main', metric: 0 });
    expect(placeRoutes(desired, host)(prefix('fd07::/64'))).toEqual(inMain);
    expect(placeRoutes({ ...desired, routeTable: null }, host)(lan)).toEqual(inMain);
  });
});

describe('the plan of accepted routes', () => {
  it('makes the routes before the rules, the main table’s rule first, and names each', () => {
    const steps = plan(desired, host, now);
    const commands = steps.flatMap((step) => (step.do === 'configure-link' ? step.commands : []));
    const [main, own] = rulePairOf('8350');
    expect(commands.slice(-3)).toMatchObject([
      { add: 'route', prefix: lan, table: '8350' },
      { add: 'rule', rule: main },
      { add: 'rule', rule: own },
    ]);
    expect([main, own].map((rule) => `${rule.priority}: ${formatRule(rule)}`)).toEqual([
      '31470: from all lookup main suppress_prefixlength 0',
      '31471: from all lookup 8350',
    ]);
    expect(plan(desired, settle(host), now)).toEqual([]);
  });

  const up = settle(host);
  const inTables = (...tables: (readonly [string, number, string])[]): Actual => ({
    ...up,
    rules: [],
    routes: tables.map(([table, metric, protocol]) => ({ prefix: lan, table, metric, protocol })),
  });
  const overIt = { ...up.underlay, routed: [routed('192.168.0.0/16')] };

  it.each([
    ['what wg-quick made', desired, inTables(['main', 0, 'boot']), '8350', 'a local network comes first'],
    ['the version before', desired, inTables(['main', 10_000, '157']), '8350', 'a local network comes first'],
    ['another table of ours', desired, inTables(['8360', 0, '157']), '8350', 'a local network comes first'],
    ['what is let through now', allowing, up, 'main', 'it is let through'],
    [
      'a host with a wider static route now',
      desired,
      { ...up, underlay: overIt },
      'main',
      'another rule or route would come before its table',
    ],
    [
      'a host with rules of another VPN now',
      desired,
      { ...up, rules: [...up.rules, others({})] },
      'main',
      'another rule or route would come before its table',
    ],
  ])('moves a route of %s in one line, and at no moment is it nowhere', (_whose, wanted, actual, table, reason) => {
    const steps = plan(wanted, actual, now);
    const moves = changes(steps).filter(({ kind }) => kind === 'route');
    expect(moves).toEqual([
      {
        action: 'update',
        kind: 'route',
        target: lan,
        before: { table: actual.routes[0]?.table },
        after: { table },
        reason,
      },
    ]);
    expect(changes(steps).filter(({ kind }) => kind !== 'route')).toMatchObject(
      rulePairOf('8350').map(() => ({ action: table === 'main' ? 'remove' : 'add', kind: 'rule' })),
    );
    let moment = actual;
    for (const step of steps) {
      const commands = step.do === 'configure-link' ? step.commands : [];
      for (const command of commands) {
        moment = simulate(moment, [{ ...step, commands: [command] } as Step]);
        if (actual.routes[0]?.table !== '8360') expect([command, isRoutedInto(lan, moment)]).toEqual([command, true]);
      }
    }
    expect(moment.routes).toHaveLength(1);
    expect(plan(wanted, moment, now)).toEqual([]);
  });

  it('puts back a rule that is gone, and takes away a second route that an interruption left', () => {
    const [main, own] = rulePairOf('8350');
    for (const lost of [main, own]) {
      const kept = up.rules.filter((rule) => formatRule(rule) !== formatRule(lost));
      expect(plan(desired, { ...up, rules: kept }, now)).toMatchObject([{ commands: [{ add: 'rule', rule: lost }] }]);
    }
    const left = { prefix: lan, table: 'main', metric: 10_000, protocol: '157' };
    const steps = plan(desired, { ...up, routes: [...up.routes, left] }, now);
    expect(changes(steps)).toMatchObject([{ action: 'remove', target: lan, reason: 'it is in another table' }]);
  });

  it('leaves the route of a routing daemon, and the rules of another network', () => {
    const routes = [{ prefix: lan, table: 'main', metric: 20, protocol: 'bird' }];
    expect(plan(desired, { ...up, routes }, now)).toEqual([]);
    const both = { ...up, rules: [...up.rules, ...rulePairOf('8351')] };
    expect(plan(desired, both, now)).toEqual([]);
    const none = desireFor(laptop, { ...office, routes: [] }, { routeTable: '8350' });
    expect(settle(both, none).rules).toEqual(rulePairOf('8351'));
  });

  it('goes with a full tunnel of this or another network, whose rules come after', () => {
    const exit = network([connector, laptop], { routes: [prefix('0.0.0.0/0'), lan] });
    const full = desireFor(
      laptop,
      exit,
      { routeTable: '8350' },
      { ...usualConstraints, underlay: host.underlay, allowed: [prefix('0.0.0.0/0')] },
    );
    const tunnel: Actual = { ...host, sysctls: { 'net.ipv4.conf.all.src_valid_mark': '0' } };
    const after = settle(tunnel, full);
    expect(plan(full, after, now)).toEqual([]);
    expect(after.routes.map(({ table }) => table).sort()).toEqual(['8349', '8350']);
    const ofOthers = { ...up, rules: [...up.rules, ...full.rules] };
    expect(plan(desired, ofOthers, now)).toEqual([]);
    expect(Math.max(...rulePairOf('8399').map(({ priority }) => priority))).toBeLessThan(
      Math.min(...full.rules.map(({ priority }) => priority)),
    );
    const split = desireFor(laptop, office, { routeTable: '8350' });
    expect(settle(after, split).rules).toEqual(expect.arrayContaining([...rulePairOf('8350')]));
    expect(settle(after, split).rules).toHaveLength(2);
  });
});

describe('what leads past an accepted route in its own table', () => {
  const up = settle(host);
  const seen = (...connected: ReturnType<typeof routed>[]) => ({
    ...up,
    underlay: { ...up.underlay, connected },
  });
  it.each([
    ['192.168.50.0/24', [], null],
    ['192.168.50.0/24', [routed('192.168.0.0/16')], '192.168.50.0/24 leads to eth1, by the route to 192.168.0.0/16'],
    ['192.168.50.0/24', [routed('192.168.50.0/24')], '192.168.50.0/24 leads to eth1, by the route to 192.168.50.0/24'],
    // A local subnet within the route stays local, and is no reason to wait.
    ['192.168.50.0/24', [routed('192.168.50.0/25')], null],
    ['192.168.50.9/32', [routed('192.168.50.0/25')], '192.168.50.9/32 leads to eth1, by the route to 192.168.50.0/25'],
    ['192.168.50.0/24', [routed('192.168.51.0/24')], null],
    ['10.77.0.9/32', [routed('10.0.0.0/8')], null],
  ])('%s with %j', (asked, connected, why) => {
    expect(explainBypassRoute(prefix(asked), 'cpn0', seen(...connected))).toBe(why);
  });

  it('is everything without the rule that leads to the table', () => {
    const [main] = rulePairOf('8350');
    expect(isRoutedInto(lan, { ...up, rules: [main] })).toBe(false);
    expect(explainBypassRoute(lan, 'cpn0', { ...up, rules: [main] })).toBe(
      'no route to 192.168.50.0/24 leads into cpn0',
    );
  });
});

describe('the table of a network', () => {
  const owner = (link: string, day: number, ...tables: string[]) => ({
    interface: link,
    createdAt: `2026-01-0${day}T00:00:00Z`,
    receipt: tables.map((table) => ({ made: 'rules', link, table })) satisfies Receipt,
  });

  it('is the one that its receipt has, else the lowest that is free, the earlier network first', () => {
    const three = [owner('cpn2', 3), owner('cpn1', 2, '8351'), owner('cpn0', 1)];
    expect(['cpn0', 'cpn1', 'cpn2'].map((link) => assignTable(link, three, []))).toEqual(['8350', '8351', '8352']);
    expect(assignTable('cpn2', [owner('cpn2', 3)], [])).toBe('8350');
  });

  it('of two receipts that have the same is the earlier network’s; one that is none of ours counts for nothing', () => {
    const two = [owner('cpn0', 1, '8350'), owner('cpn1', 2, '8350')];
    expect(['cpn0', 'cpn1'].map((link) => assignTable(link, two, []))).toEqual(['8350', '8351']);
    expect(assignTable('cpn1', [owner('cpn0', 1, '8350'), owner('cpn1', 2, '8350', '8355')], [])).toBe('8355');
    expect(assignTable('cpn0', [owner('cpn0', 1, 'main', '254')], [])).toBe('8350');
  });

  it('that a receipt lost is the one that its routes are in, where no other network has it', () => {
    const two = [owner('cpn0', 1), owner('cpn1', 2, '8352')];
    expect(assignTable('cpn0', two, ['main', '8351'])).toBe('8351');
    expect(assignTable('cpn0', two, ['8352', '8349'])).toBe('8350');
    const none = [owner('cpn0', 1), owner('cpn1', 2)];
    expect(assignTable('cpn1', none, ['8355'])).toBe('8355');
    expect(assignTable('cpn0', none, ['8355'])).toBe('8355');
  });

  it('is none where all are taken', () => {
    const many = Array.from({ length: 51 }, (_, index) => owner(`cpn${index + 10}`, 1));
    const tables = many.map((each) => assignTable(each.interface, many, []));
    expect(new Set(tables).size).toBe(51);
    expect(tables.at(-1)).toBeNull();
  });

  it('is written down with what leads to it, and only its own rules are taken back', () => {
    const steps = plan(desired, host, now);
    const receipt = recordSteps([], steps, host);
    expect(receipt).toContainEqual({ made: 'rules', link: 'cpn0', table: '8350' });
    expect(receipt.filter(({ made }) => made === 'rules')).toHaveLength(1);
    const up = simulate(host, steps);
    expect(recordSteps(receipt, plan(desired, { ...up, rules: [] }, now), up)).toBe(receipt);
    const shared = { ...up, rules: [...up.rules, ...rulePairOf('8351'), mainRule, tunnelRule] };
    expect(simulate(shared, planCleanup(receipt, shared)).rules).toEqual([...rulePairOf('8351'), mainRule, tunnelRule]);
  });

  it('identifies its rules by priority, selector and protocol', () => {
    const [main, own] = rulePairOf('8351');
    expect([main, own].map(isOfPair)).toEqual([true, true]);
    const strangers = [
      { ...own, protocol: '0' },
      { ...own, priority: 31_471 },
      { ...main, priority: 31_473 },
      { ...main, from: prefix(`${address('192.0.2.1')}/32`) },
      mainRule,
    ];
    expect(strangers.map(isOfPair)).toEqual(strangers.map(() => false));
    expect(findPairOf('8351', [main, ...strangers, own])).toEqual([own, main]);
  });
});
