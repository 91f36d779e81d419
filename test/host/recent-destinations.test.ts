import { expect, test } from 'vitest';
import { destinationRules } from '../../src/core/forward/direct-path-rules.ts';
import type { Family } from '../../src/core/net/cidr.ts';
import { plans } from '../core/rules/generated-rules.ts';
import { Machine } from './machine.ts';

/** Peer 2 at the other end of a link, in a namespace of its own. As with WireGuard, they need no neighbour discovery. */
const other = (family: Family) => `
  mkdir -p /run/netns && ip netns add other
  ip link add cpn0 type veth peer name cpn0 netns other
  for in in "" "ip netns exec other"; do $in sysctl -qw net.ipv6.conf.cpn0.accept_dad=0; $in ip link set cpn0 address 02:00:00:00:00:01 arp off addrgenmode none up; done
  ip address add ${plans[family].peerAt(1)}/${family === 4 ? 24 : 64} dev cpn0
  ip netns exec other ip address add ${plans[family].peerAt(2)}/${family === 4 ? 24 : 64} dev cpn0`;

test.each([4, 6] as const)(
  'nft records the destinations in a network over IPv%i, and refuses nothing',
  async (family) => {
    await using machine = await Machine.start();
    const { host } = machine;
    const { range, peerAt } = plans[family];
    await machine.sh(other(family));
    expect(await host.readRecentDestinations('cpn0')).toEqual([]);
    const firewall = { link: 'cpn0', rules: destinationRules('cpn0', range) };
    await host.apply({ do: 'set-firewall', firewall, changes: [] });
    expect(await host.readRecentDestinations('cpn0')).toEqual([]);
    const before = (await host.countSent('cpn0')) ?? 0;

    await machine.sh(`ping -c 2 -i 0.2 -W 5 ${peerAt(2)}`);
    expect(await host.readRecentDestinations('cpn0')).toEqual([peerAt(2)]);
    // Those of the last minutes would count as in use, whatever else leaves the host.
    expect(await machine.sh('nft list set inet cpn_cpn0 destinations')).toMatch(/^\s*timeout 10s$/m);
    expect(await host.countSent('cpn0')).toBeGreaterThan(before);
    expect(await host.countSent('cpn1')).toBeNull();
    const { firewall: marks } = await host.observe({ link: 'cpn0', firewall: true, sysctls: [], hosts: false });
    expect(marks).toHaveLength(1);
  },
);
