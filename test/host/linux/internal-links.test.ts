import { describe, expect, it } from 'vitest';
import { maskPrefix } from '../../../src/core/net/cidr.ts';
import { findInternalLinks, findOverlayLinks } from '../../../src/host/linux/internal-links.ts';
import type { ShownLink, ShownRoute } from '../../../src/host/linux/ip/show.ts';
import { address } from '../../core/samples.ts';

const link = (name: string, kind: string | null, given: Partial<ShownLink> = {}, subnet?: string): ShownLink => ({
  ...{ index: 7, name, kind, mtu: 1500, up: true, carrier: true, loopback: false, alias: null },
  ...{ master: null, lower: null, isTap: false, hasVirtioHeader: false },
  addresses:
    subnet === undefined
      ? []
      : [{ address: address(subnet.split('/')[0] ?? ''), length: 24, subnet: maskPrefix(subnet) }],
  ...given,
});
const card = link('eth0', null);
const internal = (...links: ShownLink[]) => [...findInternalLinks(links, ['eth0'], [])];
/** The same in a container, where each text is a prefix, an interface and a gateway, if any. */
const inContainer = (links: ShownLink[], ...routes: string[]) => {
  const shown = routes.map((text): ShownRoute => {
    const [to = '', name = '', gateway] = text.split(' ');
    const rest = { table: 'main', protocol: 'boot', metric: 0, mtu: null, tos: null, source: null };
    return {
      prefix: maskPrefix(to),
      links: [name],
      gateways: gateway === undefined ? [] : [address(gateway)],
      ...rest,
    };
  });
  return [...findInternalLinks([link('eth0', 'veth', {}, '203.0.113.5/24'), ...links], ['eth0'], shown)];
};

describe('an interface leads to the containers and virtual machines of this host', () => {
  it('if it is a bridge of pairs and of devices of virtual machines, or has no member now', () => {
    const members = [
      link('veth1', 'veth', { master: 'docker0' }),
      link('vnet0', 'tun', { master: 'docker0', isTap: true }),
    ];
    expect(internal(card, link('docker0', 'bridge'), ...members)).toEqual(['docker0']);
    expect(internal(card, link('virbr0', 'bridge'))).toEqual(['virbr0']);
  });

  it('not if a network card is below it, through whatever lies in between', () => {
    const vlan = link('eth0.5', 'vlan', { lower: 'eth0', master: 'br0' });
    expect(internal(card, vlan, link('br0', 'bridge'), link('veth1', 'veth', { master: 'br0' }))).toEqual([]);
    const wifi = link('wlan0', null, { master: 'br0' });
    expect(internal(card, wifi, link('br0', 'bridge'))).toEqual([]);
    const below = ['macvlan', 'macvtap', 'ipvlan', 'macsec'].map((kind) => link(`${kind}0`, kind, { lower: 'eth0' }));
    expect(internal(card, ...below, link('bond0', 'bond'), link('team0', 'team'))).toEqual([]);
    // The other end is in another network namespace: this is a container.
    expect(internal(link('eth1', 'macvlan'), link('eth2', 'ipvlan'))).toEqual([]);
    expect(internal(card, link('docker0', 'bridge'), link('docker0.7', 'vlan', { lower: 'docker0' }))).toHaveLength(2);
  });

  it('if it is a pair, unless this host is a container itself: then only without a subnet and with a route to one address', () => {
    const pod = link('cali1', 'veth', {}, '169.254.1.1/32');
    const nspawn = link('ve-web', 'veth', {}, '192.168.7.1/28');
    expect(internal(card, pod, nspawn)).toEqual(['cali1', 've-web']);
    const second = link('eth1', 'veth', {}, '10.20.0.1/24');
    const routes = ['10.244.0.7/32 cali1', '10.20.0.9/32 eth1'];
    expect(inContainer([second, pod, link('cali2', 'veth')], ...routes)).toEqual(['cali1']);
    const docker = [link('docker0', 'bridge'), link('veth1', 'veth', { master: 'docker0' })];
    expect(inContainer(docker)).toEqual(['docker0']);
  });

  it('not if it is a network card of a container that has no address yet, or leads to a router', () => {
    const waiting = link('eth1', 'veth');
    expect(inContainer([waiting])).toEqual([]);
    // A neighbour announces such a prefix.
    expect(inContainer([waiting], '2001:db8::7/128 eth1', 'fe80::/64 eth1')).toEqual([]);
    expect(inContainer([waiting], '169.254.0.1/32 eth1', '10.0.0.0/8 eth1 169.254.0.1')).toEqual([]);
  });

  it('if it is a pair whose other end is here: by what else is in the bridge of that end', () => {
    const ends = [link('vh', 'veth', { lower: 'vb' }), link('vb', 'veth', { lower: 'vh', master: 'br0' })];
    const container = link('veth1', 'veth', { master: 'br0' });
    expect(internal(card, link('br0', 'bridge'), ...ends, container)).toEqual(['br0', 'vh']);
    expect(internal(card, link('br0', 'bridge'), ...ends, link('eth1', null, { master: 'br0' }))).toEqual([]);
    expect([...findInternalLinks([card, link('br0', 'bridge'), ...ends], ['br0'], [])]).toEqual([]);
    expect(internal(card, ...ends, link('br0', 'openvswitch'))).toEqual(['vb']);
    expect(internal(card, ...ends, link('br0', 'vrf'))).toEqual(['vh', 'vb']);
    const plain = [link('vh', 'veth', { lower: 'vb' }), link('vb', 'veth', { lower: 'vh' })];
    expect(internal(card, ...plain)).toEqual(['vh', 'vb']);
    expect(internal(card, ...plain, link('vb.5', 'vlan', { lower: 'vb', master: 'br0' }))).not.toContain('vh');
    // Two bridges that a pair joins.
    const joined = [
      link('va', 'veth', { lower: 'vz', master: 'br1' }),
      link('vz', 'veth', { lower: 'va', master: 'br0' }),
    ];
    const bridges = [link('br0', 'bridge'), link('br1', 'bridge'), ...joined];
    expect(internal(card, ...bridges)).toEqual(['br0', 'br1']);
    expect(internal(card, ...bridges, link('eth1', null, { master: 'br0' }))).toEqual([]);
  });

  it('if it is a device of a virtual machine, and no VPN', () => {
    const tap = link('tap0', 'tun', { isTap: true, hasVirtioHeader: true }, '172.16.0.1/30');
    expect(internal(card, tap)).toEqual(['tap0']);
    const vpns = [
      link('tap1', 'tun', { isTap: true }),
      link('tun0', 'tun'),
      link('wg0', 'wireguard'),
      link('gre1', 'gre'),
    ];
    expect(internal(card, ...vpns, link('flannel.1', 'vxlan', { lower: 'eth0' }))).toEqual([]);
    expect(internal(card, link('vboxnet0', null), link('vmnet8', null))).toEqual(['vboxnet0', 'vmnet8']);
  });

  it('not if it is that of a default route', () => {
    expect([...findInternalLinks([link('br0', 'bridge')], ['br0'], [])]).toEqual([]);
  });

  it('not if its kind is not known, or it lies on itself', () => {
    expect(
      internal(card, link('x0', 'rmnet'), link('a', 'vlan', { lower: 'b' }), link('b', 'vlan', { lower: 'a' })),
    ).toEqual([]);
  });
});

const overlays = (...links: ShownLink[]) => [...findOverlayLinks(links, ['eth0'])];

it('tunnels of each kind are overlays, and cards, bridges and VLANs of cards are not', () => {
  expect(overlays(link('eth0', null), link('vx0', 'vxlan'), link('gre1', 'gre'), link('wg0', 'wireguard'))).toEqual([
    'vx0',
    'gre1',
    'wg0',
  ]);
  expect(overlays(link('eth0', null), link('br0', 'bridge'), link('eth0.7', 'vlan', { lower: 'eth0' }))).toEqual([]);
});

it('so are bridges of them, and VLANs on these', () => {
  const links = [
    link('br0.7', 'vlan', { lower: 'br0' }),
    link('br0', 'bridge'),
    link('vx0', 'vxlan', { master: 'br0' }),
  ];
  expect(overlays(...links).toSorted()).toEqual(['br0', 'br0.7', 'vx0']);
});

it('an uplink is none, whatever it is', () => {
  expect(overlays(link('eth0', 'tun'))).toEqual([]);
});
