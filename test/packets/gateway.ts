/**
 * A host with a tunnel, a LAN, an uplink and containers, whose packet filter is that of a generated network. Every device is a tunnel
 * device, as WireGuard's is, with the other end in the test.
 *
 * @module
 */

import type { ServiceSocket } from '../../src/core/forward/access-filter.ts';
import { canChange } from '../../src/core/forward/own-table.ts';
import type { Firewall } from '../../src/core/forward/packet-rule.ts';
import type { Underlay } from '../../src/core/host-state/actual.ts';
import type { NetworkMap, Peer } from '../../src/core/map/model.ts';
import { type PrefixMap, parsePrefixMap } from '../../src/core/map/prefix-maps.ts';
import type { Address, Family } from '../../src/core/net/cidr.ts';
import { renderFirewall } from '../../src/host/linux/nft/own-table.ts';
import { renderChange } from '../../src/host/linux/nft/table-change.ts';
import { type AddressPlan, plans } from '../core/rules/generated-rules.ts';
import { address, desireFor, options, prefix, underlay, usualConstraints } from '../core/samples.ts';
import type { Host } from '../lab/host.ts';
import type { Lab } from '../lab/lab.ts';
import { Wire } from './wire.ts';

/** The addresses of one family around the gateway. The gateway is peer 1. */
export interface Place extends AddressPlan {
  readonly own: Address;
  /** In the LAN: the gateway's own address, and those of hosts in all parts of its routes. */
  readonly lanOwn: Address;
  readonly lan: readonly Address[];
  /** Behind the uplink: the gateway's own address, and hosts of the internet. */
  readonly uplinkOwn: Address;
  readonly internet: readonly Address[];
  /** Behind other connectors. */
  readonly far: readonly Address[];
  readonly container: Address;
  readonly maps: readonly PrefixMap[];
  /** Hosts of the mapped LAN, by their addresses there and in the network. */
  readonly mapped: readonly (readonly [local: Address, route: Address])[];
}

const mapped = ['1', '7', '64', '127', '254'].map(
  (host) => [address(`192.168.1.${host}`), address(`10.201.1.${host}`)] as const,
);

export const places: Readonly<Record<Family, Place>> = {
  4: {
    ...plans[4],
    routes: [
      ...['192.168.50.0/24', '192.168.50.64/26', '172.20.0.0/14', '10.201.1.0/24', '0.0.0.0/0'],
      ...['192.168.60.0/24', '10.99.0.0/16'],
    ].map(prefix),
    named: [...plans[4].named, ...['10.201.1.64/26', '10.201.1.7/32', '192.168.1.0/24', '10.99.128.0/17'].map(prefix)],
    own: address('10.77.0.1'),
    lanOwn: address('192.168.50.1'),
    lan: [
      '192.168.50.7',
      '192.168.50.63',
      '192.168.50.64',
      '192.168.50.127',
      '192.168.50.128',
      '172.20.0.1',
      '172.23.255.254',
    ].map((each) => address(each)),
    uplinkOwn: address('203.0.113.22'),
    internet: ['198.51.100.7', '8.8.8.8', '193.0.6.139'].map((each) => address(each)),
    far: ['192.168.60.1', '192.168.60.255', '10.99.0.1', '10.99.128.1'].map((each) => address(each)),
    container: address('172.17.0.2'),
    maps: [parsePrefixMap('10.201.1.0/24=192.168.1.0/24')],
    mapped,
  },
  6: {
    ...plans[6],
    routes: ['fd50::/64', 'fd50::40/122', 'fd20::/28', '::/0', 'fd60::/64', 'fd99::/32'].map(prefix),
    named: [...plans[6].named, prefix('fd99::/48')],
    own: address('fd77::1'),
    lanOwn: address('fd50::1'),
    lan: ['fd50::7', 'fd50::3f', 'fd50::40', 'fd50::7f', 'fd50::80', 'fd20::1', 'fd20:f:ffff::1'].map((each) =>
      address(each),
    ),
    uplinkOwn: address('2001:db8::22'),
    internet: ['2001:db8:1::7', '2606:4700::1111'].map((each) => address(each)),
    far: ['fd60::1', 'fd60::ffff', 'fd99::1', 'fd99:0:8000::1'].map((each) => address(each)),
    container: address('fd17::2'),
    maps: [],
    mapped: [],
  },
};

/** A port of the gateway's own address that leads to a container. */
export const publishedPort = { outside: 8080, inside: 80 } as const;

const forwarding = { 'net.ipv4.ip_forward': '1', 'net.ipv6.conf.all.forwarding': '1' };

/** What the gateway's own pass would observe around it. */
const around: Underlay = {
  ...underlay,
  addresses: [places[4], places[6]].flatMap((each) => [each.lanOwn, each.uplinkOwn]),
  connected: [
    ...['192.168.50.0/24', '192.168.1.0/24', 'fd50::/64'].map((each) => ({ prefix: prefix(each), link: 'lan0' })),
    ...['203.0.113.0/24', '2001:db8::/64'].map((each) => ({ prefix: prefix(each), link: 'up0' })),
    ...['172.17.0.0/16', 'fd17::/64'].map((each) => ({ prefix: prefix(each), link: 'docker0' })),
  ],
  routed: ['172.20.0.0/14', 'fd20::/28'].map((each) => ({ prefix: prefix(each), link: 'lan0' })),
  gateways: [],
  uplinks: ['up0'],
  links: [
    { name: 'lan0', kind: 'card' },
    { name: 'up0', kind: 'card' },
    { name: 'docker0', kind: 'bridge', isInternal: true },
  ],
  resolvers: [],
};

const prepare = `
set -e
for name in all default cpn0 lan0 up0 docker0; do
  echo 0 >/proc/sys/net/ipv4/conf/$name/rp_filter
  echo 0 >/proc/sys/net/ipv6/conf/$name/disable_ipv6
  echo 0 >/proc/sys/net/ipv6/conf/$name/accept_dad
done
${Object.keys(forwarding)
  .map((key) => `echo 1 >/proc/sys/${key.replaceAll('.', '/')}`)
  .join('\n')}
exec ip -batch -
`;

const layout = `
link set cpn0 up
link set lan0 up
link set up0 up
link set docker0 up
address add 10.77.0.1/24 dev cpn0
address add fd77::1/64 dev cpn0
address add 192.168.50.1/24 dev lan0
address add 192.168.1.1/24 dev lan0
address add fd50::1/64 dev lan0
address add 203.0.113.22/24 dev up0
address add 2001:db8::22/64 dev up0
address add 172.17.0.1/16 dev docker0
address add fd17::1/64 dev docker0
route add 172.20.0.0/14 dev lan0
route add fd20::/28 dev lan0
route add default dev up0
route add ::/0 dev up0
route add 192.168.60.0/24 dev cpn0
route add 10.99.0.0/16 dev cpn0
route add fd60::/64 dev cpn0
route add fd99::/32 dev cpn0
`;

/** As Docker publishes a port, and masquerades what containers begin. */
const containers = `
table inet containers {
  chain publish {
    type nat hook prerouting priority -100; policy accept;
    ip daddr 10.77.0.1 meta l4proto { tcp, udp } th dport ${publishedPort.outside} dnat ip to 172.17.0.2:${publishedPort.inside}
    ip6 daddr fd77::1 meta l4proto { tcp, udp } th dport ${publishedPort.outside} dnat ip6 to [fd17::2]:${publishedPort.inside}
  }
  chain hide {
    type nat hook postrouting priority 100; policy accept;
    ip saddr 172.17.0.0/16 oifname != "docker0" masquerade
    ip6 saddr fd17::/64 oifname != "docker0" masquerade
  }
}
`;

const devices = ['cpn0', 'lan0', 'up0', 'docker0'] as const;

/** Starts a gateway, with no rules of ours. */
export async function startGateway(lab: Lab): Promise<{ host: Host; wire: Wire }> {
  const host = await lab.addHost('gateway', { address: '198.18.0.1/24' });
  const wire = await Wire.start(host, devices);
  await host.exec(['sh', '-c', prepare], { input: layout });
  await wire.exchange({ nft: containers });
  return { host, wire };
}

/** A network, and how the gateway takes part in it. */
export interface GatewayCase {
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly masquerade: boolean;
  readonly maps: readonly PrefixMap[];
  /** True if the host forwards also without being a connector, as one with containers does. */
  readonly forwards: boolean;
  /** The control plane, as this host reaches it. */
  readonly services: readonly ServiceSocket[];
}

/** Renders the gateway's packet filter, as a pass loads it. */
export function renderGateway(gateway: GatewayCase): string {
  return renderFirewall(filterOf(gateway));
}

/** Renders how the filter of another network becomes this one's: in place if a pass could. All parts are loaded in turn. */
export function renderReplacement(gateway: GatewayCase, before: GatewayCase): readonly string[] {
  const [loaded, wanted] = [filterOf(before), filterOf(gateway)];
  return canChange(loaded, wanted)
    ? [renderFirewall(loaded), ...renderChange(wanted, loaded)]
    : [renderFirewall(wanted)];
}

export function filterOf({ map, self, masquerade, maps, forwards, services }: GatewayCase): Firewall {
  const { firewall } = desireFor(
    self,
    map,
    {
      options: { ...options, masquerade, maps },
      forwarding: { sysctls: forwards ? forwarding : {}, receipt: [], others: [], hasNft: true },
      services,
    },
    { ...usualConstraints, underlay: around },
  );
  if (firewall === null) throw new Error('the gateway has no packet filter');
  return firewall;
}
