import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { type LocalResolver, queryServer, startLocalResolver } from '../lab/local-resolver.ts';
import { join, type Office, plan, startOffice, status } from './office.ts';

/** Laptops with a local resolver other than systemd-resolved, and two DNS servers in a LAN behind a connector. */
let office: Office;
let uplink: DnsServer;

const [first, second] = ['192.168.50.53', '192.168.50.54'];
/** The address of the host in a network of containers. */
const bridge = '172.17.0.1';
const unboundBridge = `server:\n  interface: ${bridge}\n  access-control: 172.17.0.0/24 allow`;
const [name, reverse] = ['db.corp.lan', '9.50.168.192.in-addr.arpa'];

beforeAll(async () => {
  office = await startOffice();
  const { lab, controlPlane } = office;
  uplink = await DnsServer.start(await lab.addHost('dns', { address: '203.0.113.53/24' }), {
    'www.example': ['192.0.2.80'],
    'x.second.example': ['192.0.2.81'],
    'bank.example': ['192.0.2.90'],
  });
  const connector = await lab.addHost('connector', { address: '203.0.113.11/24' });
  const lan = await lab.addLan(connector, '192.168.50.1/24');
  await DnsServer.start(await lan.addHost('first', `${first}/24`), {
    ...{ [name]: ['192.168.50.9'], [reverse]: [name] },
    ...{ 'cname.corp.lan': ['-> bank.example 3600'], 'bank.example': ['198.51.100.66 3600'] },
    ...{ 'bare.corp.lan': ['-> www.example 3600'], 'peer.corp.lan': ['-> connector.office.cpn.internal 3600'] },
  });
  await DnsServer.start(await lan.addHost('second', `${second}/24`), { 'db.third.lan': ['192.168.50.10'] });
  await join(office, connector, '--type', 'connector', '--endpoint', `${connector.address}:51820`);
  await startDaemon(connector);
  await controlPlane.cpn(['network', 'update', 'office', '--add-route', `${second}/32`]);
  await controlPlane.cpn([
    ...['network', 'update', 'office', '--route-dns', `192.168.50.0/24=${first},corp.lan,second.example`],
    ...['--route-dns', `${second}/32=${second},third.lan`],
  ]);
}, 90_000);

afterAll(() => office?.lab.stop());

describe.each([
  { kind: 'dnsmasq', folder: 'dnsmasq.d', address: '203.0.113.22/24', serving: `listen-address=${bridge}` },
  { kind: 'NetworkManager', folder: 'NetworkManager/dnsmasq.d', address: '203.0.113.23/24', serving: null },
  { kind: 'unbound', folder: 'unbound/unbound.conf.d', address: '203.0.113.24/24', serving: unboundBridge },
] as const)('a host with $kind', ({ kind, folder, address, serving }) => {
  let laptop: Host;
  let container: Host;
  let resolver: LocalResolver;
  let daemon: Daemon;
  const file = () => path(laptop.etcDir, folder, 'cpn-cpn0.conf');
  const ours = () => readdirSync(path(laptop.etcDir, folder)).filter((each) => each.includes('cpn'));
  const reported = async () =>
    (await status(laptop)).domains.filter((each: { route: string | null }) => each.route !== null);
  const resolvesAll = async () => {
    await eventually('a name behind the route resolves', async () =>
      expect(await resolver.query(name)).toEqual(['192.168.50.9']),
    );
    expect(await resolver.query(reverse, 'PTR')).toEqual([name]);
    expect(await resolver.query('db.third.lan')).toEqual(['192.168.50.10']);
    expect(await resolver.query('connector.office.cpn.internal')).toEqual(['10.77.0.1']);
    expect(await resolver.query('1.0.77.10.in-addr.arpa', 'PTR')).toEqual(['connector.office.cpn.internal']);
    expect(await resolver.query('www.example')).toEqual(['192.0.2.80']);
    expect(await resolver.query('none.example')).toEqual(['ENOTFOUND']);
  };

  beforeAll(async () => {
    laptop = await office.lab.addHost(`with-${kind.toLowerCase()}`, { address });
    if (serving !== null) {
      const containers = await office.lab.addLan(laptop, `${bridge}/24`);
      container = await containers.addHost(`container-of-${kind}`, '172.17.0.2/24');
      await mkdir(path(laptop.etcDir, folder), { recursive: true });
      await writeFile(path(laptop.etcDir, folder, 'containers.conf'), `${serving}\n`);
    }
    resolver = await startLocalResolver(laptop, kind, '203.0.113.53');
  });

  it('resolves all domains, and names of peers, once the daemon runs', async () => {
    const before = readFileSync(path(laptop.etcDir, 'resolv.conf'), 'utf8');
    await join(office, laptop);
    expect((await reported())[0]).toMatchObject({ reason: expect.stringContaining('systemctl enable --now cpn') });
    expect([ours(), await resolver.reloads()]).toEqual([[], []]);
    const asked = await uplink.countQuestions(name);
    daemon = await startDaemon(laptop);
    await eventually('names of peers resolve', async () =>
      expect(await resolver.query('connector.office.cpn.internal')).toEqual(['10.77.0.1']),
    );
    await resolvesAll();
    expect(await uplink.countQuestions(name)).toBe(asked);
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
    expect(await resolver.reloads()).toHaveLength(1);
    expect(statSync(file()).mode & 0o777).toBe(0o644);
    expect(readFileSync(path(laptop.etcDir, 'resolv.conf'), 'utf8')).toBe(before);
    const routes = ['192.168.50.0/24', `${second}/32`];
    expect((await status(laptop)).routes).toEqual(
      routes.map((prefix) => ({ prefix, via: 'connector', state: 'active' })),
    );
  });

  it('leaves a domain to the settings that are there', async () => {
    expect(await reported()).toMatchObject([
      { domain: 'corp.lan', state: 'used' },
      { domain: 'second.example', state: 'refused', reason: 'the resolver of this host has it' },
      { domain: 'third.lan', state: 'used' },
    ]);
    expect(await resolver.query('x.second.example')).toEqual(['192.0.2.81']);
  });

  it.each(serving === null ? [] : [bridge])('serves the names to containers too, at %s', async (at) => {
    expect(await queryServer(container, at, name)).toEqual(['192.168.50.9']);
    expect(await queryServer(container, at, reverse, 'PTR')).toEqual([name]);
    expect(await queryServer(container, at, 'connector.office.cpn.internal')).toEqual(['10.77.0.1']);
    expect(await queryServer(container, at, 'www.example')).toEqual(['192.0.2.80']);
  });

  it('gets its file back, which stays while the daemon restarts', async () => {
    const { length } = await resolver.reloads();
    const text = readFileSync(file(), 'utf8');
    for (const damage of [() => rm(file()), () => writeFile(file(), text.replace(/127\.77\.0\.\d+/, '10.77.0.99'))]) {
      await damage();
      await eventually('the file is back', () => expect(readFileSync(file(), 'utf8')).toBe(text));
    }
    await resolvesAll();
    await daemon.stop();
    expect(await resolver.query('www.example')).toEqual(['192.0.2.80']);
    daemon = await startDaemon(laptop);
    await resolvesAll();
    expect(await resolver.reloads()).toHaveLength(length + 2);
  });

  it('sends no name of the network elsewhere while the daemon and the tunnel are gone', async () => {
    const asked = await uplink.countQuestions(name);
    daemon.process.signal('SIGKILL');
    await daemon.process.endWithin(10_000);
    await laptop.exec(['ip', 'link', 'delete', 'cpn0']);
    expect(['ESERVFAIL', 'EREFUSED', 'ETIMEOUT']).toContain((await resolver.query(name)).join());
    // unbound waits longer after each query without a reply, also for other names.
    await Promise.all(Array.from({ length: 8 }, (_, index) => resolver.query(`${index}.corp.lan`)));
    expect(await uplink.countQuestions(name)).toBe(asked);
    daemon = await startDaemon(laptop);
    await eventually('a name behind the route resolves', async () =>
      expect(await resolver.query(name)).toEqual(['192.168.50.9']),
    );
  });

  it.runIf(kind === 'unbound')('queries a daemon that was down for long, once it is back', async () => {
    const impatient = path(laptop.etcDir, folder, 'impatient.conf');
    // With the default of 120,000 ms, it gives up after a minute.
    await writeFile(impatient, 'server:\n  infra-cache-max-rtt: 1000\n');
    await resolver.restart();
    const reloads = await resolver.reloads();
    await daemon.stop();
    for (let round = 0; round < 4; round += 1) {
      const names = [`${round}.office.cpn.internal`, `${round}.corp.lan`, `${round}.third.lan`, reverse];
      await Promise.all(names.map((each) => resolver.query(each)));
    }
    daemon = await startDaemon(laptop);
    await resolvesAll();
    expect(await resolver.reloads()).toEqual(reloads);
    await rm(impatient);
    await resolver.restart();
  });

  it('believes a server behind a route only about its own names', async () => {
    await eventually('a name behind the route resolves', async () =>
      expect(await resolver.query('cname.corp.lan')).toEqual(['198.51.100.66']),
    );
    expect(await resolver.query('bank.example')).toEqual(['192.0.2.90']);
    // dnsmasq itself does not follow the name.
    expect(await resolver.query('bare.corp.lan')).toEqual(kind === 'unbound' ? ['192.0.2.80'] : []);
    expect(await resolver.query('www.example')).toEqual(['192.0.2.80']);
    expect(await resolver.query('peer.corp.lan', 'AAAA')).toEqual(['ENODATA']);
    expect(await resolver.query('peer.corp.lan')).toEqual(['10.77.0.1']);
    expect(await resolver.query('connector.office.cpn.internal')).toEqual(['10.77.0.1']);
  });

  it('gets its file and its resolver back if that does not take ours, and tries no more for a while', async () => {
    await laptop.cpn(['set', '--no-dns']);
    expect(await resolver.query('www.example')).toEqual(['192.0.2.80']);
    expect(ours()).toEqual([]);
    await resolver.refuseFiles(true);
    await laptop.cpn(['set', '--dns']);
    await eventually('the domain is refused', async () =>
      expect((await reported())[0]).toMatchObject({
        state: 'refused',
        reason: expect.stringContaining('exited with 1'),
      }),
    );
    expect(await resolver.query('www.example')).toEqual(['192.0.2.80']);
    const reloads = await resolver.reloads();
    await laptop.cpn(['reconcile']);
    expect([ours(), await resolver.reloads()]).toEqual([[], reloads]);
    await resolver.refuseFiles(false);
    await laptop.cpn(['set', '--dns']);
    await resolvesAll();
  });

  it('is not restarted while it has settings that it did not start with', async () => {
    await eventually('the domain is used', async () => expect((await reported())[0]).toMatchObject({ state: 'used' }));
    const reloads = await resolver.reloads();
    const site = path(laptop.etcDir, folder, 'site.conf');
    const reason = `/etc/${folder}/site.conf changed after ${kind} started; restart it: `;
    // With its own settings, of which its check finds no error.
    const text = await readFile(site, 'utf8').catch(() => '');
    await writeFile(site, kind === 'unbound' ? text : `${text}group=nosuch\n`);
    await rm(file());
    await laptop.cpn(['reconcile']);
    expect((await reported())[0]).toMatchObject({ state: 'refused', reason: expect.stringContaining(reason) });
    expect([ours(), await resolver.reloads()]).toEqual([[], reloads]);
    expect(await resolver.query('www.example')).toEqual(['192.0.2.80']);
    await writeFile(site, text);
    await resolver.restart();
    // A pass of the daemon follows in half a minute.
    if (kind !== 'dnsmasq') await laptop.cpn(['reconcile']);
    await resolvesAll();
    expect(await resolver.reloads()).toHaveLength(reloads.length + 1);
  });

  it('need not be restarted by cpn after a restart by hand', async () => {
    const reloads = await resolver.reloads();
    await laptop.exec(['touch', `/etc/${folder}/site.conf`]);
    const { stderr } = await laptop.cpn(['set', '--no-dns']);
    expect(stderr).toContain(
      `in use until the program restarts: /etc/${folder}/site.conf changed after ${kind} started`,
    );
    expect(ours()).toEqual([]);
    await resolver.restart();
    await laptop.cpn(['reconcile']);
    expect(await resolver.reloads()).toEqual(reloads);
    expect(await resolver.query(name)).toEqual(['ENOTFOUND']);
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
    await laptop.cpn(['set', '--dns']);
    await resolvesAll();
  });

  it.skipIf(kind !== 'dnsmasq')('is named as restarted by cpn if that failed', async () => {
    await laptop.cpn(['set', '--no-dns']);
    const { stdout } = await laptop.exec(['ip', '-o', 'address', 'show', 'to', bridge]);
    const changed = (verb: string) => ['ip', 'address', verb, `${bridge}/24`, 'dev', stdout.split(' ')[1] ?? ''];
    await laptop.exec(changed('delete'));
    await laptop.cpn(['set', '--dns']);
    const reason = /nothing listens at 127.0.0.1, .*; the restart of dnsmasq by cpn exited with \d+: .*172\.17\.0\.1/;
    await eventually('the restart failed', async () =>
      expect((await reported())[0]).toMatchObject({ state: 'refused', reason: expect.stringMatching(reason) }),
    );
    expect(ours()).toEqual([]);
    await laptop.exec(changed('add'));
    await resolver.restart();
    await laptop.cpn(['set', '--dns']);
    await resolvesAll();
  });

  it('serves on while the folder is read-only, because the file there is the wanted one', async () => {
    const at = `/etc/${folder}`;
    await laptop.cpn(['reconcile']);
    const [text, reloads] = [readFileSync(file(), 'utf8'), await resolver.reloads()];
    await laptop.exec(['sh', '-c', `mount --bind ${at} ${at} && mount -o remount,bind,ro ${at}`]);
    try {
      await laptop.cpn(['reconcile']);
      await laptop.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
      await eventually('the daemon made a pass', async () =>
        expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] }),
      );
      await resolvesAll();
      expect((await reported())[0]).toMatchObject({ state: 'used' });
    } finally {
      await laptop.exec(['umount', at]);
    }
    await resolvesAll();
    expect([readFileSync(file(), 'utf8'), await resolver.reloads()]).toEqual([text, reloads]);
  });

  it('keeps the file of another program that has our name', async () => {
    await laptop.cpn(['leave', '--yes']);
    await writeFile(file(), '# of the administrator\n');
    await join(office, laptop);
    expect((await reported())[0]).toMatchObject({ reason: expect.stringContaining('is not a file of cpn') });
    expect(readFileSync(file(), 'utf8')).toBe('# of the administrator\n');
    await rm(file());
    await laptop.cpn(['reconcile']);
    await resolvesAll();
  });

  it('is as before after it leaves, once its settings were repaired and it was restarted', async () => {
    const site = path(laptop.etcDir, folder, 'broken.conf');
    await writeFile(site, 'broken\n');
    const reloads = await resolver.reloads();
    for (const flags of [[], ['--verify']]) {
      const { exitCode, stderr } = await laptop.cpn(['leave', '--yes', ...flags], { allowFailure: true });
      expect(exitCode).toBe(1);
      expect(stderr).toContain(`cpn0 is not left completely: ${kind} still uses /etc/${folder}/cpn-cpn0.conf`);
    }
    expect(await resolver.reloads()).toEqual(reloads);
    for (const command of ['status', 'doctor']) {
      const { stdout } = await laptop.cpn([command], { allowFailure: true });
      expect(stdout).toContain(`${kind} may still use /etc/${folder}/cpn-cpn0.conf, which is removed`);
      expect(stdout).toContain(`/etc/${folder}/broken.conf changed after ${kind} started; restart it: `);
    }
    await join(office, laptop);
    const reason = expect.stringContaining(`/etc/${folder}/broken.conf changed after ${kind} started; restart it: `);
    await eventually('the daemon could not write the file', async () =>
      expect((await reported())[0]).toMatchObject({ state: 'refused', reason }),
    );
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
    await writeFile(site, '# repaired\n');
    await resolver.restart();
    await laptop.cpn(['leave', '--yes', '--verify']);
    expect(ours()).toEqual([]);
    expect(await resolver.query(name)).toEqual(['ENOTFOUND']);
    expect(await resolver.query('www.example')).toEqual(['192.0.2.80']);
    await daemon.stop();
  });
});
