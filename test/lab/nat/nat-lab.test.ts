import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Host } from '../host.ts';
import { nats } from './nat.ts';
import { NatLab } from './nat-lab.ts';

const delayMs = 40;
let nat: NatLab;
let near: Host;
let far: Host;
let home: Host;

beforeAll(async () => {
  nat = await NatLab.start({ delayMs });
  const router = await nat.addRouter('router', nats.ipv6);
  const sites = [nat.addHost('near', nat.internet), nat.addHost('far', nat.far), nat.addHost('home', router)];
  [near, far, home] = (await Promise.all(sites)).map(({ host }) => host) as [Host, Host, Host];
});
afterAll(() => nat?.[Symbol.asyncDispose]());

/** The IPv6 address of a host in the internet. */
const address6 = (host: Host) => `2001:db8::${host.address.split('.').at(-1)}`;

test('the line to the far hosts delays frames of all sizes', async () => {
  const full = ['-M', 'do', '-s', '1452'];
  for (const target of [far.address, address6(far)]) {
    const { stdout } = await near.exec(['ping', '-n', '-c', '2', '-i', '0.2', ...full, target]);
    expect(stdout).toContain('2 received');
    // A timer of Node may end a millisecond early.
    expect(Number(/= ([\d.]+)\//.exec(stdout)?.[1])).toBeGreaterThan(2 * (delayMs - 1));
  }
});

test('the line passes TCP, which leaves the segments to network cards', async () => {
  const serve = "require('net').createServer((each) => each.pipe(each)).listen(80, () => console.log('ready'))";
  await far.spawn(['node', '-e', serve]).waitForLine(/^ready$/);
  const client = `
    let bytes = 0;
    const socket = require('net').connect(80, '${far.address}', () => socket.end(Buffer.alloc(1e6)));
    socket.on('data', ({ length }) => { bytes += length; }).on('end', () => console.log(bytes));
  `;
  expect((await near.exec(['node', '-e', client])).stdout).toBe('1000000\n');
});

test('a host behind a router reaches the internet by both families, and is not reached', async () => {
  const [own, own6 = ''] = (await home.exec(['hostname', '-I'])).stdout.trim().split(' ');
  expect(own).toBe('192.168.1.10');
  expect(await home.ping(far.address)).toMatchObject({ received: 1 });
  expect(await home.ping(address6(far))).toMatchObject({ received: 1 });
  expect(await near.ping(own6, { waitMs: 500 })).toMatchObject({ received: 0 });
});
