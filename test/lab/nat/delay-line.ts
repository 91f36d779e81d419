import type { Lab } from '../lab.ts';
import type { Segment } from '../segment.ts';

/** Sends each datagram on to another port of its sender after a while. */
const relay = `
const { createSocket } = require('node:dgram');
const [delayMs, target, ...ports] = process.argv.slice(1);
let toBind = ports.length / 2;
for (let at = 0; at < ports.length; at += 2) {
  const socket = createSocket('udp4');
  socket.on('message', (datagram) => setTimeout(() => socket.send(datagram, ports[at + 1], target), delayMs));
  socket.bind(ports[at], () => --toBind || console.log('ready'));
}
`;

/**
 * VXLAN puts frames into datagrams. $1 is the folder of the line, $2 the delay. The relay has a network namespace of its own, as the
 * kernel short-circuits VXLAN to itself. Its packets leave by a bridge, which completes their inner checksums; a veth does not.
 */
const script = `
sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
ip netns add relay
ip -batch - <<END
link add br0 mtu 1600 type bridge
link add d0 mtu 1600 master br0 type veth peer name d1 mtu 1600 netns relay
link set d0 up
link set br0 up
address add 192.0.2.1/24 dev br0
netns exec relay ip address add 192.0.2.2/24 dev d1
netns exec relay ip link set d1 up
END
for end in 0 1; do
  ip -batch - <<END
link add br1$end type bridge stp_state 0 forward_delay 0 mcast_snooping 0
link add vx$end type vxlan id 1 local 192.0.2.1 dstport 400$end nolearning
link set eth$end master br1$end
link set vx$end master br1$end
link set eth$end up
link set vx$end up
link set br1$end up
END
  bridge fdb append 00:00:00:00:00:00 dev vx$end dst 192.0.2.2 port 500$end
done
exec ip netns exec relay node -e "$1" "$2" 192.0.2.1 5000 4001 5001 4000
`;

/** Joins two segments by a line on which each frame takes `delayMs`, on kernels without netem too. */
export async function joinSegments(
  lab: Lab,
  [one, other]: readonly [Segment, Segment],
  delayMs: number,
): Promise<void> {
  const line = await lab.addHost('delay-line', { address: [], on: one });
  await line.plug(other, { address: [] });
  const process = line.spawn(['sh', '-ec', script, 'sh', relay, String(delayMs)]);
  await process.waitForLine(/^ready$/);
  process.unref();
}
