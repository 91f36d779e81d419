import { describe, expect, it, test } from 'vitest';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { added, removed, updated } from '../../../src/core/reconcile/change.ts';
import type { Desired } from '../../../src/core/reconcile/desired.ts';
import {
  type Aimed,
  findRecurringDrift,
  haveSameAim,
  noteRepairs,
  pauseBefore,
  type Repairs,
} from '../../../src/core/reconcile/drift-damping.ts';
import { tunnelRule } from '../../../src/core/routing/tunnel-rules.ts';
import { desireFor, dialled, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';

const route = [removed('route', '192.168.50.0/24', 'cpn0', 'gone')];
const other = [removed('peer', 'abc', null, 'gone')];

/** The repairs of one who repairs as soon as it may, and whose work is undone at once, for so many seconds. */
function repairFor(seconds: number): { repairs: Repairs; times: number[] } {
  let repairs: Repairs = new Map();
  const times: number[] = [];
  for (let now = 0; now < seconds; now += 1) {
    if (pauseBefore(repairs, route, now) > 0) continue;
    repairs = noteRepairs(repairs, route, now);
    times.push(now);
  }
  return { repairs, times };
}

describe('repairs of the same', () => {
  it('are made at once three times, and then with growing pauses', () => {
    expect(repairFor(200).times).toEqual([0, 1, 2, 3, 5, 9, 17, 33, 65, 125, 185]);
  });

  it('never wait longer than a minute', () => {
    const { times } = repairFor(3600);
    const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(Math.max(...pauses)).toBe(60);
  });

  it('are counted per object: new drift is repaired at once, together with the old', () => {
    const { repairs } = repairFor(10);
    expect(pauseBefore(repairs, route, 10)).toBeGreaterThan(0);
    expect(pauseBefore(repairs, other, 10)).toBe(0);
    expect(pauseBefore(repairs, [...route, ...other], 10)).toBe(0);
  });

  it('of one pass count once for each change, also of the same object', () => {
    const twice = noteRepairs(new Map(), [...route, ...route, ...other], 0);
    expect(noteRepairs(twice, route, 700).get('route 192.168.50.0/24')).toEqual([700]);
    expect(findRecurringDrift(noteRepairs(twice, route, 1), 1)).toEqual([
      { what: 'route 192.168.50.0/24', repairs: 3, pause: 1 },
    ]);
  });

  it('never wait where they protect the host: packet rules, and forwarding that is turned off', () => {
    const rules = [added('firewall', 'inet cpn_cpn0', [], 'a connector forwards packets')];
    const shut = [updated('sysctl', 'net.ipv4.conf.cpn0.forwarding', '1', '0', 'nothing is forwarded here')];
    const open = [updated('sysctl', 'net.ipv4.conf.cpn0.forwarding', '0', '1', 'a connector forwards packets')];
    const often = (changes: typeof rules) =>
      Array.from({ length: 9 }).reduce<Repairs>((noted) => noteRepairs(noted, changes, 0), new Map());
    for (const each of [rules, shut]) expect(pauseBefore(often(each), each, 1)).toBe(0);
    expect(pauseBefore(often(rules), [...rules, ...route], 1)).toBe(0);
    expect(pauseBefore(often(open), open, 1)).toBeGreaterThan(0);
    expect(findRecurringDrift(often(rules), 1)).toEqual([{ what: 'firewall inet cpn_cpn0', repairs: 9, pause: 0 }]);
  });

  it('never wait where a change that protects the host comes with others', () => {
    const rules = added('firewall', 'inet cpn_cpn0', [], 'a connector forwards packets');
    const { repairs } = repairFor(10);
    expect(pauseBefore(repairs, route, 10)).toBeGreaterThan(0);
    expect(pauseBefore(repairs, [...route, rules], 10)).toBe(0);
    const all = noteRepairs(
      noteRepairs(noteRepairs(noteRepairs(repairs, [rules], 8), [rules], 9), [rules], 9),
      [rules],
      9,
    );
    for (const changes of [
      [...route, rules],
      [rules, ...route],
    ])
      expect(pauseBefore(all, changes, 10)).toBe(0);
  });

  it('are recurring drift from the third on', () => {
    const noted = (times: number) =>
      Array.from({ length: times }).reduce<Repairs>((repairs) => noteRepairs(repairs, route, 0), new Map());
    expect([1, 2, 3, 4, 5].map((times) => findRecurringDrift(noted(times), 0).map(({ pause }) => pause))).toEqual([
      ...[[], []],
      ...[[1], [2], [4]],
    ]);
  });

  it('wait where another setting of the kernel is turned off, or forwarding is turned on again', () => {
    const filter = [updated('sysctl', 'net.ipv4.conf.cpn0.rp_filter', '2', '0', 'differs')];
    const often = [0, 1, 2, 3].reduce<Repairs>((noted) => noteRepairs(noted, filter, 0), new Map());
    expect(pauseBefore(often, filter, 0)).toBe(2);
    expect(pauseBefore(often, [], 0)).toBe(0);
  });

  it('of an interface as a whole are one thing', () => {
    const gone = [removed('interface', 'cpn0', { mtu: 1420 }, 'not joined')];
    const often = [0, 1, 2, 3].reduce<Repairs>((noted) => noteRepairs(noted, gone, 0), new Map());
    expect(findRecurringDrift(often, 0)).toEqual([{ what: 'interface cpn0', repairs: 4, pause: 2 }]);
    expect(findRecurringDrift(often, 599)).not.toEqual([]);
    expect(findRecurringDrift(often, 600)).toEqual([]);
  });

  it('are counted per setting of an interface', () => {
    const mend = (setting: string) => [updated('interface', 'cpn0', { [setting]: 1 }, { [setting]: 2 }, 'differs')];
    const repairs = ['mtu', 'listen port', 'state'].reduce(
      (noted: Repairs, setting) => noteRepairs(noted, mend(setting), 0),
      new Map(),
    );
    expect(findRecurringDrift(repairs, 0)).toEqual([]);
  });

  it('are dropped after ten minutes without drift', () => {
    const { repairs } = repairFor(10);
    expect(findRecurringDrift(repairs, 10)).toEqual([{ what: 'route 192.168.50.0/24', repairs: 6, pause: 8 }]);
    expect(findRecurringDrift(repairs, 610)).toEqual([]);
    expect(noteRepairs(repairs, [], 610).size).toBe(0);
  });

  it('are no recurring drift while they are few', () => {
    expect(findRecurringDrift(repairFor(2).repairs, 2)).toEqual([]);
  });
});

const lan = prefix('192.168.50.0/24');
const edge = peer(2, { type: 'connector', endpoint: dialled(2), routes: [lan] });
const laptop = peer(1);

/** What a pass of one of the two works towards with this around it. */
function aim(self: Peer, around: Partial<Underlay> = {}): Aimed {
  const there = { ...underlay, ...around };
  const on = { ...usualConstraints, underlay: there };
  const desired = desireFor(self, network([laptop, edge]), { routeTable: '8350' }, on);
  return { desired, actual: { rules: [], routes: [], underlay: there } };
}

const inLan = { connected: [...underlay.connected, { prefix: lan, link: 'eth1' }] };

describe('the aim of two passes', () => {
  test.each<[string, Peer, Partial<Underlay>]>([
    ['the host is in a network that a route leads to', laptop, inLan],
    [
      'a VPN takes everything',
      laptop,
      { routed: ['0.0.0.0/1', '128.0.0.0/1'].map((wide) => ({ prefix: prefix(wide), link: 'tun0' })) },
    ],
    ['the underlay has another MTU', laptop, { underlayMtu: 1400 }],
    ['a connector has an address in its LAN', edge, inLan],
  ])('is another where %s', (_, self, around) => {
    expect(haveSameAim(aim(self), aim(self, around))).toBe(false);
    expect(haveSameAim(aim(self, around), aim(self, around))).toBe(true);
  });

  test('is another where rules of others are asked before ours', () => {
    const here = aim(laptop);
    const ruled = { ...here, actual: { ...here.actual, rules: [{ ...tunnelRule, table: '52', protocol: 'kernel' }] } };
    expect(haveSameAim(here, ruled)).toBe(false);
  });

  test.each<[string, Partial<Desired>]>([
    ['configuration', { config: { ...aim(laptop).desired.config, mtu: 1280 } }],
    ['routes', { routes: [] }],
    ['policy rules', { rules: [tunnelRule] }],
    ['packet rules', { firewall: { link: 'cpn0', rules: [] } }],
    ['interfaces whose forwarding it needs', { ingress: [{ link: 'eth9', closed: null, opening: null as never }] }],
    ['settings of the kernel', { sysctls: { 'net.ipv4.conf.all.src_valid_mark': '1' } }],
    ['names in the hosts file', { hosts: '# cpn0' }],
    [
      'servers of names',
      { dns: { servers: [{ address: edge.address, port: 553 }], domains: ['office.cpn.internal'] } },
    ],
  ])('is another with other %s', (_, changed) => {
    const here = aim(laptop);
    expect(haveSameAim(here, { ...here, desired: { ...here.desired, ...changed } })).toBe(false);
    expect(haveSameAim(here, { ...here, desired: { ...here.desired } })).toBe(true);
  });

  test('is the same whatever else comes and goes', () => {
    const more = { links: [...underlay.links, { name: 'veth7', kind: 'other' } as const] };
    expect(haveSameAim(aim(laptop), aim(laptop, more))).toBe(true);
  });
});
