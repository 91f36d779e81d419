import { rm, symlink, writeFile } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDaemon } from '../lab/daemon.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { startResolved } from '../lab/resolved.ts';
import { join, type Office, patiently, startOffice } from './office.ts';

/** A laptop with systemd-resolved, and a LAN with a DNS server of its own behind a connector. */
let office: Office;
let connector: Host;
let laptop: Host;
let lanDns: DnsServer;

const [server, name, address] = ['192.168.50.53', 'db.corp.example', '192.168.50.9'];

beforeAll(async () => {
  office = await startOffice();
  const { lab, controlPlane } = office;
  const uplink = await lab.addHost('dns', { address: '203.0.113.53/24' });
  await DnsServer.start(uplink, { 'www.example': ['203.0.113.1'] });
  connector = await lab.addHost('connector', { address: '203.0.113.11/24' });
  const lan = await lab.addLan(connector, '192.168.50.1/24');
  lanDns = await DnsServer.start(await lan.addHost('lan-dns', `${server}/24`), { [name]: [address] });
  await join(office, connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);
  laptop = await lab.addHost('laptop', { address: '203.0.113.22/24' });
  await startResolved(laptop, { servers: ['203.0.113.53'] });
  const routeDns = `192.168.50.0/24=${server},uk.example,corp.example`;
  await controlPlane.cpn(['network', 'update', 'office', '--route-dns', routeDns]);
  // An earlier control plane took public suffixes.
  const database = new DatabaseSync(joinPath(controlPlane.host.folder, 'data', 'control-plane.db'));
  database.exec("UPDATE networks SET route_dns = replace(route_dns, 'uk.example', 'co.uk')");
  database.close();
  await controlPlane.cpn(['network', 'update', 'office', '--description', 'changed']);
  await join(office, laptop, '--endpoint', `${laptop.address}:51820`);
  await connector.cpn(['reconcile']);
  expect(await laptop.ping(server, patiently)).toMatchObject({ received: 1 });
}, 90_000);

afterAll(() => office?.lab.stop());

async function explain(text: string) {
  const { stdout, exitCode } = await laptop.cpn(['explain', text, '--json'], { allowFailure: true });
  const { checks, ...rest } = JSON.parse(stdout);
  const details = checks.map(({ check, detail }: Record<string, string>) => [check, detail]);
  return { ...rest, exitCode, order: Object.keys(Object.fromEntries(details)), detail: Object.fromEntries(details) };
}

/** The findings of `cpn doctor` on names. */
async function doctor() {
  const { stdout } = await laptop.cpn(['doctor', '--json'], { allowFailure: true });
  return JSON.parse(stdout).findings.filter(({ check }: { check: string }) => check === 'dns');
}

const domain = `in corp.example, behind 192.168.50.0/24 of network office: cpn0 sends queries to ${server}`;
const dns = { domain: 'corp.example', interface: 'cpn0', servers: [server] };
const mode = '/etc/resolv.conf of a host with systemd-resolved';

it('a name in a domain behind a route is followed to its server, and to its address', async () => {
  const found = await explain('DB.corp.example.');
  expect(found).toMatchObject({ exitCode: 0, address, name, dns, interface: 'cpn0', stops_at: null });
  expect(found.order.slice(0, 4)).toEqual(['domain', 'name', 'network', 'route']);
  expect(found.detail).toMatchObject({ domain, name: `resolves to ${address}` });
  const { stdout } = await laptop.cpn(['explain', name]);
  expect(stdout).toMatch(/^192\.168\.50\.9 {2}network office .* gives for db\.corp\.example$/m);
});

it('a name outside is looked up as without cpn', async () => {
  expect(await explain('www.example')).toMatchObject({
    ...{ exitCode: 0, address: '203.0.113.1', interface: null, dns: { domain: null, servers: ['203.0.113.53'] } },
    detail: { domain: 'in no domain of a network: queries go to 203.0.113.53, as without cpn' },
  });
  expect(await explain('www.example.co.uk')).toMatchObject({
    ...{ exitCode: 3, address: null, stops_at: 'name' },
    detail: { domain: expect.stringMatching(/^co\.uk of network office is refused: .*; queries go to 203/) },
  });
});

it('the doctor names the resolver, the domains and their servers', async () => {
  expect(await doctor()).toMatchObject([
    { looked_at: mode, verdict: 'ok', found: 'names its stub (resolv.conf mode stub)' },
    { looked_at: 'the domain office.cpn.internal of network office', verdict: 'note' },
    { looked_at: expect.stringMatching(/^the domain co\.uk /), verdict: 'note' },
    { looked_at: 'the domain corp.example behind 192.168.50.0/24 of network office', verdict: 'ok' },
    { looked_at: `the DNS server ${server} of corp.example on cpn0`, verdict: 'ok', found: 'answers' },
  ]);
});

it('the name of a peer leads to the peer, by the daemon', async () => {
  const peer = 'connector.office.cpn.internal';
  const seen = { exitCode: 0, address: '10.77.0.1', interface: 'cpn0' };
  expect(await explain(peer)).toMatchObject({
    ...{ ...seen, dns: { domain: null } },
    detail: { name: expect.stringMatching(/it does not resolve on this host; the daemon serves it: systemctl/) },
  });
  await startDaemon(laptop);
  const daemon = 'cpn0 sends queries to the daemon of this host at 10.77.0.2';
  await eventually('the daemon serves names', async () =>
    expect(await explain(peer)).toMatchObject({
      ...{ ...seen, dns: { domain: 'office.cpn.internal', servers: ['10.77.0.2:553'] } },
      detail: {
        domain: `in office.cpn.internal of network office: ${daemon}`,
        name: 'the name of connector in network office, resolves to 10.77.0.1',
      },
    }),
  );
  const { detail } = await explain(name);
  expect(detail.domain).toContain(`office: ${daemon}, which forwards them to ${server}`);
});

it('a name that does not resolve has the path to its server, and what to do next', async () => {
  const missing = await explain('none.corp.example');
  expect(missing).toMatchObject({ exitCode: 3, address: null, dns, interface: 'cpn0', stops_at: 'name' });
  expect([missing.order[0], missing.order.at(-1)]).toEqual(['domain', 'name']);
  expect(missing.detail.name).toContain(`though ${server} answers queries`);
  const resolvConf = joinPath(laptop.etcDir, 'resolv.conf');
  await rm(resolvConf);
  await writeFile(resolvConf, 'nameserver 203.0.113.53\noptions timeout:1 attempts:1\n');
  expect((await explain(name)).detail.name).toMatch(/"cpn doctor" reports an \/etc\/resolv\.conf that bypasses/);
  expect(await doctor()).toContainEqual(
    expect.objectContaining({ looked_at: mode, verdict: 'note', found: expect.stringContaining('mode foreign') }),
  );
  await rm(resolvConf);
  await symlink('/run/systemd/resolve/stub-resolv.conf', resolvConf);
  await lanDns.stop();
  expect(await doctor()).toContainEqual(
    expect.objectContaining({ verdict: 'problem', remedy: `cpn explain ${server} --protocol udp --port 53` }),
  );
});
