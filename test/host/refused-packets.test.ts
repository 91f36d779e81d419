import { expect, test } from 'vitest';
import { hostRules } from '../../src/core/forward/host-rules.ts';
import { canChange } from '../../src/core/forward/own-table.ts';
import type { Firewall } from '../../src/core/forward/packet-rule.ts';
import type { AccessRules, Rule } from '../../src/core/map/access-rules.ts';
import type { Family } from '../../src/core/net/cidr.ts';
import { plans } from '../core/rules/generated-rules.ts';
import { network, options, peer, underlay } from '../core/samples.ts';
import { Machine } from './machine.ts';

const allow = (port: number): Rule => ({
  name: `port ${port}`,
  from: [{ kind: 'any' }],
  to: [{ kind: 'any' }],
  protocol: 'tcp',
  ports: [{ first: port, last: port }],
});

/** The packet rules of peer 1 in a network of three peers. */
function firewallOf(family: Family, ...ports: number[]): Firewall {
  const { range, peerAt } = plans[family];
  const rules: AccessRules = { rules: ports.map(allow), requiresEnforcement: false };
  const peers = [1, 2, 3].map((number) => peer(number, { address: peerAt(number), enforcesRules: true }));
  const map = { ...network(peers, { cidr: range }), rules };
  const self = peers[0] ?? peer(1);
  const inputs = {
    ...{ link: 'cpn0', map, self, options, relayedPeers: [], underlay, ingress: [], routes: [], forwards: true },
    ...{ vrf: undefined, ipv6: null, others: [], sessions: [], deadlines: [], takesSourceRoutes: false },
  };
  const { rules: written, access } = hostRules(inputs);
  return { link: 'cpn0', rules: written, ...(access && { access }) };
}

/** Peer 2 at the other end of a link, in a namespace of its own. As with WireGuard, they need no neighbour discovery. */
const other = (family: Family) => `
  mkdir -p /run/netns && ip netns add other
  ip link add cpn0 type veth peer name cpn0 netns other
  for in in "" "ip netns exec other"; do $in sysctl -qw net.ipv6.conf.cpn0.accept_dad=0; $in ip link set cpn0 address 02:00:00:00:00:01 arp off addrgenmode none up; done
  ip address add ${plans[family].peerAt(1)}/${family === 4 ? 24 : 64} dev cpn0
  ip netns exec other ip address add ${plans[family].peerAt(2)}/${family === 4 ? 24 : 64} dev cpn0`;

/** Sends one datagram; a reject makes no difference. */
const send = (to: string, port: number, within = '') =>
  `${within} ${process.execPath} -e "const socket = require('dgram').createSocket('udp${to.includes(':') ? 6 : 4}');
    socket.on('error', () => process.exit()).send('x', ${port}, '${to}', () => socket.close())"`;

test.each([4, 6] as const)('nft reads what the rules of a closed network refused over IPv%i', async (family) => {
  await using machine = await Machine.start();
  const { peerAt } = plans[family];
  const [own, sender, third] = [peerAt(1), peerAt(2), peerAt(3)];
  await machine.sh(other(family));
  expect(await machine.host.readRefused('cpn0')).toBeNull();
  const firewall = firewallOf(family, 80);
  await machine.host.apply({ do: 'set-firewall', firewall, changes: [] });
  expect(await machine.host.readRefused('cpn0')).toEqual({ packets: { in: 0, out: 0 }, latest: [] });

  await machine.sh(send(own, 53, 'ip netns exec other'));
  await machine.sh(send(third, 514));
  const refused = await machine.host.readRefused('cpn0');
  expect(machine.spawned).toHaveLength(1);
  expect(refused?.packets).toEqual({ in: 1, out: 1 });
  const connections = refused?.latest.map(({ seconds: _, ...connection }) => connection);
  expect(connections).toEqual(
    expect.arrayContaining([
      { from: sender, to: own, protocol: 'udp', port: 53 },
      { from: own, to: third, protocol: 'udp', port: 514 },
    ]),
  );
  for (const { seconds } of refused?.latest ?? []) expect(seconds).toBeLessThan(300);

  const changed = firewallOf(family, 80, 443);
  expect(canChange(firewall, changed)).toBe(true);
  await machine.host.apply({ do: 'set-firewall', firewall: changed, loaded: firewall, changes: [] });
  expect((await machine.host.readRefused('cpn0'))?.packets).toEqual({ in: 1, out: 1 });
});
