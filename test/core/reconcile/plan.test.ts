import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { noForwarding } from '../../../src/core/forward/ingress.ts';
import { unreadable, withoutTool } from '../../../src/core/forward/own-table.ts';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import type { Receipt } from '../../../src/core/host-state/receipt.ts';
import { commonFilterKey } from '../../../src/core/host-state/sysctl-keys.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { added, updated } from '../../../src/core/reconcile/change.ts';
import { type Desired, restoreConfig, withFormerRoutes } from '../../../src/core/reconcile/desired.ts';
import { isOurFirewall, isOurs, plan } from '../../../src/core/reconcile/plan.ts';
import { planCleanup } from '../../../src/core/reconcile/plan-cleanup.ts';
import { enablesForwarding, needsRules, pausesForwarding } from '../../../src/core/reconcile/plan-forwarding.ts';
import { recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import { isNamesStep, type Step } from '../../../src/core/reconcile/step.ts';
import { metricOf } from '../../../src/core/routing/place-route.ts';
import {
  address,
  bare,
  desireFor,
  dialled,
  keyPair,
  network,
  networksWithExit,
  options,
  peer,
  prefix,
  usualConstraints,
} from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const router: Actual = {
  ...bare,
  sysctls: {
    'net.ipv4.ip_forward': '0',
    'net.ipv4.conf.all.src_valid_mark': '0',
    'net.ipv4.conf.eth0.forwarding': '0',
    'net.ipv4.conf.eth1.forwarding': '0',
  },
  hosts: { block: null, trouble: null },
};

/** What a host of this network should be, seen from a peer that is chosen. */
const desires = fc
  .tuple(
    networksWithExit,
    fc.nat(),
    fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
    fc.boolean(),
    fc.constantFrom(null, '8350', '8351'),
  )
  .map(([map, at, [masquerade, acceptRoutes, full], hosts, routeTable]) => {
    const self = map.peers[at % map.peers.length] as Peer;
    const allowed = full ? [prefix('0.0.0.0/0')] : [];
    return desireFor(
      self,
      map,
      { options: { ...options, masquerade, acceptRoutes, hosts }, routeTable },
      { ...usualConstraints, allowed },
    );
  });

const kinds = (steps: readonly Step[]) => steps.map((step) => step.do);
const changes = (steps: readonly Step[]) => steps.flatMap((step) => step.changes);

const looseKey = 'net.ipv4.conf.cpn0.rp_filter';
const psk = (number: number) => new Secret(Buffer.alloc(32, number).toString('base64'));

const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const laptop = peer(3, { type: 'admin_device' });
const office = network([connector, laptop]);

function settled(desired: Desired): Actual {
  return simulate(router, plan(desired, router, now));
}

describe('a plan', () => {
  it('applied to a bare host gives what is desired, and a second one is empty', () => {
    fc.assert(
      fc.property(desires, (desired) => {
        expect(plan(desired, settled(desired), now)).toEqual([]);
      }),
    );
  });

  it('applied to a host that was something else before gives what is desired, and a second one is empty', () => {
    fc.assert(
      fc.property(desires, desires, (before, after) => {
        const actual = settled({ ...before, alias: after.alias });
        expect(plan(after, simulate(actual, plan(after, actual, now)), now)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it('names every change it makes, and takes as many steps as kinds of things differ', () => {
    const desired = desireFor(laptop, office);
    const steps = plan(desired, bare, now);
    expect(kinds(steps)).toEqual(['create-link', 'configure-device', 'configure-link']);
    expect(changes(steps).map(({ action, kind, target }) => `${action} ${kind} ${target}`)).toEqual([
      'add interface cpn0',
      `add peer ${connector.publicKey}`,
      'add address 10.77.0.3/24',
      'add route 192.168.50.0/24',
    ]);
  });

  it('holds no secret in what it prints', () => {
    const desired = desireFor(laptop, office);
    const private64 = keyPair(3).privateKey.reveal();
    expect(desired.config.privateKey.reveal()).toBe(private64);
    expect(JSON.stringify(plan(desired, bare, now))).not.toContain(private64);
  });

  it('names only the peer that differs', () => {
    const map = network([connector, laptop, peer(4, { endpoint: dialled(4) })]);
    const desired = desireFor(laptop, map);
    const actual = settled(desired);
    const spoiled = {
      ...actual,
      device: {
        ...actual.device,
        peers: actual.device?.peers.map((each) =>
          each.publicKey === peer(4).publicKey ? { ...each, keepalive: null } : each,
        ),
      },
    } as Actual;
    const [step, ...rest] = plan(desired, spoiled, now);
    expect(rest).toEqual([]);
    expect(step).toMatchObject({ do: 'configure-device', peers: [{ publicKey: peer(4).publicKey, keepalive: 25 }] });
    expect(step).not.toHaveProperty('privateKey');
  });

  it('leaves a learned endpoint alone while its handshake is fresh, also when it sets something else', () => {
    const desired = desireFor(laptop, office);
    const roamed = (latestHandshake: number, keepalive: number | null): Actual => {
      const actual = settled(desired);
      const endpoint = { host: address('198.51.100.9'), port: 4000 };
      return {
        ...actual,
        device: {
          ...actual.device,
          peers: actual.device?.peers.map((each) => ({ ...each, endpoint, latestHandshake, keepalive })),
        },
      } as Actual;
    };
    expect(plan(desired, roamed(now - 135, 25), now)).toEqual([]);
    expect(plan(desired, roamed(now - 136, 25), now)).toMatchObject([
      { peers: [{ endpoint: { host: '203.0.113.1', port: 51820 } }] },
    ]);
    expect(plan(desired, roamed(now - 10, null), now)).toMatchObject([{ peers: [{ endpoint: null, keepalive: 25 }] }]);
  });

  it('clears what is to be cleared', () => {
    const desired = desireFor(connector, office);
    const actual = settled(desired);
    const spoiled = {
      ...actual,
      device: {
        ...actual.device,
        peers: actual.device?.peers.map((each) => ({ ...each, keepalive: 25, presharedKey: psk(1) })),
      },
    } as Actual;
    expect(plan(desired, spoiled, now)).toMatchObject([
      { do: 'configure-device', peers: [{ keepalive: null, presharedKey: null }] },
    ]);
  });

  it('compares preshared keys by value, and reports none of them', () => {
    const plain = desireFor(laptop, office);
    const withKey = (presharedKey: Secret | null): Desired => ({
      ...plain,
      config: { ...plain.config, peers: plain.config.peers.map((each) => ({ ...each, presharedKey })) },
    });
    const reasons = (wanted: Secret | null, found: Secret | null) =>
      changes(plan(withKey(wanted), settled(withKey(found)), now)).map(({ reason }) => reason);
    expect([reasons(psk(1), psk(1)), reasons(null, null)]).toEqual([[], []]);
    for (const [wanted, found] of [
      [psk(1), psk(2)],
      [psk(1), null],
      [null, psk(2)],
    ] as const) {
      expect(reasons(wanted, found)).toEqual(['preshared key differ']);
      const [step] = plan(withKey(wanted), settled(withKey(found)), now);
      expect(step).toMatchObject({ do: 'configure-device', peers: [{ publicKey: connector.publicKey }] });
      const texts = [JSON.stringify([step, settled(withKey(found))]), inspect(step, { depth: 9, showHidden: true })];
      for (const key of [wanted, found]) for (const text of texts) expect(text).not.toContain(key?.reveal() ?? '?');
    }
  });

  it('adds before it removes', () => {
    const before = desireFor(laptop, office);
    const after = desireFor(
      laptop,
      network([peer(5, { type: 'connector', endpoint: dialled(5) }), laptop], { routes: [prefix('192.168.60.0/24')] }),
    );
    const steps = plan(after, settled(before), now);
    expect(kinds(steps)).toEqual(['configure-device', 'configure-link', 'remove-peers']);
    expect(steps[1]).toMatchObject({
      commands: [
        { add: 'route', prefix: '192.168.60.0/24' },
        { remove: 'route', prefix: '192.168.50.0/24' },
      ],
    });
  });

  it('takes over routes of a network that joined later, and none of another program', () => {
    const elsewhere = (link: string, kind: 'routed' | 'connected'): Actual => {
      const way = { prefix: prefix('192.168.50.0/24'), link };
      return { ...bare, underlay: { ...bare.underlay, [kind]: [way] } };
    };
    const desired = desireFor(laptop, office, {}, { ...usualConstraints, newerLinks: ['cpn1'] });
    for (const kind of ['routed', 'connected'] as const) {
      const steps = plan(desired, elsewhere('cpn1', kind), now);
      expect(steps.at(-1)).toMatchObject({
        commands: expect.arrayContaining([
          { add: 'route', prefix: '192.168.50.0/24', table: 'main', metric: 10_000, replaces: 0 },
        ]),
      });
      expect(changes(steps).at(-1)).toMatchObject({ action: 'update', before: 'cpn1', after: 'cpn0' });
      expect(JSON.stringify(plan(desired, elsewhere('eth1', kind), now))).not.toContain('replaces');
    }
  });

  it('restores the route to the range of the address, which the kernel makes but once', () => {
    const desired = desireFor(laptop, office);
    const up = settled(desired);
    expect(up.onLink).toEqual(['10.77.0.0/24']);
    const steps = plan(desired, { ...up, onLink: [], routes: [] }, now);
    expect(steps).toMatchObject([
      {
        commands: [
          { add: 'route', prefix: '10.77.0.0/24', source: '10.77.0.3' },
          { add: 'route', prefix: '192.168.50.0/24' },
        ],
      },
    ]);
    expect(changes(steps).map(({ action, target }) => `${action} ${target}`)).toEqual([
      'add 10.77.0.0/24',
      'add 192.168.50.0/24',
    ]);
    expect(simulate({ ...up, onLink: [], routes: [] }, steps)).toEqual(up);
  });

  it('leaves the route to the range to the kernel where the address comes or the interface goes up', () => {
    const desired = desireFor(laptop, office);
    const up = settled(desired);
    const ranges = (actual: Actual) =>
      changes(plan(desired, { ...actual, onLink: [] }, now)).map(({ target }) => target);
    expect(ranges({ ...up, link: up.link && { ...up.link, up: false } })).toEqual(['cpn0']);
    expect(ranges({ ...up, link: up.link && { ...up.link, addresses: [] } })).not.toContain('10.77.0.0/24');
    const alone = { ...desired, config: { ...desired.config, address: { address: laptop.address, length: 32 } } };
    expect(plan(alone, settled(alone), now)).toEqual([]);
  });

  it('makes the routes of IPv4 again that go with the last address, and not those of IPv6, which stay', () => {
    const six = prefix('fd50::/64');
    const map = network([connector, laptop], { routes: [...office.routes, six] });
    const desired = desireFor(laptop, map);
    const up = settled(desired);
    const other = { address: address('10.77.0.99'), length: 24 };
    const moved = { ...up, link: up.link && { ...up.link, addresses: [other] } };
    const added = plan(desired, moved, now).flatMap((step) =>
      step.do === 'configure-link'
        ? step.commands.flatMap((each) => ('add' in each && each.add === 'route' ? each.prefix : []))
        : [],
    );
    expect(added).toContain('192.168.50.0/24');
    expect(added).not.toContain(six);
  });

  it('takes over the route to its range from a network joined later', () => {
    const desired = desireFor(laptop, office, {}, { ...usualConstraints, newerLinks: ['cpn1'] });
    const connected = [...bare.underlay.connected, { prefix: prefix('10.77.0.0/24'), link: 'cpn1' }];
    const actual: Actual = { ...settled(desired), onLink: [], underlay: { ...bare.underlay, connected } };
    const steps = plan(desired, actual, now);
    expect(steps).toMatchObject([{ commands: [{ prefix: '10.77.0.0/24', source: '10.77.0.3', replaces: 0 }] }]);
    expect(changes(steps)).toMatchObject([{ action: 'update', before: 'cpn1', after: 'cpn0' }]);
  });

  it('leaves a route to the range that was made by hand', () => {
    const desired = desireFor(laptop, office);
    const up = settled(desired);
    const made = { prefix: prefix('10.77.0.0/24'), table: 'main', protocol: 'boot', metric: 0 };
    expect(plan(desired, { ...up, routes: [...up.routes, made] }, now)).toEqual([]);
  });

  it('takes the routes of wg-quick for ours, and leaves those of a routing daemon', () => {
    const last = desireFor(laptop, office).config;
    const desired = withFormerRoutes(desireFor(laptop, network([connector, laptop], { routes: [] })), last);
    const routes = [
      { prefix: prefix('192.168.50.0/24'), table: 'main', protocol: 'boot', metric: 0 },
      { prefix: prefix('192.168.60.0/24'), table: 'main', protocol: 'bird', metric: 20 },
    ];
    expect(plan(desired, { ...settled(desired), routes }, now)).toMatchObject([
      { commands: [{ remove: 'route', prefix: '192.168.50.0/24' }] },
    ]);
  });

  describe('the metric of a route', () => {
    const lan = prefix('192.168.50.0/24');
    const desired = desireFor(laptop, office);
    const allowing = desireFor(laptop, office, {}, { ...usualConstraints, allowed: [lan] });
    const withRoutes = (...routes: Actual['routes']): Actual => ({ ...settled(desired), routes });
    const route = (metric: number | null, protocol = '157') => ({ prefix: lan, table: 'main', protocol, metric });

    it('is above those of local networks, unless a person lets the route through', () => {
      expect(settled(desired).routes).toEqual([route(10_000)]);
      expect(settled(allowing).routes).toEqual([route(0)]);
    });

    it.each([
      ['of the version before', desired, route(0), 10_000, 'a local network with this prefix comes first'],
      ['of wg-quick', desired, route(0, 'boot'), 10_000, 'a local network with this prefix comes first'],
      ['of a route that is let through now', allowing, route(10_000), 0, 'it is let through'],
    ])('%s is changed in one line, the new route before the old one goes', (_whose, wanted, found, metric, reason) => {
      const actual = withRoutes(found);
      const steps = plan(wanted, actual, now);
      expect(steps).toMatchObject([
        {
          commands: [
            { add: 'route', metric },
            { remove: 'route', metric: found.metric },
          ],
        },
      ]);
      expect(changes(steps)).toEqual([
        { action: 'update', kind: 'route', target: lan, before: { metric: found.metric }, after: { metric }, reason },
      ]);
      const after = simulate(actual, steps);
      expect(after.routes).toEqual([route(metric)]);
      expect(plan(wanted, after, now)).toEqual([]);
    });

    it('of a second route to the prefix, which an interruption leaves, goes alone', () => {
      const steps = plan(desired, withRoutes(route(0), route(10_000)), now);
      expect(steps).toMatchObject([{ commands: [{ remove: 'route', metric: 0 }] }]);
      expect(changes(steps)).toMatchObject([{ action: 'remove', target: lan, reason: 'another metric' }]);
    });

    it('is left alone where a routing daemon gave it, or the platform reports none', () => {
      for (const found of [route(20, 'bird'), route(null, 'boot')])
        expect(plan(desired, withRoutes(found), now)).toEqual([]);
    });

    it('of a default route is the usual one: its table has no other', () => {
      const everything = network([connector, laptop], { routes: [prefix('0.0.0.0/0')] });
      const full = desireFor(laptop, everything, {}, { ...usualConstraints, allowed: [prefix('0.0.0.0/0')] });
      expect(settled(full).routes).toMatchObject([{ table: '8349', metric: 0 }]);
    });

    it('is never 0 for IPv6', () => {
      const six = prefix('fd07::/64');
      expect([metricOf(six, desired), metricOf(six, { allowed: [six] })]).toEqual([10_000, 1024]);
    });
  });

  it('sets packet rules before it forwards', () => {
    const steps = kinds(plan(desireFor(connector, office), router, now));
    expect(steps.slice(0, 2)).toEqual(['create-link', 'set-firewall']);
    expect(steps.slice(-3)).toEqual(['set-sysctl', 'set-sysctl', 'set-sysctl']);
  });

  it('detects packet rules of our name that are not ours', () => {
    const ours = ['forward cpn accept-new 12', 'postrouting cpn masquerade 34'];
    const receipt = recordSteps([], [{ do: 'set-firewall', firewall: { link: 'cpn0', rules: [] }, changes: [] }], bare);
    const isOur = (firewall: Actual['firewall'], by: Receipt = []) => isOurFirewall({ firewall }, by);
    expect([isOur(null), isOur([]), isOur(ours)]).toEqual([true, true, true]);
    expect([isOur([unreadable]), isOur([withoutTool])]).toEqual([true, true]);
    expect([isOur([...ours, 'forward drop all']), isOur(['forward like cpn 12'])]).toEqual([false, false]);
    expect(isOur(['forward drop all'], receipt)).toBe(true);
  });

  it('marks the steps that open the host, which wait for the packet rules', () => {
    const to = (key: string, value: string): Step => ({
      do: 'set-sysctl',
      key,
      value,
      receipt: 'none',
      changes: [updated('sysctl', key, '0', value, 'test')],
    });
    const steps = [
      to('net.ipv4.ip_forward', '1'),
      to('net.ipv4.conf.cpn0.forwarding', '1'),
      to('net.ipv4.conf.cpn0.forwarding', '0'),
      to('net.ipv4.conf.cpn0.rp_filter', '1'),
      { ...to('net.ipv4.conf.eth1.forwarding', '0'), changes: [] },
      { ...to('net.ipv4.conf.cpn0.rp_filter', '0'), changes: [] },
      { do: 'set-firewall', firewall: { link: 'cpn0', rules: [] }, changes: [added('firewall', 'x', [], 'test')] },
    ] satisfies Step[];
    const yes = (is: (step: Step) => boolean) => steps.flatMap((step, index) => (is(step) ? index : []));
    expect(yes(enablesForwarding)).toEqual([0, 1]);
    expect(yes(pausesForwarding)).toEqual([4]);
    expect(yes((step) => step.changes.some(needsRules))).toEqual([0, 1, 6]);
    expect(yes(isNamesStep)).toEqual([]);
    expect(isNamesStep({ do: 'remove-hosts', link: 'cpn0', changes: [] })).toBe(true);
    expect(isNamesStep({ do: 'set-hosts', link: 'cpn0', block: '', changes: [] })).toBe(true);
  });

  it('goes back to the tunnel of an earlier file, with its default route only where rules keep the rest out', () => {
    const exit = prefix('0.0.0.0/0');
    const full = { ...usualConstraints, allowed: [exit] };
    const earlier = desireFor(laptop, { ...office, routes: [exit, prefix('192.168.50.0/24')] }, {}, full);
    const hosts = desireFor(laptop, { ...office, routes: [] });
    expect(restoreConfig(hosts, earlier.config)).toEqual({
      ...hosts,
      config: earlier.config,
      routes: ['192.168.50.0/24'],
    });
    expect(restoreConfig(earlier, earlier.config).routes.toSorted()).toEqual([exit, '192.168.50.0/24']);
  });

  it('detects an interface of our name that is not ours', () => {
    const desired = desireFor(laptop, office);
    const actual = settled(desired);
    const foreign = {
      ...actual,
      link: actual.link && { ...actual.link, alias: null },
      device: { ...actual.device, publicKey: keyPair(99).publicKey },
    } as Actual;
    const receipt: Receipt = [{ made: 'interface', link: 'cpn0' }];
    const blank = { ...foreign, device: { ...foreign.device, publicKey: null, peers: [] } } as Actual;
    expect(isOurs(desired, actual, [])).toBe(true);
    expect(isOurs(desired, { ...actual, link: actual.link && { ...actual.link, alias: null } }, [])).toBe(true);
    expect(isOurs(desired, bare, [])).toBe(true);
    expect(isOurs(desired, foreign, receipt)).toBe(false);
    expect(isOurs(desired, blank, receipt)).toBe(true);
    expect(isOurs(desired, blank, [])).toBe(false);
    // Another program adds peers before it sets its key.
    const peopled = { ...blank, device: { ...blank.device, peers: actual.device?.peers.slice(0, 1) } } as Actual;
    expect(peopled.device?.peers).toHaveLength(1);
    expect(isOurs(desired, peopled, receipt)).toBe(false);
    expect(isOurs(desired, peopled, [])).toBe(false);
    expect(isOurs(desired, { ...blank, device: foreign.device }, receipt)).toBe(false);
    expect(isOurs(desired, { ...blank, device: null }, receipt)).toBe(false);
  });
});

describe('a receipt', () => {
  it('takes a host back to what it was', () => {
    fc.assert(
      fc.property(desires, (desired) => {
        const steps = plan(desired, router, now);
        const receipt = recordSteps([], steps, router);
        const up = simulate(router, steps);
        expect(simulate(up, planCleanup(receipt, up))).toEqual(router);
      }),
    );
  });

  it('does not name what comes and goes with the interface', () => {
    const desired = desireFor(connector, office);
    const steps = plan(desired, router, now);
    expect(changes(steps)).toContainEqual(expect.objectContaining({ kind: 'sysctl', target: looseKey, after: '2' }));
    const strict = { ...settled(desired), sysctls: { ...settled(desired).sysctls, [looseKey]: '1' } };
    const repair = plan(desired, strict, now);
    expect(repair).toMatchObject([{ do: 'set-sysctl', key: looseKey, value: '2' }]);
    expect(JSON.stringify([recordSteps([], steps, router), recordSteps([], repair, strict)])).not.toContain(looseKey);
    const filtering = (own: string, common: string): Actual => ({
      ...settled(desired),
      sysctls: { ...settled(desired).sysctls, [looseKey]: own, [commonFilterKey]: common },
    });
    expect(plan(desired, filtering('0', '0'), now)).toEqual([]);
    expect(plan(desired, filtering('1', '2'), now)).toEqual([]);
    expect(plan(desired, filtering('0', '1'), now)).toHaveLength(1);
  });

  it('records the state before the first change, not before the last', () => {
    const desired = desireFor(connector, office);
    const first = recordSteps([], plan(desired, router, now), router);
    const up = settled(desired);
    const cleared: Actual = { ...up, sysctls: { ...up.sysctls, 'net.ipv4.conf.all.src_valid_mark': '2' } };
    expect(recordSteps(first, plan(desired, cleared, now), cleared)).toEqual(first);
  });

  it('has the rules of a full tunnel for as long as there is one', () => {
    const exit = prefix('0.0.0.0/0');
    const map = network([connector, laptop], { routes: [exit, prefix('192.168.50.0/24')] });
    const full = desireFor(laptop, map, {}, { ...usualConstraints, allowed: [exit] });
    const entered = recordSteps([], plan(full, bare, now), bare);
    expect(entered.map(({ made }) => made)).toContain('rules');
    const up = simulate(bare, plan(full, bare, now));
    const fewer = desireFor(laptop, { ...map, routes: [exit] }, {}, { ...usualConstraints, allowed: [exit] });
    expect(recordSteps(entered, plan(fewer, up, now), up)).toBe(entered);
    const split = desireFor(laptop, map);
    expect(recordSteps(entered, plan(split, up, now), up).map(({ made }) => made)).not.toContain('rules');
    expect(recordSteps([], plan(split, bare, now), bare).map(({ made }) => made)).not.toContain('rules');
  });

  it('leaves a sysctl that was right before us, and one that another program changed since', () => {
    const on = { ...router.sysctls, 'net.ipv4.ip_forward': '1', 'net.ipv4.conf.eth0.forwarding': '1' };
    const forwarding: Actual = { ...router, sysctls: on };
    const desired = desireFor(connector, office, { forwarding: { ...noForwarding, sysctls: on } });
    expect(recordSteps([], plan(desired, forwarding, now), forwarding).map(({ made }) => made)).toEqual([
      'interface',
      'firewall',
    ]);
    const receipt = recordSteps([], plan(desireFor(connector, office), router, now), router);
    const changed: Actual = { ...settled(desired), sysctls: { ...settled(desired).sysctls, ...on } };
    expect(kinds(planCleanup(receipt, changed))).toEqual(['delete-link', 'remove-firewall']);
  });

  it('has nothing to take back from a host that lost everything', () => {
    const receipt = recordSteps([], plan(desireFor(connector, office), router, now), router);
    expect(planCleanup(receipt, router)).toEqual([]);
  });
});
