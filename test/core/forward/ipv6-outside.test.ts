import { describe, expect, it } from 'vitest';
import { findIpv6Exceptions, type Ipv6Inputs, isIpv6Excepted } from '../../../src/core/forward/ipv6-outside.ts';
import { ipv6Rules } from '../../../src/core/forward/ipv6-rules.ts';
import { boundsForwarding, firewallMarks, rejectsIpv6 } from '../../../src/core/forward/own-table.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { address, prefix, underlay } from '../samples.ts';

const host: Underlay = {
  ...underlay,
  addresses: [address('2001:db8:7::22')],
  connected: [{ prefix: prefix('2001:db8:7::/64'), link: 'eth0' }],
  routed: [],
  links: [
    { name: 'eth0', kind: 'card' },
    { name: 'docker0', kind: 'bridge', isInternal: true },
    { name: 'br0', kind: 'bridge' },
    { name: 'tailscale0', kind: 'other' },
    { name: 'veth0', kind: 'other' },
  ],
  tunnels: ['cpn1'],
  uplinks6: ['eth0', 'veth0'],
  resolvers: [address('2001:db8:53::1'), address('9.9.9.9')],
};
const inputs: Ipv6Inputs = {
  ...{ link: 'cpn0', underlay: host, api: [address('2001:db8:a::1')], endpoints: [], ports: [] },
  isStrict: false,
};
const excepted = (changes: Partial<Underlay>, isStrict = false) =>
  findIpv6Exceptions({ ...inputs, isStrict, underlay: { ...host, ...changes } }).prefixes.map((each) =>
    String(each.prefix),
  );
const always = ['2001:db8:7::/64', '2001:db8:a::1/128', '2001:db8:53::1/128'];
const routed = (text: string, protocol: string, gateway?: string) => ({
  ...{ prefix: prefix(text), link: 'eth0', protocol },
  ...(gateway !== undefined && { gateway: address(gateway) }),
});

describe('IPv6 that a full tunnel does not reject', () => {
  it('are the endpoints of IPv6 among those of both families: nft takes no other in a rule of IPv6', () => {
    const endpoints = ['203.0.113.7', '2001:db8::7'].map((host) => ({ host: address(host), port: 51820 }));
    const found = findIpv6Exceptions({ ...inputs, endpoints, api: [address('203.0.113.9'), address('2001:db8:a::1')] });
    expect([found.endpoints, found.prefixes.map((each) => String(each.prefix))]).toEqual([endpoints.slice(1), always]);
  });

  it('leaves by the tunnels, and by the interfaces of containers and other VPNs, but not by a card or an uplink', () => {
    const others = ['cpn1', 'docker0', 'br0', 'tailscale0', 'veth0'].map((link) => ({
      prefix: prefix('fd00::/64'),
      link,
    }));
    const used = { ...inputs, underlay: { ...host, connected: [...host.connected, ...others] } };
    expect(findIpv6Exceptions(used).links).toEqual(['cpn0', 'cpn1', 'docker0', 'lo', 'tailscale0']);
  });

  it('names no interface without IPv6: it comes and goes, and the rules stay', () => {
    expect(findIpv6Exceptions(inputs).links).toEqual(['cpn0', 'lo']);
  });

  it.each([
    ['the subnet, the control plane and the resolver', {}, always],
    ['the subnet of an address of DHCPv6', { routed: [routed('2001:db8:7::/64', 'ra')], connected: [] }, always],
    [
      'a static route of an administrator',
      { routed: [routed('2001:db8:5::/48', 'static', '2001:db8:7::1')] },
      ['2001:db8:5::/48', ...always],
    ],
    ['no route of a router advertisement', { routed: [routed('2001:db8:5::/48', 'ra', 'fe80::1')] }, always],
    ['no on-link route of one elsewhere', { routed: [routed('2001:db8:5::/64', 'ra')] }, always],
    ['no route as wide as the internet', { routed: [routed('2000::/3', 'static', '2001:db8:7::1')] }, always],
    [
      'no subnet wider than a /48',
      { connected: [...host.connected, { prefix: prefix('2400::/12'), link: 'eth0' }] },
      always,
    ],
  ])('is %s', (_what, changes, expected) => {
    expect(excepted(changes).toSorted()).toEqual([...expected].toSorted());
  });

  it.each([48, 56, 64])('is a subnet of this host of a /%d, which is not wider than a site', (length) => {
    const subnet = `2001:db8:9::/${length}`;
    expect(excepted({ connected: [...host.connected, { prefix: prefix(subnet), link: 'eth0' }] })).toContain(subnet);
    const wider = `2001:db8:8::/${47}`;
    expect(excepted({ connected: [{ prefix: prefix(wider), link: 'eth0' }] })).not.toContain(wider);
  });

  it('is an announced on-link route with an address of this host only up to a /64', () => {
    expect(excepted({ connected: [], routed: [routed('2001:db8:7::/64', 'ra')] })).toContain('2001:db8:7::/64');
    expect(excepted({ connected: [], routed: [routed('2001:db8:7::/56', 'ra')] })).not.toContain('2001:db8:7::/56');
    expect(excepted({ connected: [], routed: [routed('2001:db8:7::/64', 'ra', 'fe80::1')] })).not.toContain(
      '2001:db8:7::/64',
    );
  });

  it.each(['ra', 'dhcp'])(
    'does not leave by an interface of another kind with a route of %s: it leads outside',
    (protocol) => {
      const subnet = { prefix: prefix('2001:db8:6::/64'), link: 'tailscale0' };
      const announced = { ...routed('2001:db8:5::/64', protocol, 'fe80::1'), link: 'tailscale0' };
      const links = (...more: (typeof announced)[]) =>
        findIpv6Exceptions({ ...inputs, underlay: { ...host, connected: [subnet], routed: more } }).links;
      expect(links()).toContain('tailscale0');
      expect(links(announced)).not.toContain('tailscale0');
    },
  );

  it('has the first of several reasons: subnet, route, control plane, resolver', () => {
    const api = [address('2001:db8:53::1')];
    const { prefixes } = findIpv6Exceptions({ ...inputs, api });
    expect(prefixes.map(({ prefix: each, why }) => [each, why])).toContainEqual([
      '2001:db8:53::1/128',
      'the control plane',
    ]);
  });

  it('is no static route where the tunnel is strict', () => {
    expect(excepted({ routed: [routed('2001:db8:5::/48', 'static', '2001:db8:7::1')] }, true)).not.toContain(
      '2001:db8:5::/48',
    );
  });

  it('is no public subnet where the tunnel is strict, as any neighbour can announce one: only private ones, and the router', () => {
    const subnet = (text: string) => ({ prefix: prefix(text), link: 'eth0' });
    const announced = {
      connected: [...host.connected, subnet('2001:4860:4860::/64'), subnet('fd00:7::/64')],
      addresses: [...host.addresses, address('2620:fe::22'), address('fd00:8::22')],
      routed: [routed('2620:fe::/64', 'ra'), routed('fd00:8::/64', 'ra')],
      gateways: [address('192.168.1.1'), address('fe80::1'), address('2001:db8:7::1')],
    };
    const own = ['fd00:7::/64', 'fd00:8::/64', '2001:db8:7::1/128'];
    expect(excepted(announced, true).toSorted()).toEqual([...own, ...always.slice(1)].toSorted());
    expect(excepted(announced)).toEqual(expect.arrayContaining(['2001:4860:4860::/64', '2620:fe::/64']));
  });

  it.each([
    ['fe80::1', true],
    ['ff02::1', true],
    ['::1', true],
    ['2001:db8:7::9', true],
    ['2001:db8:a::1', true],
    ['2001:db8::1', false],
    ['fd00::1', false],
  ])('%s: %s', (text, expected) => {
    expect(isIpv6Excepted(address(text), findIpv6Exceptions(inputs))).toBe(expected);
  });
});

describe('the rules that reject the rest', () => {
  const endpoints = [{ host: address('2001:db8:e::1'), port: 51820 }];
  const rules = ipv6Rules(findIpv6Exceptions({ ...inputs, endpoints, ports: [51821, 51820] }));
  const texts = (chain: string) => rules.filter((rule) => rule.chain === chain).map(({ text }) => text);

  it('are these for what the host sends', () => {
    expect(texts('outgoing')).toEqual([
      'meta nfproto ipv4 accept',
      'oifname { "cpn0", "lo" } accept',
      'ct direction reply accept',
      'ct state untracked accept',
      'ip6 daddr { ::1/128, fe80::/10, ff00::/8, 2001:db8:7::/64, 2001:db8:a::1/128, 2001:db8:53::1/128 } accept',
      'icmpv6 type { 130, 131, 132, 133, 134, 135, 136, 137, 143 } accept',
      'udp sport { 546, 547 } udp dport { 546, 547 } accept',
      'meta mark & 0x0000ffff == 0x0000209d accept',
      'ip6 daddr . udp dport { 2001:db8:e::1 . 51820 } accept',
      'udp sport { 51820, 51821 } accept',
      'tcp flags & (fin|syn|rst|ack) == syn reject with tcp reset',
      'meta l4proto tcp accept',
      'meta nfproto ipv6 reject with icmpv6 type admin-prohibited',
    ]);
  });

  it('have no exception for the ports and marks of others in what the host forwards', () => {
    expect(texts('passing').filter((text) => /mark|port|icmpv6 type \{/.test(text))).toEqual([]);
    expect(texts('passing').at(-1)).toBe('meta nfproto ipv6 reject with icmpv6 type admin-prohibited');
  });

  it('are known by their marks, and bound nothing that is forwarded', () => {
    const firewall = firewallMarks({ link: 'cpn0', rules });
    expect(rejectsIpv6({ firewall })).toBe(true);
    expect(boundsForwarding({ firewall })).toBe(false);
    expect(rejectsIpv6({ firewall: null })).toBe(false);
  });
});
