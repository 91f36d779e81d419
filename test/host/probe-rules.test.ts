import { expect, test } from 'vitest';
import type { Firewall } from '../../src/core/forward/packet-rule.ts';
import { disabledIpv6Key } from '../../src/core/host-state/sysctl-keys.ts';
import { probeAddressOf } from '../../src/core/paths/probe-address.ts';
import { desireFor, dialled, network, peer, prefix, usualConstraints } from '../core/samples.ts';
import { Machine } from './machine.ts';

const everything = prefix('0.0.0.0/0');
const closed = { rules: { rules: [], requiresEnforcement: false } };
const [own, sender] = [probeAddressOf(7, 3), probeAddressOf(7, 4)];

/** The packet rules of peer 3, which has no endpoint, and of a connector without one. */
function firewallOf(type: 'origin' | 'connector', changes: object): Firewall {
  const self = peer(3, { type, routes: [] });
  const map = network([peer(1, { type: 'connector', endpoint: dialled(1) }), self, peer(4)], { relay: 1, ...changes });
  const forwarding = { sysctls: { [disabledIpv6Key('default')]: '0' }, receipt: [], others: [], hasNft: true };
  return desireFor(self, map, { forwarding, paths: [] }, { ...usualConstraints, allowed: [everything] })
    .firewall as Firewall;
}

/** Peer 4 at the other end of a link, in a namespace of its own. As with WireGuard, there is no neighbour discovery. */
const other = `
  mkdir -p /run/netns && ip netns add other
  sysctl -qw net.ipv6.conf.default.disable_ipv6=0; ip netns exec other sysctl -qw net.ipv6.conf.default.disable_ipv6=0
  ip link add cpn0 type veth peer name cpn0 netns other
  for in in "" "ip netns exec other"; do
    $in sysctl -qw net.ipv6.conf.cpn0.accept_dad=0
    $in ip link set cpn0 address 02:00:00:00:00:01 arp off addrgenmode none up
  done
  ip address add 10.77.0.3/24 dev cpn0; ip netns exec other ip address add 10.77.0.4/24 dev cpn0
  ip address add ${own}/64 dev cpn0
  ip netns exec other ip address add ${sender}/64 dev cpn0
  ip netns exec other ip address add fe80:1::4/64 dev cpn0; ip -6 route add fe80:1::/64 dev cpn0`;

const echo = (from: string, to: string) =>
  `ping -6 -c 1 -W 1 -I ${from}%cpn0 ${to}%cpn0 >/dev/null && echo answered || echo silent`;

/** True if a datagram of the other peer arrives at a socket on the probe address. */
const datagram = `${process.execPath} -e "
  const socket = require('dgram').createSocket('udp6');
  const { spawn } = require('child_process');
  const end = (text) => { console.log(text); process.exit(); };
  socket.on('message', () => end('arrived')).bind(514, '${own}%cpn0', () => {
    const send = \\\`const socket = require('dgram').createSocket('udp6'); socket.send('x', 514, '${own}%cpn0', () => socket.close())\\\`;
    spawn('ip', ['netns', 'exec', 'other', process.execPath, '-e', send]).on('exit', () => setTimeout(end, 300, 'nothing'));
  });"`;

test.each<[string, Firewall]>([
  ['a host of an open network', firewallOf('origin', {})],
  ['a host of a closed network', firewallOf('origin', closed)],
  ['a host with a full tunnel', firewallOf('origin', { routes: [everything] })],
  ['a connector of an open network', firewallOf('connector', {})],
  ['a connector of a closed network', firewallOf('connector', closed)],
])('of all link-local packets in the tunnel, %s takes echoes to its probe address alone', async (_, firewall) => {
  await using machine = await Machine.start();
  await machine.sh(other);
  expect(await machine.sh(datagram)).toContain('arrived');
  // A link-local address outside the range of probe addresses.
  const foreign = `ip netns exec other sh -c '${echo('fe80:1::4', own)}'`;
  expect(await machine.sh(foreign)).toContain('answered');
  await machine.host.apply({ do: 'set-firewall', firewall, changes: [] });

  expect(await machine.sh(echo(own, sender))).toContain('answered');
  expect(await machine.sh(`ip netns exec other sh -c '${echo(sender, own)}'`)).toContain('answered');
  expect(await machine.sh(datagram)).toContain('nothing');
  expect(await machine.sh(foreign)).toContain('silent');
});
