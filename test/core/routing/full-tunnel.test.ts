import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { mainPriority, rulePriority } from '../../../src/core/host-state/marks.ts';
import { formatRule, type Rule, sameRule } from '../../../src/core/host-state/policy-rule.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { planCleanup } from '../../../src/core/reconcile/plan-cleanup.ts';
import { recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import type { RouteConstraints } from '../../../src/core/routing/guard.ts';
import { reportOutside } from '../../../src/core/routing/outside-report.ts';
import { isOfPair } from '../../../src/core/routing/route-table.ts';
import {
  findOurRules,
  findPairs,
  mainRule,
  rulesBehind,
  tunnelRule,
  tunnelRules,
} from '../../../src/core/routing/tunnel-rules.ts';
import { address, bare, desireFor, dialled, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const everything = prefix('0.0.0.0/0');
const allowing = (...texts: string[]): RouteConstraints => ({ ...usualConstraints, allowed: texts.map(prefix) });
const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const laptop = peer(3, { type: 'admin_device' });
const exit = network([connector, laptop], { routes: [everything] });
const host: Actual = { ...bare, sysctls: { 'net.ipv4.conf.all.src_valid_mark': '0' } };
const full = desireFor(laptop, exit, {}, allowing('0.0.0.0/0'));
const split = desireFor(laptop, network([connector, laptop]));

const settle = (desired: typeof full, from = host) => simulate(from, plan(desired, from, now));
const targets = (desired: typeof full, actual: Actual) =>
  plan(desired, actual, now)
    .flatMap((step) => step.changes)
    .map(({ action, kind, target }) => `${action} ${kind} ${target}`);
const by = (rule: Rule, priority: number, protocol = '0'): Rule => ({ ...rule, priority, protocol });

const { end } = rulePriority;

/** Wherever the host is killed between two commands, each `goto` of ours has its target: else the tunnel takes the answers. */
function expectTargets(from: Actual, steps: readonly Step[]): void {
  const links = steps.flatMap((step) => (step.do === 'configure-link' ? [step] : []));
  const commands = links.flatMap((step) => step.commands.map((command) => ({ ...step, commands: [command] })));
  let actual = from;
  for (const step of commands) {
    const before = new Set(findLost(actual));
    actual = simulate(actual, [step]);
    expect(findLost(actual).filter((rule) => !before.has(rule))).toEqual([]);
  }
}

function findLost({ rules }: Actual): Rule[] {
  const ours = rules.filter((rule) => rule.protocol === '157' && rule.goto !== null && rule.more.length === 0);
  return ours.filter((rule) => !rules.some(({ priority }) => priority === rule.goto));
}

/** What wg-quick makes of our file: neither priorities nor protocols. */
const quick = [by(mainRule, 32764), by(tunnelRule, 32765)];

describe('a full tunnel', () => {
  it('has no rule for a resolver to which an accepted route leads, and does not report it outside', () => {
    const [inner, outer] = [address('192.168.50.53'), address('198.51.100.53')];
    const lan = prefix('192.168.50.0/24');
    const both = network([connector, laptop], { routes: [everything, lan] });
    const desire = (...resolvers: (typeof inner)[]) => {
      const around = { ...allowing('0.0.0.0/0'), underlay: { ...underlay, resolvers } };
      return desireFor(
        laptop,
        both,
        {},
        { ...around, tunnelPrefixes: { ...usualConstraints.tunnelPrefixes, present: [lan] } },
      );
    };
    const listed = (desired: typeof full) =>
      reportOutside('cpn0', desired, underlay).entries.flatMap(({ prefix: each, why }) =>
        why === 'a resolver' ? [each] : [],
      );
    const reasonOf = ({ report }: typeof full) => report.find(({ prefix: each }) => each === everything)?.reason;
    const alone = desire(inner, address('127.0.0.1'));
    expect([listed(alone), reasonOf(alone)]).toEqual([[], 'IPv6 goes outside the tunnel']);
    const mixed = desire(inner, outer);
    expect(listed(mixed)).toEqual(['198.51.100.53/32']);
    expect(reasonOf(mixed)).toBe('IPv6 and DNS queries to the resolver go outside the tunnel');
    expect(mixed.rules.map(({ to }) => to)).not.toContain('192.168.50.53/32');
  });

  it('is marked, has its route in a table of its own, and sends nothing in before everything is ready', () => {
    expect(full.config).toMatchObject({ fwmark: 0x209d });
    expect(full.report).toEqual([
      {
        prefix: '0.0.0.0/0',
        via: 'peer-1',
        state: 'taken',
        reason: 'IPv6 and DNS queries to the resolver go outside the tunnel',
      },
    ]);
    const steps = plan(full, host, now);
    expect(steps.map((step) => step.do)).toEqual(['create-link', 'configure-device', 'configure-link', 'set-sysctl']);
    expect(steps[1]).toMatchObject({ fwmark: 0x209d });
    const commands = steps[2]?.do === 'configure-link' ? steps[2].commands : [];
    expect(commands.slice(-7)).toMatchObject([
      { add: 'route', prefix: '0.0.0.0/0', table: '8349' },
      { add: 'rule', rule: { priority: end, table: null, goto: null } },
      { add: 'rule', rule: { from: '203.0.113.22/32', goto: end } },
      { add: 'rule', rule: { to: '198.51.100.53/32', goto: end } },
      { add: 'rule', rule: mainRule },
      { add: 'rule', rule: tunnelRule },
      { add: 'rule', rule: { priority: rulePriority.last, table: '8349' } },
    ]);
  });

  it('is taken down in the opposite order: the rules into the tunnel first, the target of others after them, the mark last', () => {
    const steps = plan(split, settle(full), now).filter((step) => step.do !== 'set-firewall');
    const commands = steps.flatMap((step) => (step.do === 'configure-link' ? step.commands : []));
    expect(commands).toMatchObject([
      { add: 'route', prefix: '192.168.50.0/24' },
      { remove: 'rule', rule: { priority: rulePriority.last, table: '8349' } },
      { remove: 'rule', rule: tunnelRule },
      { remove: 'rule', rule: mainRule },
      { remove: 'rule', rule: { to: '198.51.100.53/32' } },
      { remove: 'rule', rule: { from: '203.0.113.22/32' } },
      { remove: 'rule', rule: { priority: end, table: null, goto: null } },
      { remove: 'route', prefix: '0.0.0.0/0', table: '8349' },
    ]);
    expect(steps.at(-1)).toMatchObject({ do: 'configure-device', fwmark: null, peers: [] });
  });

  it.each([
    ['it is not allowed', desireFor(laptop, exit), 'is the default route'],
    [
      'another network has it',
      desireFor(
        laptop,
        exit,
        {},
        { ...allowing('0.0.0.0/0'), taken: [{ prefix: everything, by: 'network lab (cpn1)' }] },
      ),
      'overlaps 0.0.0.0/0 of network lab (cpn1)',
    ],
    [
      'it is one of IPv6',
      desireFor(laptop, network([connector, laptop], { routes: [prefix('::/0')] }), {}, allowing('::/0')),
      'is a default route of IPv6, for which this host has no address in the network',
    ],
  ])('is not made where %s', (_why, desired, reason) => {
    expect(desired).toMatchObject({ routes: [], rules: [], sysctls: {}, config: { fwmark: null } });
    expect(desired.report[0]).toMatchObject({ state: 'refused', reason });
  });

  it('of another network takes the default route', () => {
    const taken = [{ prefix: everything, by: 'network lab (cpn1)' }];
    expect(desireFor(laptop, network([connector, laptop]), {}, { ...usualConstraints, taken }).report[0]?.state).toBe(
      'taken',
    );
  });

  it('is made of two halves where those are allowed by name', () => {
    const halves = ['0.0.0.0/1', '128.0.0.0/1'];
    const map = network([connector, laptop], { routes: halves.map(prefix) });
    expect(desireFor(laptop, map).report.map((route) => route.reason)).toEqual([
      'is half of the default route',
      'is half of the default route',
    ]);
    const desired = desireFor(laptop, map, {}, allowing(...halves));
    const actual = settle(desired);
    expect(actual.routes.map(({ table }) => table)).toEqual(['8349', '8349']);
    expect(desired.rules.slice(-2)).toEqual([tunnelRule, { ...tunnelRule, priority: rulePriority.last }]);
    // wg-quick puts them into the main table, where they would swallow the tunnel's own packets.
    const inMain = {
      ...actual,
      routes: halves.map((each) => ({ prefix: prefix(each), table: 'main', protocol: 'boot', metric: 0 })),
    };
    expect(targets(desired, inMain)).toEqual(
      ['add', 'remove'].flatMap((action) => halves.map((each) => `${action} route ${each}`)),
    );
  });

  it('keeps out this host’s addresses, the control plane and the resolvers: IPv4 ones, each once', () => {
    const addresses = ['203.0.113.22', '2001:db8::22', '192.168.1.2'].map(address);
    const resolvers = ['127.0.0.53', '198.51.100.53', '198.51.100.53'].map(address);
    const rules = tunnelRules({ underlay: { ...underlay, addresses, resolvers }, api: [address('192.0.2.80')] }, true);
    expect(rules.map((rule) => `${rule.priority} ${formatRule(rule)}`)).toEqual([
      '31575 from all nop',
      '31570 from all fwmark 0x10000000/0x10000000 goto 31575',
      '31570 from 192.168.1.2/32 goto 31575',
      '31570 from 203.0.113.22/32 goto 31575',
      '31571 from all to 192.0.2.80/32 goto 31575',
      '31572 from all to 198.51.100.53/32 goto 31575',
      '31573 from all lookup main suppress_prefixlength 0',
      '31574 not from all fwmark 0x209d lookup 8349',
      '2147483647 not from all fwmark 0x209d lookup 8349',
    ]);
  });
});

describe('the rules of a full tunnel', () => {
  const actual = settle(full);
  const withRules = (rules: readonly Rule[]): Actual => ({ ...actual, rules });

  it.each(full.rules.map((rule) => [formatRule(rule), rule] as const))('are put back: %s', (words, lost) => {
    const spoiled = withRules(actual.rules.filter((rule) => rule !== lost));
    expect(targets(full, spoiled)).toEqual([`add rule ${lost.priority}: ${words}`]);
  });

  it.each([
    ['bears our mark', by(mainRule, 100, '157'), ['remove rule 100: from all lookup main suppress_prefixlength 0']],
    ['leads into our table', by(tunnelRule, 100), ['remove rule 100: not from all fwmark 0x209d lookup 8349']],
    [
      'bears our mark, and says what we never say',
      { ...by(mainRule, rulePriority.main, '157'), more: ['iif'] },
      ['remove rule 31573: from all lookup main suppress_prefixlength 0 iif'],
    ],
    ['another program owns', by(mainRule, 100), []],
  ])('are cleared of one that %s', (_what, rule, expected) => {
    expect(targets(full, withRules([...actual.rules, rule]))).toEqual(expected);
  });

  it('follow this host’s addresses, the new before the old', () => {
    const moved = { ...underlay, addresses: [address('203.0.113.23')] };
    const desired = desireFor(laptop, exit, {}, { ...allowing('0.0.0.0/0'), underlay: moved });
    expect(targets(desired, actual)).toEqual([
      'add rule 31570: from 203.0.113.23/32 goto 31575',
      'remove rule 31570: from 203.0.113.22/32 goto 31575',
    ]);
  });

  it('may be wg-quick’s, which stay; only the rules for excluded addresses are added', () => {
    const routes = actual.routes.map((route) => ({ ...route, protocol: 'boot' }));
    const started = { ...withRules(quick), routes };
    expect(targets(full, started)).toEqual([
      'add rule 32766: from all nop',
      'add rule 31570: from 203.0.113.22/32 goto 32766',
      'add rule 31572: from all to 198.51.100.53/32 goto 32766',
      'add rule 2147483647: not from all fwmark 0x209d lookup 8349',
    ]);
    expect(targets(full, settle(full, started))).toEqual([]);
  });

  it('continue behind wg-quick’s pair, wherever it is, and there is no moment without a target', () => {
    const routes = actual.routes.map((route) => ({ ...route, protocol: 'boot' }));
    const behind = settle(full, { ...withRules([by(mainRule, 32_762), by(tunnelRule, 32_763)]), routes });
    expect(behind.rules.filter((rule) => rule.protocol === '157').map((rule) => rule.goto ?? rule.priority)).toEqual([
      32_764,
      32_764,
      32_764,
      rulePriority.last,
    ]);
    // wg-quick's pair went: ours comes in its place.
    const alone = { ...behind, rules: behind.rules.filter((rule) => rule.protocol === '157') };
    const steps = plan(full, alone, now);
    expectTargets(alone, steps);
    expect(simulate(alone, steps).rules).toHaveLength(full.rules.length);
  });

  it('of an earlier version are replaced, the new before the old', () => {
    const previous = (rule: Rule): Rule => (rule.goto === null ? rule : { ...rule, goto: null, table: 'main' });
    const rules = full.rules.filter(({ priority }) => priority < rulePriority.end).map(previous);
    const steps = plan(full, withRules(rules), now);
    expectTargets(withRules(rules), steps);
    expect(steps.flatMap((step) => step.changes.map(({ action, target }) => `${action} ${target}`))).toEqual([
      'add 31575: from all nop',
      'add 31570: from 203.0.113.22/32 goto 31575',
      'add 31572: from all to 198.51.100.53/32 goto 31575',
      'add 2147483647: not from all fwmark 0x209d lookup 8349',
      'remove 31572: from all to 198.51.100.53/32 lookup main',
      'remove 31570: from 203.0.113.22/32 lookup main',
    ]);
  });

  it.each([
    ['ahead of what is kept out', [by(mainRule, 5000), by(tunnelRule, 5001)]],
    ['next to ours', [mainRule, tunnelRule, ...quick]],
    ['without the one of the main table', [by(tunnelRule, 32765)]],
    ['in the wrong order', [by(tunnelRule, 32764), by(mainRule, 32765)]],
  ])('are ours again where wg-quick’s are %s', (_what, rules) => {
    const mended = settle(full, withRules(rules));
    const left = mended.rules.filter((rule) => !full.rules.some((wanted) => sameRule(wanted, rule)));
    expect(findOurRules(left)).toEqual([]);
    expect(full.rules.every((wanted) => mended.rules.some((rule) => sameRule(wanted, rule)))).toBe(true);
  });

  it('settle, whatever rules there are, and leave those of others alone', () => {
    const words = fc.constantFrom(...full.rules, { ...mainRule, from: prefix('10.0.0.0/8') });
    const priorities = fc.oneof(
      fc.integer({ min: 1, max: mainPriority - 1 }),
      fc.constantFrom(...Object.values(rulePriority), 32764, 32765),
    );
    const rule = fc
      .tuple(words, priorities, fc.constantFrom('0', '157', 'static'), fc.constantFrom([], ['iif']))
      .map(([each, priority, protocol, more]): Rule => ({ ...each, priority, protocol, more }));
    const rules = fc.uniqueArray(rule, { comparator: (a, b) => a.priority === b.priority });
    fc.assert(
      fc.property(rules, (present) => {
        const before = withRules(present);
        const steps = plan(full, before, now);
        expectTargets(before, steps);
        const after = simulate(before, steps);
        expect(plan(full, after, now)).toEqual([]);
        // Rules of a pair belong to the accepted routes of some network, and to no full tunnel.
        const others = present.filter((each) => !findOurRules(present).includes(each) || isOfPair(each));
        expect(after.rules.filter((each) => others.includes(each))).toEqual(others);
        const cleanup = planCleanup([{ made: 'rules', link: 'cpn0' }], after);
        expectTargets(after, cleanup);
        const gone = simulate(after, cleanup);
        expect(gone.rules).toEqual(others);
      }),
    );
  });

  it('are another network’s business where this one has no tunnel', () => {
    expect(targets(split, { ...settle(split), rules: actual.rules })).toEqual([]);
  });
});

describe('the receipt of a full tunnel', () => {
  it('names the rules, which do not go with the interface', () => {
    const receipt = recordSteps([], plan(full, host, now), host);
    expect(receipt.map(({ made }) => made)).toEqual(['interface', 'rules', 'sysctl']);
    const remove: Step = { do: 'delete-link', link: 'cpn0', changes: [] };
    const lost = simulate(settle(full), [remove]);
    expect(simulate(lost, planCleanup(receipt, lost))).toEqual(host);
  });

  it('is struck out when the tunnel is given up, and is the same where nothing is new', () => {
    const receipt = recordSteps([], plan(full, host, now), host);
    const actual = settle(full);
    expect(recordSteps(receipt, plan(full, { ...actual, rules: [] }, now), actual)).toBe(receipt);
    expect(recordSteps(receipt, plan(split, actual, now), actual).map(({ made }) => made)).toEqual([
      'interface',
      'sysctl',
    ]);
  });
});

describe('the policy rules of a full tunnel', () => {
  const on = {
    ...usualConstraints,
    api: ['198.51.100.9', '127.0.0.1', '198.51.100.8', '2001:db8::9'].map(address),
    underlay: {
      ...underlay,
      addresses: ['203.0.113.23', '203.0.113.22', '2001:db8::22'].map(address),
      resolvers: ['127.0.0.53', '198.51.100.54', '198.51.100.53', '198.51.100.54'].map(address),
    },
  };
  const written = (rules: readonly Rule[]) => rules.map((rule) => `${rule.priority}: ${formatRule(rule)}`);
  const exceptions = (end: number) => [
    `31570: from all fwmark 0x10000000/0x10000000 goto ${end}`,
    ...['203.0.113.22', '203.0.113.23'].map((each) => `31570: from ${each}/32 goto ${end}`),
    ...['198.51.100.8', '198.51.100.9'].map((each) => `31571: from all to ${each}/32 goto ${end}`),
    ...['198.51.100.53', '198.51.100.54'].map((each) => `31572: from all to ${each}/32 goto ${end}`),
  ];
  const last = '2147483647: not from all fwmark 0x209d lookup 8349';

  it('except each address of the host, each control plane and each resolver, of IPv4 and not on loopback', () => {
    expect(written(tunnelRules(on, true))).toEqual([
      '31575: from all nop',
      ...exceptions(31_575),
      '31573: from all lookup main suppress_prefixlength 0',
      '31574: not from all fwmark 0x209d lookup 8349',
      last,
    ]);
    expect(written(tunnelRules(on, false)).join()).not.toContain('fwmark 0x10000000');
  });

  it('continue behind wg-quick’s pair, each of them', () => {
    const [tunnel, main] = [by(tunnelRule, 32_763), by(mainRule, 32_762)];
    expect(written(rulesBehind([tunnel, main], tunnelRules(on, true)))).toEqual([
      '32764: from all nop',
      ...exceptions(32_764),
      last,
    ]);
  });

  it('pair up with wg-quick’s only where one comes directly before the other, and neither is ours', () => {
    const pairsOf = (main: Rule, tunnel: Rule) => findPairs([main, tunnel]).length;
    expect(pairsOf(by(mainRule, 99), by(tunnelRule, 100))).toBe(1);
    expect(pairsOf(by(mainRule, 98), by(tunnelRule, 100))).toBe(0);
    expect(pairsOf(by(mainRule, 100), by(tunnelRule, 99))).toBe(0);
    expect(pairsOf(mainRule, tunnelRule)).toBe(0);
    expect(pairsOf(by(mainRule, 99, '157'), by(tunnelRule, 100))).toBe(0);
  });

  it('are removed from the last to the first, and the targets of others after them', () => {
    const foreign = by(mainRule, 5000);
    const quickPair = [by(mainRule, 99), by(tunnelRule, 100)];
    const found = findOurRules([foreign, ...quickPair, ...tunnelRules(on, false).toReversed()]);
    expect(found.map(({ priority }) => priority)).toEqual([
      ...[2_147_483_647, 31_574, 31_573, 31_572, 31_572, 31_571, 31_571, 31_570, 31_570, 100, 99],
      31_575,
    ]);
    expect(findOurRules([foreign, by(mainRule, 99)])).toEqual([]);
  });
});
