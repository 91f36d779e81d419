import { afterAll, beforeAll, test } from 'vitest';
import { patiently } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { nats } from '../lab/nat/nat.ts';
import { DirectNetwork } from './direct-network.ts';

let network: DirectNetwork;

beforeAll(async () => {
  network = await DirectNetwork.start();
});
afterAll(() => network?.[Symbol.asyncDispose]());

async function awaitPath(from: Host, to: Host): Promise<void> {
  const address = network.address(to);
  await eventually(`${to.name} answers`, async () => (await from.ping(address, patiently)).received === 1);
  const flow = from.spawn(['ping', '-n', '-i', '0.2', address]);
  await network.awaitDirect(from, to);
  await flow.stop();
}

test('hosts with another MTU in the tunnel get a direct path', async () => {
  const [office, home] = [
    await network.nat.addRouter('office', nats.portPreserving),
    await network.nat.addRouter('home', nats.portPreserving),
  ];
  const [laptop, tablet] = [await network.nat.addHost('laptop', office), await network.nat.addHost('tablet', home)];
  await network.joinWith(laptop.host, '--mtu', '1300');
  await network.join(tablet.host);
  await awaitPath(laptop.host, tablet.host);
});

test('hosts behind IPv6 firewalls that send from another address than the first get a direct path', async () => {
  const hosts: Host[] = [];
  for (const name of ['desk', 'tower']) {
    const router = await network.nat.addRouter(`${name}-router`, nats.ipv6);
    const { host } = await network.nat.addHost(name, router);
    // As a temporary address (RFC 8981): the system prefers it, and lists it first.
    const { stdout } = await host.exec(['ip', '-6', '-br', 'address', 'show', 'dev', 'eth0', 'scope', 'global']);
    const [, prefix = ''] = /(2001:db8::\S*:)10\/112/.exec(stdout) ?? [];
    const batch = [
      `address add ${prefix}11/112 dev eth0 nodad`,
      `route replace default via ${prefix}1 dev eth0 src ${prefix}11`,
    ];
    await host.exec(['ip', '-6', '-batch', '-'], { input: `${batch.join('\n')}\n` });
    await network.join(host);
    hosts.push(host);
  }
  const [desk, tower] = hosts as [Host, Host];
  await awaitPath(desk, tower);
});
