import { describe, expect, it } from 'vitest';
import { checkOutside } from '../../../src/core/doctor/check-outside.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { ipv6Key } from '../../../src/core/host-state/sysctl-keys.ts';
import { address, bare, desireFor, dialled, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';

/** What doctor says of a laptop with a full tunnel: `verdict found`. */
function examine(changes: Partial<Underlay>, isStrict = false): string[] {
  const self = peer(3, { type: 'admin_device' });
  const map = network([peer(1, { type: 'connector', endpoint: dialled(1) }), self], { routes: [prefix('0.0.0.0/0')] });
  const around = { ...laptop, ...changes };
  const desired = desireFor(
    self,
    map,
    {
      forwarding: { sysctls: { [ipv6Key]: '0' }, receipt: [], others: [], hasNft: true },
      ...(isStrict && { strict: { prefixes: [prefix('192.168.1.0/24')], tables: [] } }),
    },
    { ...usualConstraints, allowed: [prefix('0.0.0.0/0')], underlay: around },
  );
  const actual = { ...bare, underlay: around };
  return checkOutside({ map, self, enabled: true, desired, actual }).map(({ verdict, found }) => `${verdict} ${found}`);
}

const subnet = (text: string, link = 'eth0') => ({ prefix: prefix(text), link });
const own = subnet('2001:db8:7::/64');
const laptop: Underlay = {
  ...underlay,
  addresses: [address('192.168.1.22')],
  connected: [subnet('192.168.1.0/24')],
  routed: [],
  links: [
    { name: 'eth0', kind: 'card' },
    { name: 'docker0', kind: 'bridge', isInternal: true },
  ],
  uplinks6: ['eth0'],
  resolvers: [address('192.168.1.1')],
};
const inLan = (...subnets: ReturnType<typeof subnet>[]): Partial<Underlay> => ({
  connected: [...laptop.connected, ...subnets],
});
const routed = (text: string) => ({ prefix: prefix(text), link: 'eth0', protocol: 'dhcp' });

describe('IPv6 outside a full tunnel', () => {
  const announced = subnet('2001:4860:4860::/64');
  const rejected = (verdict: string, rest = '') => `${verdict} is rejected${rest}`;
  const isNoted = 'except for public subnets, which any neighbour can announce';

  it.each([
    ['nothing', {}, rejected('ok')],
    [
      'its subnet, and a private one',
      inLan(own, subnet('fd00::/64')),
      rejected('ok', ' except for 2001:db8:7::/64 on '),
    ],
    ['the subnet of its containers', inLan(own, subnet('2001:db8:c::/64', 'docker0')), rejected('ok', ' except for ')],
    ['a second public subnet', inLan(own, announced), rejected('note', ` ${isNoted}: `)],
    [
      'a public subnet without a default router',
      { ...inLan(announced), uplinks6: [] },
      rejected('note', ` ${isNoted}: 2001:4860:4860::/64 on eth0`),
    ],
    [
      'many',
      inLan(...Array.from({ length: 12 }, (_, at) => subnet(`2600:${at + 1}::/64`))),
      rejected('note', ` ${isNoted}: 2600:1::/64 on eth0, `),
    ],
  ])('is that to %s', (_what, changes, expected) => {
    expect(examine(changes).at(-1)).toContain(expected);
  });

  it('is no public subnet where the tunnel is strict', () => {
    expect(examine(inLan(own, announced), true).at(-1)).toBe('ok is rejected');
  });
});

describe('routes that lead past a full tunnel', () => {
  const hosts = Array.from({ length: 150 }, (_, at) => routed(`10.${100 + at}.0.0/17`));

  it('are listed problems first, then public ones, with how many are hidden', () => {
    const found = examine({ routed: [...hosts, routed('198.41.0.4/32'), routed('8.8.8.0/24')] });
    expect(found.slice(0, 2)).toEqual([
      'problem 8.8.8.0/24 on eth0 (dhcp) takes public addresses from the full tunnel',
      'note 198.41.0.4/32 on eth0 (dhcp)',
    ]);
    expect(found[10]).toBe('note there are 142 more');
  });
});

it('public resolvers outside of a strict tunnel are noted, of both families', () => {
  const resolvers = ['192.168.1.1', '9.9.9.9', '2620:fe::fe'].map(address);
  expect(examine({ resolvers }, true)).toContain('note all traffic to 9.9.9.9, 2620:fe::fe goes outside');
  expect(examine({}, true).filter((each) => each.startsWith('note'))).toEqual([]);
});
