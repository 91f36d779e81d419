/**
 * Kinds of NAT, in the terms of RFC 4787, and the rules that make a router one of them. `eth0` of a router is outside.
 *
 * @module
 */

/** How a router treats UDP. Networks behind it have no IPv6, unless it is a firewall for that. */
export interface Nat {
  /**
   * `port-preserving` keeps the source port where it can, as Linux does. `other-port` gives all flows of a host the same other port.
   * `symmetric` gives each flow a port of its own.
   */
  readonly mapping: 'port-preserving' | 'other-port' | 'symmetric';
  /** The sources that a mapped port accepts: the endpoints that the host has sent to, their addresses, or all. */
  readonly filtering: 'address-and-port' | 'address' | 'none';
  /** What the router does with other packets to its own address. It keeps a flow of those that it accepts. */
  readonly unsolicited: 'drop' | 'reject' | 'accept';
  /** Whether hosts behind it reach each other's mapped ports. */
  readonly hairpin: boolean;
  /** Whether UDP from inside leaves it. */
  readonly udp: 'pass' | 'drop';
  /** `firewall`: hosts behind it have IPv6 addresses, which accept packets of the flows that they began. */
  readonly ipv6: 'none' | 'firewall';
  /** How long a mapping lasts without a packet: 30 s and, once answered, 120 s in Linux. */
  readonly mappingSeconds?: number;
}

const portPreserving: Nat = {
  mapping: 'port-preserving',
  filtering: 'address-and-port',
  unsolicited: 'drop',
  hairpin: false,
  udp: 'pass',
  ipv6: 'none',
};

/** The kinds of NAT of the lab. Routers behind routers, and several hosts behind one, are made of these. */
export const nats = {
  portPreserving,
  otherPort: { ...portPreserving, mapping: 'other-port' },
  addressFiltering: { ...portPreserving, filtering: 'address' },
  noFiltering: { ...portPreserving, filtering: 'none' },
  symmetric: { ...portPreserving, mapping: 'symmetric' },
  hairpin: { ...portPreserving, hairpin: true },
  accepting: { ...portPreserving, unsolicited: 'accept' },
  rejecting: { ...portPreserving, unsolicited: 'reject' },
  noUdp: { ...portPreserving, udp: 'drop' },
  ipv6: { ...portPreserving, mapping: 'symmetric', ipv6: 'firewall' },
} as const satisfies Record<string, Nat>;

/** Where a router with a NAT is. */
export interface NatPlace {
  /** Its address outside. */
  readonly address: string;
  /** The port of the mapping `other-port`. */
  readonly otherPort: number;
}

const masquerade: Readonly<Record<Nat['mapping'], (otherPort: number) => string>> = {
  'port-preserving': () => '',
  'other-port': (otherPort) => `to :${otherPort}`,
  symmetric: () => 'random,fully-random',
};

/** The rules of a router, which replace those that it had. */
export function renderNat(nat: Nat, { address, otherPort }: NatPlace): string {
  const { mapping, filtering, hairpin, unsolicited, udp, ipv6 } = nat;
  const arrivals = [
    ...(filtering === 'none' ? ['iifname eth0 dnat ip to udp dport map @mapped'] : []),
    ...(filtering === 'address'
      ? ['iifname eth0 udp dport . ip saddr @contacted dnat ip to udp dport map @mapped']
      : []),
    ...(hairpin ? [`iifname eth1 ip daddr ${address} dnat ip to udp dport map @mapped`] : []),
  ];
  return `
table ip nat
delete table ip nat
table ip nat {
  map mapped { type inet_service : ipv4_addr . inet_service; flags dynamic,timeout; timeout 120s; size 1024; }
  set contacted { type inet_service . ipv4_addr; flags dynamic,timeout; timeout 120s; size 1024; }
  chain input {
    type filter hook input priority filter;
    iifname eth0 ct state new ${unsolicited}
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
    iifname eth1 oifname eth0 meta l4proto udp ${udp === 'pass' ? 'accept' : 'drop'}
    iifname eth1 oifname eth0 accept
    ct state established,related accept
    ct status dnat accept
  }
  chain arrivals {
    type nat hook prerouting priority dstnat;
    ${arrivals.join('\n    ')}
  }
  chain departures {
    type nat hook postrouting priority srcnat;
    iifname eth1 oifname eth1 ct status dnat snat to ${address}
    oifname eth0 meta l4proto udp masquerade ${masquerade[mapping](otherPort)}
    oifname eth0 masquerade
  }
  chain remember {
    type filter hook postrouting priority srcnat + 100;
    oifname eth0 ct direction original meta l4proto udp update @mapped { udp sport : ct original ip saddr . ct original proto-src }
    oifname eth0 ct direction original meta l4proto udp update @contacted { udp sport . ip daddr }
  }
}
${ipv6 === 'firewall' ? firewall : ''}`;
}

const firewall = `
table ip6 firewall
delete table ip6 firewall
table ip6 firewall {
  chain forward {
    type filter hook forward priority filter; policy drop;
    iifname eth1 accept
    ct state established,related accept
  }
}
`;
