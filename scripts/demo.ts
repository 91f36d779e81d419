import { styleText } from 'node:util';
import { joinHost, startControlPlane } from '../test/lab/control-plane.ts';
import type { Host } from '../test/lab/host.ts';
import { Lab } from '../test/lab/lab.ts';
import { labSupport } from '../test/lab/support.ts';
import { keepDemo } from './keep-demo.ts';

const args = process.argv.slice(2).join(' ');
const started = performance.now();
const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
const say = (text: string) => process.stdout.write(`${text}\n`);
const title = (text: string) => say(`\n${styleText('bold', text)}`);

if (args !== '' && args !== '--keep') {
  process.stderr.write('usage: scripts/demo [--keep]\n');
  process.exit(2);
}
const support = labSupport();
if (!support.possible) {
  process.stderr.write(`scripts/demo needs ${support.needs}\n`);
  process.exit(1);
}
if (args === '--keep') {
  await keepDemo(say);
  process.exit();
}
await using lab = await Lab.start({ commandServers: true });
title('A control plane, and three hosts: a connector with a LAN behind it, an origin, a laptop behind NAT');
const controlPlane = await startControlPlane(lab);
const [connector, origin, home] = await Promise.all([
  lab.addHost('connector', { address: '203.0.113.11/24' }),
  lab.addHost('origin', { address: '203.0.113.22/24' }),
  lab.addNat('home', { outside: '203.0.113.33/24', inside: '10.0.0.1/24' }),
]);
const laptop = await home.addHost('laptop', '10.0.0.2/24');
const lan = await lab.addLan(connector, '192.168.50.1/24');
const printer = await lan.addHost('printer', '192.168.50.10/24');

const create = ['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24', '--route', '192.168.50.0/24'];
say((await controlPlane.cpn(create)).stdout.trim());

title('They join, each with a key of its own');
const addresses = new Map<Host, string>();
await join(connector, 'connector', '--endpoint', '203.0.113.11:51820');
await join(origin, 'origin', '--endpoint', '203.0.113.22:51820');
await join(laptop, 'admin_device');

title('Every pair, and the LAN behind the connector, through the tunnels');
let lost = 0;
for (const from of addresses.keys()) {
  const others = [...addresses].filter(([to]) => to !== from);
  await Promise.all(others.map(([to, address]) => ping(from, to.name, address)));
}
await ping(origin, `${printer.name} behind the connector`, '192.168.50.10');
await ping(laptop, `${printer.name} behind the connector`, '192.168.50.10');

for (const host of addresses.keys()) {
  title(`cpn status on ${host.name}`);
  say((await host.cpn(['status'])).stdout.trimEnd());
}

title('They leave, and nothing of it stays');
for (const host of addresses.keys()) say((await host.cpn(['leave', '--yes', '--verify'])).stderr.trim());
say(
  lost === 0
    ? styleText('green', `\nEvery ping was answered. Done in ${seconds()}.`)
    : styleText('red', `\n${lost} pings were lost.`),
);
process.exitCode = lost === 0 ? 0 : 1;

async function join(host: Host, type: string, ...more: string[]): Promise<void> {
  const before = [...addresses.keys()];
  const report = await joinHost(controlPlane, host, { network: 'office', flags: ['--type', type, ...more], before });
  addresses.set(host, report.address);
  say(`${host.name} has ${report.address}${report.handshake ? ', and a peer answered' : ''} (${seconds()})`);
}

async function ping(from: Host, to: string, address: string): Promise<void> {
  // WireGuard repeats a handshake that got no answer after 5 s, and keeps the packet meanwhile.
  const { sent, received } = await from.ping(address, { waitMs: 8000 });
  lost += sent - received;
  const answer = received === sent ? styleText('green', 'answered') : styleText('red', 'lost');
  say(`${from.name} → ${to} (${address}): ${answer}`);
}
