/** Hosts of a control plane whose certificate a private CA issued. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Issued, ofAuthority, openAuthority } from '../api/certificate-authority.ts';
import { builtProgram } from '../lab/built-program.ts';
import { serveControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { ExecOptions, Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { previousProgram } from '../lab/previous-program.ts';
import type { Process } from '../lab/process.ts';
import { status } from './office.ts';

let lab: Lab;
let controlPlane: Host;
let edge: Host;
let server: Process;
let daemon: Daemon;
let roots: Readonly<Record<'office' | 'next' | 'old', Issued>>;
let leaves: Readonly<Record<'office' | 'next', Issued>>;

const api = 'https://cp.example.net:8787';

beforeAll(async () => {
  lab = await Lab.start({ commandServers: true });
  controlPlane = await lab.addHost('control-plane', { address: '203.0.113.1/24' });
  edge = await lab.addHost('edge', { address: '203.0.113.22/24' });
  for (const host of [controlPlane, edge]) {
    await writeFile(path(host.etcDir, 'hosts'), '127.0.0.1 localhost\n203.0.113.1 cp.example.net\n');
  }
  const { issue } = openAuthority(lab.folder);
  const authority = (name: string, days: [number, number] = [-1, 90]) => issue({ name, extensions: ofAuthority, days });
  roots = { office: authority('Office Root'), next: authority('Next Root'), old: authority('Old Root', [-9, -2]) };
  const leafOf = (issuer: Issued) => issue({ name: 'cp', issuer, extensions: ['subjectAltName=DNS:cp.example.net'] });
  leaves = { office: leafOf(roots.office), next: leafOf(roots.next) };
  await writeFile(path(lab.folder, 'cert.pem'), leaves.office.cert);
  await writeFile(path(lab.folder, 'key.pem'), leaves.office.key, { mode: 0o600 });
  const password = path(controlPlane.homeDir, 'password');
  await writeFile(password, 'correct horse battery staple', { mode: 0o600 });
  const flags = ['--tls-cert', path(lab.folder, 'cert.pem'), '--tls-key', path(lab.folder, 'key.pem')];
  server = await serveControlPlane(controlPlane, controlPlane.address, password, flags);
}, 60_000);

afterAll(() => lab?.stop());

/** A file of CAs on a host. */
async function writeCa(host: Host, ...contents: string[]): Promise<string> {
  const file = path(host.homeDir, 'ca.pem');
  await writeFile(file, contents.join(''));
  return file;
}

/** The control plane gets a certificate of another CA. */
async function install({ cert, key }: Issued): Promise<void> {
  await writeFile(path(lab.folder, 'cert.pem'), cert);
  await writeFile(path(lab.folder, 'key.pem'), key);
  const before = server.output.stderr.length;
  server.signal('SIGHUP');
  await eventually('the reload', () => server.output.stderr.slice(before).includes('"msg":"certificate reloaded"'));
}

const cpn = (args: readonly string[], options: ExecOptions = {}) => edge.cpn(args, { allowFailure: true, ...options });
const stateOf = async (host: Host) => JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8'));
const doctor = async (env = {}) => (await cpn(['doctor', '--all'], { env })).stdout;
const untilNamed = (name: string) =>
  eventually('the daemon has the change', async () => (await stateOf(edge)).membership.map.peers[0].name === name, {
    timeoutMs: 60_000,
  });
const trusting = () => ({ NODE_EXTRA_CA_CERTS: path(edge.homeDir, 'ca.pem') });

describe('an administrator', () => {
  it('logs in with --ca-file, whose content all later commands use', async () => {
    const password = path(controlPlane.homeDir, 'password');
    const argv = ['login', '--api', api, '--email', 'owner@example.net', '--password-file', password];
    const { exitCode, stderr } = await controlPlane.cpn(argv, { allowFailure: true });
    expect([exitCode, stderr]).toEqual([5, expect.stringMatching(/give it as --ca-file/)]);
    const file = await writeCa(controlPlane, roots.office.cert);
    await controlPlane.cpn([...argv, '--ca-file', file]);
    await rm(file);
    await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
    expect((await controlPlane.cpn(['api', 'GET', '/api/networks'])).stdout).toContain('office');
    // The same again, by the saved CA.
    await controlPlane.cpn(argv);
    const other = await controlPlane.cpn(['network', 'list', '--ca-file', 'none'], { allowFailure: true });
    expect([other.exitCode, other.stderr]).toEqual([5, expect.stringContaining('"Office Root"')]);
  });
});

describe('a host', () => {
  it('refuses a --ca-file that is none, and an address without TLS', async () => {
    const key = `cpn_${'x'.repeat(43)}`;
    const join = async (file: string, url = api) => {
      const argv = ['join', '-', '--api', url, '--ca-file', file, '--wait', '0'];
      const { exitCode, stderr } = await cpn(argv, { input: key });
      expect(exitCode).toBe(2);
      return stderr;
    };
    const { office, old } = roots;
    expect(await join(await writeCa(edge, office.cert, office.key))).toContain(
      'ca.pem holds a private key; name a file',
    );
    expect(await join(await writeCa(edge, old.cert))).toMatch(/"Old Root", which expired on .* leave it out, or name/);
    expect(await join(await writeCa(edge, 'x'))).toContain('holds no certificate in PEM; name a file with the lines');
    expect(await join(await writeCa(edge, ' '.repeat(70_000)))).toContain('is larger than 64 KiB; name the CA of the');
    expect(await join('/nonexistent')).toContain('cannot be read from /nonexistent (ENOENT)');
    const file = await writeCa(edge, office.cert);
    expect(await join(file, 'http://127.0.0.1:1')).toContain('--ca-file is for a control plane at https');
  });

  it('joins by a variable of the shell, and reads how the daemon gets the CA too', async () => {
    const key = (await controlPlane.cpn(['key', 'create', 'office', '--name', 'edge'])).stdout.trim();
    await writeCa(edge, roots.office.cert);
    const argv = ['join', '-', '--api', api, '--name', 'edge', '--wait', '0'];
    const { exitCode, stderr } = await cpn(argv, { input: key, env: trusting() });
    const file = path(edge.homeDir, 'ca.pem');
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringContaining('because of NODE_EXTRA_CA_CERTS, a variable that cpn.service'),
    ]);
    expect(stderr).toContain(`save the CA for both: cpn set cpn0 --ca-file ${file}`);
  });

  it('has in doctor that the daemon fails, also after a command that does not', async () => {
    daemon = await startDaemon(edge);
    await daemon.awaitLog('the certificate', (line) => JSON.stringify(line).includes('Office Root'));
    await eventually('the failure is noted', async () => (await status(edge)).sync.error?.includes('Office Root'));
    expect((await cpn(['reconcile'], { env: trusting() })).exitCode).toBe(0);
    const found = await doctor(trusting());
    expect(found).toMatch(/the control plane at https:\/\/cp\.example\.net:8787: answers within/);
    expect(found).toMatch(
      /the last sync of cpn0 by the daemon: fails since 20.* UTC; it has not succeeded since it started: .*"Office Root"/,
    );
    expect(found).toMatch(/the environment of the daemon differs: "cpn set cpn0" saves --ca-file/);
    await daemon.stop();
    expect(await doctor(trusting())).toMatch(/the last sync of cpn0: succeeded/);
    daemon = await startDaemon(edge);
  });

  it('refuses CAs that did not issue the certificate, and keeps its state', async () => {
    const before = await stateOf(edge);
    const { exitCode, stderr } = await cpn(['set', '--ca-file', await writeCa(edge, roots.next.cert)]);
    expect([exitCode, stderr]).toEqual([5, expect.stringMatching(/"Office Root".*accepts only "Next Root"/)]);
    expect((await stateOf(edge)).service).toEqual(before.service);
  });

  it('keeps the content of --ca-file, by which the daemon goes on without the file', async () => {
    const file = await writeCa(edge, roots.office.cert);
    const { stdout } = await cpn(['set', '--ca-file', file, '--json']);
    expect(JSON.parse(stdout).networks[0].changes).toContainEqual(
      expect.objectContaining({ before: { CAs: 'those of this machine' }, after: { CAs: '"Office Root"' } }),
    );
    await rm(file);
    await controlPlane.cpn(['peer', 'update', 'office', '1', '--name', 'renamed']);
    await untilNamed('renamed');
    await daemon.stop();
    daemon = await startDaemon(edge);
    await eventually('a new daemon has no error', async () => !(await status(edge)).sync.error, { timeoutMs: 60_000 });
    expect((await status(edge)).ca_certificates).toEqual([{ subject: 'Office Root', expires_at: expect.any(String) }]);
    expect((await cpn(['status'])).stdout).toMatch(/only with a certificate of "Office Root" until 20\d\d-\d\d-\d\d/);
    const found = await doctor();
    // The version before ignores the CAs, and reads the rest.
    const older = path(await previousProgram(), 'cpn.js');
    const { stdout: before } = await edge.exec([older, 'status', '--json']);
    expect(JSON.parse(before).networks).toMatchObject([{ interface: 'cpn0', address: '10.77.0.1', peers: [] }]);
    expect(found).toMatch(
      /the CA "Office Root" of cpn0: is the only CA accepted for the control plane; it expires on 20.* UTC/,
    );
    expect(found).toMatch(/the last sync of cpn0: succeeded at 20.* UTC/);
  });

  it('names both CAs where the control plane has another one, and takes the new one', async () => {
    const mark = daemon.mark();
    await install(leaves.next);
    await cut();
    await daemon.awaitLog(
      'the other CA',
      (line) => /Next Root.*accepts only .*Office Root/.test(JSON.stringify(line)),
      mark,
    );
    const both = await writeCa(edge, roots.office.cert, roots.next.cert);
    expect((await cpn(['set', '--ca-file', both])).stdout).toContain('"Office Root" and 1 more');
    await eventually('no error', async () => !(await status(edge)).sync.error, { timeoutMs: 60_000 });
  });

  it('clears them with "none", and then trusts a CA in the store of the machine, with the daemon', async () => {
    const refused = await cpn(['set', '--ca-file', 'none']);
    expect([refused.exitCode, refused.stderr]).toEqual([5, expect.stringContaining('"Next Root"')]);
    const store = path(lab.folder, 'certs');
    await mkdir(store);
    await writeFile(path(store, 'ca-certificates.crt'), roots.next.cert);
    await edge.exec(['mount', '--bind', store, '/etc/ssl/certs']);
    // In a process of its own: Node reads the store once.
    const { exitCode, stdout } = await edge.exec([await builtProgram(), 'set', '--ca-file', 'none'], {
      allowFailure: true,
    });
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('those of this machine')]);
    expect((await stateOf(edge)).service).not.toHaveProperty('authorities');
    await daemon.stop();
    daemon = await startDaemon(edge);
    await controlPlane.cpn([
      'peer',
      'update',
      'office',
      '1',
      '--name',
      'last',
      '--ca-file',
      await writeCa(controlPlane, roots.next.cert),
    ]);
    await untilNamed('last');
    expect((await status(edge)).sync.error).toBeFalsy();
  });
});

/** Ends the connections of hosts, so that the next one gets the new certificate. */
async function cut(): Promise<void> {
  await controlPlane.exec(['ss', '--kill', 'state', 'established', 'sport', '=', ':8787']);
}
