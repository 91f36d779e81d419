import { readFile, stat, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Joined } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { MockService, type Replies } from '../plain/mock-service.ts';
import { patiently, plan, status } from './office.ts';

/**
 * A service that another tool made from the public contract alone, and a gateway that plain WireGuard tools keep: the
 * test adds each host there, as the service would. Only the connector has our extensions.
 */
let lab: Lab;
let service: MockService;
let gate: Host;
let gateKey: string;
let presharedKey: string;

const key = 'cpn_plain_key';
const personal = 'plain-personal-token';

beforeAll(async () => {
  lab = await Lab.start({ commandServers: true });
  const [host, gateway] = [
    await lab.addHost('service', { address: '203.0.113.1/24' }),
    await lab.addHost('gate', { address: '203.0.113.11/24' }),
  ];
  gate = gateway;
  const privateKey = (await gate.exec(['wg', 'genkey'])).stdout.trim();
  gateKey = (await gate.exec(['wg', 'pubkey'], { input: privateKey })).stdout.trim();
  presharedKey = (await gate.exec(['wg', 'genpsk'])).stdout.trim();
  // Its LAN is an address of its own, which answers as any host behind it would.
  const config = `[Interface]\nPrivateKey = ${privateKey}\nListenPort = 51820\nAddress = 10.77.0.1/24, 192.168.50.1/24\n`;
  await writeFile(path(gate.configDir, 'wg0.conf'), config, { mode: 0o600 });
  await gate.exec(['wg-quick', 'up', 'wg0']);
  service = await MockService.start(host, {});
}, 90_000);

afterAll(() => lab?.stop());

const api = () => ['--api', service.url, '--insecure-http'];

async function join(host: Host, ...flags: string[]): Promise<{ joined: Joined; stderr: string }> {
  const argv = ['join', '-', ...api(), '--name', host.name, '--wait', '0', '--json', ...flags];
  const { stdout, stderr } = await host.cpn(argv, { input: key });
  return { joined: JSON.parse(stdout), stderr };
}

/** Adds a host at the gateway. */
async function introduce({ public_key, address }: Joined, ...more: string[]): Promise<void> {
  const allowed = ['allowed-ips', `${address}/32`];
  await gate.exec(['wg', 'set', 'wg0', 'peer', public_key, ...allowed, ...more], { input: presharedKey });
}

const gateAsPeer = () => ({ public_key: gateKey, address: '10.77.0.1', endpoint: '203.0.113.11:51820' });

/** What the enrolment of the host with this address brings, as little as can be. */
const bare = (address: string): Replies => ({ enrollPeer: { address, peers: [gateAsPeer()] } });

describe('the service', () => {
  it('refuses what its contract does not have', async () => {
    const send = async (where: string, options: object = {}) => {
      const program = `fetch('${service.url}${where}', ${JSON.stringify(options)}).then(({ status }) => console.log(status))`;
      return Number((await gate.exec(['node', '-e', program])).stdout);
    };
    const body = JSON.stringify({ enrollment_token: key, name: 'x' });
    const headers = { 'content-type': 'application/json' };
    expect(await send('/api/networks/enroll', { method: 'POST', headers, body })).toBe(422);
    expect(await send('/api/networks')).toBe(401);
    expect(await send('/api/networks/7/peers/1', { method: 'DELETE' })).toBe(404);
    expect(service.violations.join()).toMatch(/public_key.*security/);
    expect(service.requests).toHaveLength(3);
    await service.answer({});
  });
});

describe('an administrator', () => {
  it('logs in, sees the networks, makes one and a key', async () => {
    const { host } = service;
    await writeFile(path(host.homeDir, 'password'), 'secret', { mode: 0o600 });
    const login = ['login', ...api(), '--email', 'me@example.net', '--password-file', path(host.homeDir, 'password')];
    expect(JSON.parse((await host.cpn([...login, '--json'])).stdout)).toMatchObject({
      email: 'me@example.net',
      role: 'admin',
      expires_at: null,
    });
    const networks = JSON.parse((await host.cpn(['network', 'list', '--json'])).stdout);
    expect(JSON.stringify(networks)).toContain('"private_cidr":"10.77.0.0/24"');
    await host.cpn(['network', 'create', '--name', 'branch', '--cidr', '10.79.0.0/24', '--route', '192.168.50.0/24']);
    const made = await host.cpn(['key', 'create', 'office', '--name', 'edge-1']);
    expect([made.stdout.trim(), made.stderr]).toEqual([
      key,
      expect.stringContaining('this control plane does not limit the types of a key'),
    ]);
    await host.cpn(['logout']);
    expect(service.violations).toEqual([]);
  });
});

describe('a host that gets its address and the peers, and no token', () => {
  let edge: Host;
  let joined: Joined;

  it('joins, without the envelope, and reports that it will not receive changes', async () => {
    edge = await lab.addHost('edge', { address: '203.0.113.22/24' });
    await service.answer(bare('10.77.0.2'));
    const { joined: report, stderr } = await join(edge, '--type', 'origin');
    joined = report;
    expect(joined).toMatchObject({ interface: 'cpn0', address: '10.77.0.2', network: { id: null, name: 'network' } });
    expect(stderr).toContain("sent no id of this host's network");
    await introduce(joined);
    expect(await edge.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
    expect(service.requests).toEqual(['POST /api/networks/enroll']);
    expect(service.violations).toEqual([]);
  });

  it('reports that it uses the last map', async () => {
    const { state, sync, peers, warnings } = await status(edge);
    expect({ state, sync }).toMatchObject({ state: 'up', sync: { mode: 'local' } });
    expect(peers).toMatchObject([{ name: '10.77.0.1', address: '10.77.0.1', allowed_ips: ['10.77.0.1/32'] }]);
    expect(warnings.join()).toContain('uses the map that it received at the join of network');
    const { exitCode, stderr } = await edge.cpn(['reconcile']);
    expect(exitCode).toBe(0);
    expect(stderr).toContain('uses the map that it received at the join of network');
    expect(await plan(edge)).toEqual({ exitCode: 0, changes: [] });
  });

  it('is reconciled by the daemon, without a request to the service', async () => {
    const daemon = await startDaemon(edge, '--interval', '1');
    await daemon.awaitLog('that it is local', ({ msg }) => msg === 'the newest map cannot be read');
    await edge.exec(['ip', 'link', 'del', 'cpn0']);
    await eventually('the tunnel again', async () => (await edge.ping('10.77.0.1')).received === 1, {
      timeoutMs: 60_000,
    });
    expect(daemon.log.filter(({ msg }) => msg === 'the newest map cannot be read')).toHaveLength(1);
    expect((await daemon.stop()).exitCode).toBe(0);
    expect(service.requests).toEqual(['POST /api/networks/enroll']);
  });

  it('leaves, and names the peer that stays behind', async () => {
    const { stderr, exitCode } = await edge.cpn(['leave', '--yes', '--verify']);
    expect(exitCode).toBe(0);
    expect(stderr).toContain('stays in network');
    expect(service.requests).toEqual(['POST /api/networks/enroll']);
  });
});

describe('a host with a personal token', () => {
  let laptop: Host;

  beforeAll(async () => {
    laptop = await lab.addHost('laptop', { address: '203.0.113.33/24' });
    await writeFile(path(laptop.homeDir, 'token'), `${personal}\n`, { mode: 0o600 });
  });

  it('joins, in the envelope, and keeps the token for its owner alone', async () => {
    const network = { id: 7, name: 'office', private_cidr: '10.77.0.0/24', routes: [], peers: [gateAsPeer()] };
    await service.answer({ enrollPeer: { data: { peer: { id: 33, address: '10.77.0.3' }, network } } });
    const { joined, stderr } = await join(laptop, '--token-file', path(laptop.homeDir, 'token'));
    expect(joined).toMatchObject({ network: { id: 7, name: 'office' }, peer: { id: 33 } });
    expect(stderr).not.toContain('warning');
    await introduce(joined);
    expect(await laptop.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
    const file = path(laptop.stateDir, 'cpn0.json');
    expect(await readFile(file, 'utf8')).toContain(personal);
    expect(((await stat(file)).mode & 0o777).toString(8)).toBe('600');
  });

  it('follows the network with it, by polling: the service has neither revisions nor long polls', async () => {
    const later = { public_key: Buffer.alloc(32, 7).toString('base64'), address: '10.77.0.9', name: 'later' };
    const network = { id: 7, name: 'office', private_cidr: '10.77.0.0/24', vpn_type: 'wireguard', color: 'red' };
    const peers = [gateAsPeer(), { ...later, endpoint: '203.0.113.99:51820', last_seen: null }];
    await service.answer({ readPrivateNetwork: { data: { ...network, peers }, meta: {} } });
    const daemon = await startDaemon(laptop, '--interval', '1');
    await eventually('the new peer', async () => (await status(laptop)).peers.length === 2);
    await eventually('a second request', () => service.requests.length > 1);
    const { sync, peers: seen, state } = await status(laptop);
    expect(seen).toMatchObject([{ name: '10.77.0.1', state: 'connected' }, { name: 'later' }]);
    expect({ sync, state }).toMatchObject({ sync: { mode: 'poll', last_success: expect.any(String) }, state: 'up' });
    const { stderr } = await daemon.stop();
    expect(stderr).not.toContain(personal);
    expect(new Set(service.requests)).toEqual(new Set(['GET /api/networks/7']));
    expect(service.violations).toEqual([]);
  });

  it('keeps its key, as the service has no operation to change one', async () => {
    const { public_key } = await status(laptop);
    const own = { id: 33, name: laptop.name, public_key, address: '10.77.0.3' };
    const network = { id: 7, name: 'office', private_cidr: '10.77.0.0/24', peers: [gateAsPeer(), own] };
    await service.answer({ readPrivateNetwork: { data: network } });
    await laptop.cpn(['reconcile']);
    const file = path(laptop.stateDir, 'cpn0.json');
    const before = await readFile(file, 'utf8');
    const { exitCode, stderr } = await laptop.cpn(['rotate-key'], { allowFailure: true });
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('does not take another key for a host that has joined'),
    });
    expect(await readFile(file, 'utf8')).toBe(before);
    expect(await laptop.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
  });

  it('leaves, and reports that the service has no operation to remove a peer', async () => {
    const { stderr, exitCode } = await laptop.cpn(['leave', '--yes', '--verify']);
    expect(exitCode).toBe(0);
    expect(stderr).toContain('may not support the removal of peers; peer 33 stays in network office');
    expect(stderr).not.toContain(personal);
    expect(service.requests.filter((request) => request.startsWith('DELETE'))).toEqual([]);
  });
});

describe('a host that gets a ready wg-quick text', () => {
  let site: Host;
  const text = () =>
    [
      '[Interface]',
      'PrivateKey = <put yours here>',
      'Address = 10.77.0.4/24',
      '[Peer]',
      `PublicKey = ${gateKey}`,
      `PresharedKey = ${presharedKey}`,
      'Endpoint = 203.0.113.11:51820',
      'AllowedIPs = 10.77.0.1/32, 192.168.50.0/24, 203.0.113.0/24',
      'PersistentKeepalive = 21',
    ].join('\n');

  beforeAll(async () => {
    site = await lab.addHost('site', { address: '203.0.113.44/24' });
  });

  it('keeps key pair and enrolment where it does not decode, goes on from there, and runs no hook of it', async () => {
    await service.answer({ enrollPeer: { data: { status: 'pending', note: 'canary' } } });
    const argv = ['join', '-', ...api(), '--name', 'site', '--wait', '0', '--json'];
    const { exitCode, stderr } = await site.cpn(argv, { input: key, allowFailure: true });
    expect(exitCode).toBe(1);
    expect(stderr).toContain('lacks network (it has: status, note)');
    expect(stderr).not.toMatch(/pending|canary/);
    const kept = JSON.parse(await readFile(path(site.stateDir, 'cpn0.json'), 'utf8'));

    const canary = path(site.folder, 'canary');
    const hooked = text().replace('Address', `PostUp = touch ${canary}\nDNS = 10.77.0.53\nSaveConfig = true\nAddress`);
    await service.answer({ enrollPeer: { data: { config: hooked, network: { id: 7, name: 'office' } } } });
    const { joined, stderr: output } = await join(site);
    expect(output).toContain('PostUp of line 3 is a hook, and hooks are never run and not written to the file');
    expect(output).toContain('names 10.77.0.53 as DNS for this network');
    expect(output).not.toContain('canary');
    expect(await stat(canary).catch(() => null)).toBeNull();
    expect(await readFile(path(site.configDir, 'cpn0.conf'), 'utf8')).not.toMatch(/PostUp|canary|DNS|SaveConfig/);
    const now = JSON.parse(await readFile(path(site.stateDir, 'cpn0.json'), 'utf8'));
    expect(now.privateKey).toBe(kept.privateKey);
    expect(now.enrollment).toEqual(kept.enrollment);
    await introduce(joined, 'preshared-key', '/dev/stdin');
    expect(await site.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
  });

  it('uses it as given, but for what the guard refuses', async () => {
    expect(await site.ping('192.168.50.1', patiently)).toMatchObject({ received: 1 });
    const { peers, routes, sync, warnings } = await status(site);
    expect(warnings.join()).toContain('10.77.0.53 as DNS');
    expect(peers).toMatchObject([{ name: '10.77.0.1', allowed_ips: ['10.77.0.1/32', '192.168.50.0/24'] }]);
    expect(routes).toMatchObject([
      { prefix: '192.168.50.0/24', via: '10.77.0.1', state: 'active' },
      { prefix: '203.0.113.0/24', state: 'refused' },
    ]);
    expect(sync).toMatchObject({ mode: 'local' });
    const config = await readFile(path(site.configDir, 'cpn0.conf'), 'utf8');
    expect(config).toContain(`PresharedKey = ${presharedKey}`);
    expect(config).toContain('PersistentKeepalive = 21');
    expect(await plan(site)).toEqual({ exitCode: 0, changes: [] });
  });

  it('comes up from the last map, without the service', async () => {
    await service.stop();
    await site.cpn(['down']);
    await site.cpn(['up']);
    expect(await site.ping('192.168.50.1', patiently)).toMatchObject({ received: 1 });
    await site.cpn(['leave', '--yes', '--verify']);
  });
});
