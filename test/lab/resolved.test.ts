import { afterAll, beforeAll, expect, test } from 'vitest';
import { DnsServer } from './dns.ts';
import type { Host } from './host.ts';
import { Lab } from './lab.ts';
import { type Resolved, startResolved } from './resolved.ts';

const corporate = { 'db.corp.example': ['10.1.2.9'], '9.2.1.10.in-addr.arpa': ['db.corp.example'] };
let lab: Lab;
let laptop: Host;
let uplink: DnsServer;
let office: DnsServer;
let resolved: Resolved;

beforeAll(async () => {
  lab = await Lab.start();
  laptop = await lab.addHost('laptop', { address: '203.0.113.22/24' });
  const lan = await lab.addLan(laptop, '10.1.2.1/24');
  uplink = await DnsServer.start(await lab.addHost('dns', { address: '203.0.113.53/24' }), {
    'www.example': ['192.0.2.80'],
  });
  office = await DnsServer.start(await lan.addHost('office-dns', '10.1.2.53/24'), corporate, { port: 5335 });
  resolved = await startResolved(laptop, { servers: ['203.0.113.53'] });
});
afterAll(() => lab?.stop());

async function settings(): Promise<string[]> {
  const outcomes = await Promise.all(['dns', 'domain'].map((what) => resolved.resolvectl([what, 'eth1'])));
  return outcomes.map(({ stdout }) => stdout.trim().replace(/^Link \d+ \(eth1\): ?/, ''));
}

test("a link's routing domain sends its names to that link's server, and the others to the uplink's", async () => {
  for (const args of [
    ['domain', 'eth1', '~corp.example', '~2.1.10.in-addr.arpa'],
    ['default-route', 'eth1', 'no'],
    ['dns', 'eth1', '10.1.2.53:5335'],
  ]) {
    await resolved.resolvectl(args);
  }
  expect(await resolved.query('db.corp.example')).toEqual(['10.1.2.9']);
  expect(await resolved.query('9.2.1.10.in-addr.arpa', 'PTR')).toEqual(['db.corp.example']);
  expect(await resolved.query('none.corp.example')).toEqual(['ENOTFOUND']);
  expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
  const names = ['db.corp.example', 'none.corp.example', 'www.example'];
  const counts = (dns: DnsServer) => Promise.all(names.map(async (name) => (await dns.countQuestions(name)) > 0));
  expect(await counts(office)).toEqual([true, true, false]);
  expect(await counts(uplink)).toEqual([false, false, true]);
  // glibc follows /etc/resolv.conf to the stub.
  expect((await laptop.exec(['getent', 'ahostsv4', 'db.corp.example'])).stdout).toMatch(/^10\.1\.2\.9 /);
});

test('settings survive a restart that keeps the state, and vanish by revert and without the state', async () => {
  const both = ['10.1.2.53:5335', '~corp.example ~2.1.10.in-addr.arpa'];
  expect(await settings()).toEqual(both);
  await resolved.restart();
  expect(await settings()).toEqual(both);
  await resolved.resolvectl(['revert', 'eth1']);
  expect(await settings()).toEqual(['', '']);
  await resolved.resolvectl(['dns', 'eth1', '10.1.2.53']);
  await resolved.restart({ keepState: false });
  expect(await settings()).toEqual(['', '']);
  expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
});

test('resolvectl and busctl reach it on its own host alone, and it ends with the host', async () => {
  const other = await lab.addHost('other', { address: '203.0.113.23/24' });
  const runs = async (host: Host, ...argv: string[]) => (await host.exec(argv, { allowFailure: true })).exitCode === 0;
  const manager = ['org.freedesktop.resolve1', '/org/freedesktop/resolve1', 'org.freedesktop.resolve1.Manager'];
  for (const argv of [
    ['resolvectl', 'status'],
    ['busctl', '--auto-start=no', 'get-property', ...manager, 'DNSEx'],
  ]) {
    expect([await runs(laptop, ...argv), await runs(other, ...argv)]).toEqual([true, false]);
  }
  await laptop.reboot();
  expect((await laptop.exec(['ps', '-e', '-o', 'comm='])).stdout).not.toMatch(/resolve|dbus/);
  resolved = await startResolved(laptop, { servers: ['203.0.113.53'] });
  expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
});

test('the servers answer over TCP too', async () => {
  const query = Buffer.from('\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01', 'latin1');
  const script = `const c = require('net').connect(53, '203.0.113.53'); const q = Buffer.from('${query.toString('hex')}', 'hex');
    c.write(Buffer.from([0, q.length])); c.write(q); c.on('data', (d) => { console.log(d.subarray(-4).join('.')); c.end(); });`;
  expect((await laptop.exec(['node', '-e', script])).stdout).toBe('192.0.2.80\n');
});
