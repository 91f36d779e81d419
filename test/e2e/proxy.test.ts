/** Hosts whose only way to the control plane is an HTTP proxy. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Issued, ofAuthority, openAuthority } from '../api/certificate-authority.ts';
import { keyFlags, serveControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { HttpProxy } from '../lab/http-proxy.ts';
import { Lab } from '../lab/lab.ts';
import { memory } from '../lab/memory.ts';
import type { Process } from '../lab/process.ts';
import { patiently, status } from './office.ts';

let lab: Lab;
/** It has the certificates, and those that hosts trust. */
let certificateFolder: string;
let controlPlane: Host;
let proxy: HttpProxy;
let edge: Host;
let far: Host;
let daemon: Daemon;
let server: Process;
/** Those of the control plane, whose issuer hosts trust. */
let certificates: Readonly<Record<'good' | 'ending' | 'expired', Issued>>;

const api = 'https://cp.example.net:8787';
const target = 'cp.example.net:8787';

beforeAll(async () => {
  certificateFolder = await mkdtemp(path(memory, 'cpn-lab-certificates-'));
  // In the environment of all commands, so that they run in command servers.
  const env = { NODE_EXTRA_CA_CERTS: path(certificateFolder, 'trusted.pem') };
  lab = await Lab.start({ commandServers: true, env });
  const outside = await lab.addSegment('outside');
  controlPlane = await lab.addHost('control-plane', { on: outside, address: '198.51.100.1/24' });
  const gateway = await lab.addHost('gateway', { address: '203.0.113.5/24' });
  await gateway.plug(outside, { address: '198.51.100.5/24' });
  for (const host of [controlPlane, gateway]) {
    await writeFile(path(host.etcDir, 'hosts'), '127.0.0.1 localhost\n198.51.100.1 cp.example.net\n');
  }
  await serve();
  proxy = await HttpProxy.start(gateway);
  edge = await lab.addHost('edge', { address: '203.0.113.22/24' });
  await gateway.exec(['ip', 'address', 'add', '172.20.0.6/32', 'dev', 'lo']);
  await edge.exec(['ip', 'route', 'add', '172.20.0.6/32', 'via', gateway.address]);
  await writeFile(path(edge.etcDir, 'hosts'), '127.0.0.1 localhost\n172.20.0.6 proxy.site\n172.20.0.7 proxy.site\n');
  far = await lab.addHost('far', { address: '203.0.113.23/24' });
  await far.plug(await lab.addSegment('lan'), { address: '172.20.9.1/16' });
}, 60_000);

afterAll(async () => {
  await lab?.stop();
  await rm(certificateFolder, { recursive: true, force: true });
});

async function serve(): Promise<void> {
  const { issue } = openAuthority(certificateFolder);
  const issuer = issue({ name: 'Office Root', extensions: ofAuthority });
  const lasting = (from: number, to: number) =>
    issue({ name: 'cp', issuer, extensions: ['subjectAltName=DNS:cp.example.net'], days: [from, to] });
  certificates = { good: lasting(-1, 90), ending: lasting(-80, 10), expired: lasting(-9, -2) };
  const { good } = certificates;
  const [certFile, keyFile] = [path(certificateFolder, 'cert.pem'), path(certificateFolder, 'key.pem')];
  await writeFile(certFile, good.cert, { mode: 0o644 });
  await writeFile(keyFile, good.key, { mode: 0o600 });
  await writeFile(path(certificateFolder, 'trusted.pem'), issuer.cert, { mode: 0o644 });
  const password = path(controlPlane.homeDir, 'password');
  await writeFile(password, 'correct horse battery staple', { mode: 0o600 });
  const flags = ['--tls-cert', certFile, '--tls-key', keyFile];
  server = await serveControlPlane(controlPlane, controlPlane.address, password, flags);
  await controlPlane.cpn(['login', '--api', api, '--email', 'owner@example.net', '--password-file', password]);
  await controlPlane.cpn([
    'network',
    'create',
    '--name',
    'office',
    '--cidr',
    '10.77.0.0/24',
    '--route',
    '172.20.0.0/16',
  ]);
}

async function join(host: Host, flags: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const create = ['key', 'create', 'office', '--name', host.name, ...keyFlags(flags)];
  const key = (await controlPlane.cpn(create)).stdout.trim();
  const argv = ['join', '-', '--api', api, '--name', host.name, '--wait', '0', ...flags];
  return host.cpn(argv, { input: key, env, allowFailure: true });
}

const secretFile = async (host: Host, text: string): Promise<string> => {
  const file = path(host.homeDir, 'proxy');
  await writeFile(file, text, { mode: 0o600 });
  return file;
};

const stateOf = async (host: Host) => JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8'));
const doctor = async (host: Host, env = {}) =>
  (await host.cpn(['doctor', '--all'], { allowFailure: true, env })).stdout;
const peersOf = async (host: Host): Promise<string[]> =>
  (await status(host)).peers.map(({ name }: { name: string }) => name).sort();

describe('a join', () => {
  it('fails at once, and names the variable, where the proxy does not answer, does not resolve, or refuses', async () => {
    const cases: [string, string][] = [
      [
        'http://203.0.113.5:1',
        'the proxy http://203.0.113.5:1 (HTTPS_PROXY) is unreachable: the connection was refused',
      ],
      ['http://proxy.invalid:3128', 'the proxy http://proxy.invalid:3128 (HTTPS_PROXY) is unreachable: '],
    ];
    for (const [HTTPS_PROXY, problem] of cases) {
      const { exitCode, stderr } = await join(edge, [], { HTTPS_PROXY });
      expect([exitCode, stderr]).toEqual([5, expect.stringContaining(problem)]);
      expect(stderr).not.toContain('retrying in');
    }
    await proxy.restart('ConnectPort 443');
    const refused = await join(edge, [], { HTTPS_PROXY: proxy.url });
    expect([refused.exitCode, refused.stderr]).toEqual([
      5,
      expect.stringContaining(
        `(HTTPS_PROXY) does not allow connections to ${target} (403); ask its operator to allow it`,
      ),
    ]);
    await proxy.restart('BasicAuth user hunter2');
    const unknown = await join(edge, [], { HTTPS_PROXY: proxy.url.replace('//', '//user:wrong%21@') });
    expect([unknown.exitCode, unknown.stderr]).toEqual([
      5,
      expect.stringMatching(/does not accept its user and password \(40[17]\)/),
    ]);
    expect(unknown.stderr).not.toContain('wrong');
  });

  it('is direct, and mentions no proxy, where NO_PROXY has the control plane', async () => {
    const { exitCode, stderr } = await join(controlPlane, [], {
      HTTPS_PROXY: 'http://203.0.113.5:1',
      NO_PROXY: '.example.net',
    });
    expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('proxy')]);
    expect((await stateOf(controlPlane)).service).not.toHaveProperty('proxy');
  });

  it('stays direct with a variable that comes later, as the guard takes it to be, and reports the variable', async () => {
    const env = { HTTPS_PROXY: 'http://203.0.113.5:1' };
    const { exitCode, stderr } = await controlPlane.cpn(['reconcile'], { env });
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('"cpn set --proxy http://203.0.113.5:1" saves it')]);
    const { stdout } = await controlPlane.cpn(['doctor', '--all'], { env, allowFailure: true });
    expect(stdout).toContain('HTTPS_PROXY names http://203.0.113.5:1, which is not saved and not used');
  });

  it('goes through the proxy that the environment names, says that it saves it, and stores its password alone', async () => {
    const HTTPS_PROXY = proxy.url.replace('//', '//user:hunter2@');
    const { exitCode, stdout, stderr } = await join(edge, ['--listen-port', '51820'], { HTTPS_PROXY });
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining(`saved the proxy ${proxy.url} from HTTPS_PROXY`)]);
    expect(stdout + stderr).not.toContain('hunter2');
    expect((await stateOf(edge)).service.proxy).toEqual({ from: 'HTTPS_PROXY', url: HTTPS_PROXY });
    expect(proxy.targets).toContain(target);
    expect((await edge.cpn(['reconcile'])).exitCode).toBe(0);
  });
});

describe('a host behind a proxy', () => {
  it('receives changes at once, by long polls through the proxy, from a daemon without the variable', async () => {
    daemon = await startDaemon(edge);
    await eventually('the daemon waits for changes', async () => (await status(edge)).sync.mode === 'push', {
      timeoutMs: 30_000,
    });
    const file = await secretFile(far, `${proxy.url.replace('//', '//user:hunter2@')}\n`);
    const joined = await join(far, [
      '--type',
      'connector',
      '--endpoint',
      `${far.address}:51820`,
      '--proxy',
      `file:${file}`,
    ]);
    expect([joined.exitCode, joined.stderr]).toEqual([0, expect.not.stringContaining('saved the proxy')]);
    await eventually('edge has far', async () => (await peersOf(edge)).includes('far'));
    expect(await edge.ping((await status(far)).address, patiently)).toMatchObject({ received: 1 });
  });

  it('has its proxy in doctor, and no word of a resolver for the control plane', async () => {
    const found = await doctor(edge);
    expect(found).toMatch(
      /the proxy of cpn0: http:\/\/203\.0\.113\.5:3128, saved from HTTPS_PROXY; the daemon uses it too/,
    );
    expect(found).not.toMatch(/dns .*cp\.example\.net|cp\.example\.net.*resolve/);
    expect(found).not.toContain('hunter2');
  });

  it('works on while the proxy is down, names it in status and doctor, and goes on once it is back', async () => {
    await proxy.stop();
    await eventually('status names the proxy', async () =>
      String((await status(edge)).sync.error).includes(`the proxy ${proxy.url} (HTTPS_PROXY) is unreachable`),
    );
    expect(await doctor(edge)).toContain(`the proxy ${proxy.url} (HTTPS_PROXY) is unreachable`);
    expect(await edge.ping((await status(far)).address, patiently)).toMatchObject({ received: 1 });
    await proxy.restart('BasicAuth user hunter2');
    await controlPlane.cpn(['peer', 'update', 'office', 'far', '--name', 'farther']);
    await eventually('edge has the new name', async () => (await peersOf(edge)).includes('farther'), {
      timeoutMs: 90_000,
    });
  });
});

describe('the certificate of the control plane', () => {
  async function install({ cert, key }: Issued): Promise<void> {
    await writeFile(path(certificateFolder, 'cert.pem'), cert);
    await writeFile(path(certificateFolder, 'key.pem'), key);
    const before = server.output.stderr.length;
    server.signal('SIGHUP');
    await eventually('the reload', () => server.output.stderr.slice(before).includes('"msg":"certificate reloaded"'));
  }

  it('that ends soon is a problem of doctor alone', async () => {
    await install(certificates.ending);
    expect(await doctor(edge)).toMatch(
      /the TLS certificate of https:\/\/cp\.example\.net:8787: expires on 20.*, in 9 days\s.*ask the operator of the control plane to renew it/s,
    );
    expect((await edge.cpn(['reconcile'])).exitCode).toBe(0);
  });

  it('that has expired is named with both clocks and the remedy: by commands, doctor, the daemon and status', async () => {
    await install(certificates.expired);
    const problem =
      /its TLS certificate expired on 20.* UTC, and the clock of this host is at 20.* \(CERT_HAS_EXPIRED\)/;
    const remedy = 'renew the certificate of the control plane; if the clock of this host is wrong: timedatectl';
    const key = `cpn_${'x'.repeat(43)}`;
    const argv = ['join', '-', '--api', api, '--name', 'near', '--wait', '0'];
    const joined = await controlPlane.cpn(argv, { input: key, allowFailure: true });
    const listed = await controlPlane.cpn(['network', 'list'], { allowFailure: true });
    for (const { exitCode, stderr } of [joined, listed]) {
      expect([exitCode, stderr]).toEqual([5, expect.stringMatching(problem)]);
      expect(stderr).toContain(remedy);
    }
    const found = await doctor(edge);
    expect(found).toMatch(problem);
    expect(found).toContain(remedy);
    const mark = daemon.mark();
    // Its connection is cut: the next one gets the new certificate.
    await proxy.restart();
    await daemon.awaitLog('the certificate', (line) => problem.test(JSON.stringify(line)), mark);
    await eventually('status has it', async () => problem.test(String((await status(edge)).sync.error)));
    await install(certificates.good);
    await eventually('status has no error', async () => !(await status(edge)).sync.error, { timeoutMs: 90_000 });
  });
});

describe('cpn set --proxy', () => {
  it('refuses a proxy through which the control plane does not answer, and keeps the other', async () => {
    const { exitCode, stderr } = await edge.cpn(['set', '--proxy', 'http://203.0.113.5:1'], { allowFailure: true });
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('the proxy http://203.0.113.5:1 (--proxy)')]);
    expect((await stateOf(edge)).service.proxy.from).toBe('HTTPS_PROXY');
  });

  it('moves to another proxy, which takes the place of the control plane in the guard', async () => {
    await proxy.restart();
    const before = (await status(edge)).routes;
    expect(before).toMatchObject([{ prefix: '172.20.0.0/16', via: 'farther' }]);
    const { stdout } = await edge.cpn(['set', '--proxy', 'http://proxy.site:3128', '--json']);
    expect(JSON.parse(stdout).networks[0].changes).toContainEqual(
      expect.objectContaining({
        kind: 'api',
        before: { proxy: proxy.url },
        after: { proxy: 'http://proxy.site:3128' },
      }),
    );
    expect((await stateOf(edge)).service.proxy).toEqual({ from: '--proxy', url: 'http://proxy.site:3128' });
    expect((await status(edge)).routes).toMatchObject([
      { prefix: '172.20.0.0/16', state: 'refused', reason: 'covers the proxy to the control plane (172.20.0.6)' },
    ]);
    await eventually('the daemon connects by the other one', async () => proxy.targets.length > 2);
    expect((await status(edge)).sync.error).toBeFalsy();
  });
});

it('administration goes through the proxy of the environment, and remembers that of --proxy', async () => {
  const password = path(controlPlane.homeDir, 'password');
  const before = proxy.targets.length;
  const login = ['login', '--api', api, '--email', 'owner@example.net', '--password-file', password];
  expect((await far.cpn([...login, '--proxy', proxy.url])).exitCode).toBe(0);
  expect((await far.cpn(['network', 'list'])).stdout).toContain('office');
  expect((await far.cpn(['api', 'GET', '/api/networks'])).stdout).toContain('office');
  expect(proxy.targets.length).toBeGreaterThan(before + 2);
  await mkdir(path(far.homeDir, 'second'));
  const env = { XDG_CONFIG_HOME: path(far.homeDir, 'second'), HTTPS_PROXY: proxy.url };
  expect((await far.cpn(login, { env })).exitCode).toBe(0);
  expect((await far.cpn(['network', 'list'], { env })).stdout).toContain('office');
});

it('a host behind a proxy leaves, and its peer is gone', async () => {
  await daemon.stop();
  expect((await edge.cpn(['leave', 'cpn0', '--yes'])).exitCode).toBe(0);
  expect((await controlPlane.cpn(['peer', 'list', 'office'])).stdout).not.toContain('edge');
});
