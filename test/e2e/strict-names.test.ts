import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { type Resolved, startResolved } from '../lab/resolved.ts';
import { run } from '../lab/run.ts';
import { join, type Office, startOffice, status } from './office.ts';

/** A laptop that resolves other names by DNS over TLS alone, and names as long as DNS allows. */
let office: Office;
let laptop: Host;
let resolved: Resolved;
let uplink: DnsServer;

const [server, ofUplink] = ['192.168.50.53', '203.0.113.53'];
/** 63 octets. */
const longLabel = 'n'.repeat(63);
/** 253 octets without the last dot. */
const longName = `${'a'.repeat(51)}.${`${'b'.repeat(62)}.`.repeat(3)}corp.example`;
/** Relays each connection to the server of the same host, without TLS. */
const relay = `
const [address, key, certificate] = process.argv.slice(1);
const read = require('node:fs').readFileSync;
const relay = require('node:tls').createServer({ key: read(key), cert: read(certificate) }, (asker) => {
  const server = require('node:net').connect(53, address);
  asker.pipe(server).pipe(asker);
  for (const each of [asker, server]) each.on('error', () => { asker.destroy(); server.destroy(); });
});
relay.listen(853, address, () => console.log('listening'));
`;

beforeAll(async () => {
  office = await startOffice();
  const { lab, controlPlane } = office;
  const dns = await lab.addHost('dns', { address: `${ofUplink}/24` });
  uplink = await DnsServer.start(dns, { 'www.example': ['192.0.2.80'] });
  const [key, certificate] = [path(dns.folder, 'key.pem'), path(dns.folder, 'certificate.pem')];
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];
  const named = ['-subj', '/CN=dns.example', '-addext', `subjectAltName=IP:${ofUplink}`];
  await run(['openssl', ...made, ...named, '-keyout', key, '-out', certificate]);
  const tls = dns.spawn(['node', '-e', relay, ofUplink, key, certificate]);
  await tls.waitForLine(/^listening$/);

  const connector = await lab.addHost('connector', { address: '203.0.113.11/24' });
  const lan = await lab.addLan(connector, '192.168.50.1/24');
  await DnsServer.start(await lan.addHost('lan-dns', `${server}/24`), { [longName]: ['192.168.50.9'] });
  await join(office, connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);
  await controlPlane.cpn(['peer', 'update', 'office', 'connector', '--name', longLabel]);
  await startDaemon(connector);
  await controlPlane.cpn(['network', 'update', 'office', '--route-dns', `192.168.50.0/24=${server},corp.example`]);

  laptop = await lab.addHost('laptop', { address: '203.0.113.22/24' });
  resolved = await startResolved(laptop, { servers: [ofUplink], tlsAuthority: certificate });
  expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
  await join(office, laptop);
  await startDaemon(laptop);
}, 90_000);

afterAll(() => office?.lab.stop());

it('a resolver that insists on TLS keeps to it for all other names, and has those of the network', async () => {
  await eventually('the daemon serves names', async () =>
    expect(await resolved.query(`${longLabel}.office.cpn.internal`)).toEqual(['10.77.0.1']),
  );
  await resolved.resolvectl(['flush-caches']);
  expect(await resolved.query('www.example')).toEqual(['192.0.2.80']);
  expect((await resolved.resolvectl(['dnsovertls'])).stdout).toMatch(/^Global: yes$/m);
  expect((await status(laptop)).domains.map(({ state }: { state: string }) => state)).toEqual(['used', 'used']);
});

it('names of 253 octets resolve through the tunnel', async () => {
  expect(longName).toHaveLength(253);
  expect(await resolved.query(longName)).toEqual(['192.168.50.9']);
  expect(await uplink.countQuestions(longName)).toBe(0);
});
