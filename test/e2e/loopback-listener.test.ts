/** A control plane on loopback without TLS, whose port a local user takes while it is down. */
import { readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import type { Process } from '../lab/process.ts';
import { status } from './office.ts';

const api = 'http://127.0.0.1:8787';
const email = 'owner@example.net';
/** Users of the control plane, before and after a reinstallation, and a user who may log in. */
const [service, reinstalled, stranger] = [990, 991, 1234];

let lab: Lab;
let host: Host;
let daemon: Daemon;
let controlPlane: Process;

beforeAll(async () => {
  lab = await Lab.start({ commandServers: true });
  host = await lab.addHost('site', { address: '203.0.113.22/24' });
  await host.exec(['install', '-d', '-m', '755', '/run/cp']);
  controlPlane = await serve(service);
  await host.cpn(login());
  await host.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
  await host.cpn(['join', '-', '--api', api, '--wait', '0'], { input: await makeKey() });
  daemon = await startDaemon(host);
  await daemon.awaitLog('it starts', ({ msg }) => msg === 'reconciling the network');
}, 60_000);

afterAll(() => lab?.stop());

const login = () => ['login', '--api', api, '--email', email, '--password-file', '/run/cp/password'];
const as = (user: number) => ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs'];

async function serve(user: number): Promise<Process> {
  const give = `printf %s 'correct horse battery staple' >/run/cp/password; chmod 600 /run/cp/password
    chown -R ${user}:${user} /run/cp`;
  await host.exec(['sh', '-ec', give]);
  const owner = ['--owner-email', email, '--owner-password-file', '/run/cp/password'];
  const argv = ['control-plane', 'serve', '--listen', '127.0.0.1:8787', '--data', '/run/cp/data', ...owner];
  const process = host.spawn([...as(user), await builtProgram(), ...argv]);
  await process.waitForLine(/listening on/);
  // The administrator of the host is root.
  await host.exec(['chown', 'root', '/run/cp/password']);
  return process;
}

async function makeKey(): Promise<string> {
  return (await host.cpn(['key', 'create', 'office', '--name', 'site'])).stdout.trim();
}

/** Prints each head of a request, and each connection; `closes` the listening socket as soon as there is one. */
const listener = (closes: boolean) => `
  const server = require('net').createServer((socket) => {
    console.log('connection');
    socket.on('data', (data) => console.log(String(data))).on('error', () => {});
    if (${closes}) server.close(() => server.listen(8787, '127.0.0.1'));
    socket.on('close', () => console.log('closed'));
  });
  server.listen(8787, '127.0.0.1', () => console.log('listening'));`;

async function takePort(closes = false): Promise<Process> {
  const process = host.spawn([...as(stranger), 'node', '-e', listener(closes)]);
  await process.waitForLine(/listening/);
  return process;
}

const stateFile = () => path(host.stateDir, 'cpn0.json');
const readListener = async () => JSON.parse(await readFile(stateFile(), 'utf8')).service.listener;
const run = (...args: string[]) => host.cpn(args, { allowFailure: true });

describe('a user who takes the port of a control plane that is down', () => {
  it('gets no token of the daemon, no session and no key, and is named', async () => {
    expect(await readListener()).toBe(service);
    const unused = await makeKey();
    await controlPlane.stop();
    const thief = await takePort();
    await eventually('status names the user', async () => /user 1234 listens/.test((await status(host)).sync.error));
    const doctor = await run('doctor');
    expect(doctor.stdout).toMatch(
      /is not trusted: user 1234 listens there, and user 990.* did before; nothing was sent/,
    );
    const listed = await run('network', 'list');
    expect([listed.exitCode, listed.stderr]).toEqual([5, expect.stringMatching(/1234.*"cpn login --api/)]);
    const joined = await host.cpn(['join', '-', '--api', api, '--wait', '0'], { input: unused, allowFailure: true });
    expect([joined.exitCode, joined.stderr]).toEqual([5, expect.stringMatching(/1234.*"cpn set --api/)]);
    await thief.stop();
    // Every connection ended before its request.
    expect(thief.output.stdout).toMatch(/^listening\nconnection\n/);
    expect(thief.output.stdout.replace(/^(listening|connection|closed)\n/gm, '')).toBe('');
  });

  it('gets nothing either where it closes the listening socket as soon as a connection is there', async () => {
    const thief = await takePort(true);
    for (const _ of [1, 2, 3]) expect((await run('network', 'list')).exitCode).toBe(5);
    await thief.stop();
    expect(thief.output.stdout).toMatch(/connection\n/);
    expect(thief.output.stdout.replace(/^(listening|connection|closed)\n/gm, '')).toBe('');
  });

  it('is forgotten once the control plane is back', async () => {
    controlPlane = await serve(service);
    await host.cpn(['network', 'list']);
    await host.cpn(['reconcile']);
    expect((await status(host)).sync.error).toBeUndefined();
  });
});

describe('a control plane that runs as another user after a reinstallation', () => {
  it('is trusted again by "cpn set --api" and by "cpn login"', async () => {
    await controlPlane.stop();
    controlPlane = await serve(reinstalled);
    expect((await run('reconcile')).stderr).toMatch(/user 991.* listens there, and user 990/);
    const set = await run('set', '--api', api);
    expect([set.exitCode, set.stdout]).toEqual([0, expect.stringMatching(/~ api cpn0 .*990 → .*991/)]);
    expect(set.stderr).toMatch(/user 991.* listens at .* now, and user 990.* did before/);
    expect(await readListener()).toBe(reinstalled);
    expect((await run('network', 'list')).exitCode).toBe(5);
    expect((await host.cpn(login())).stderr).toMatch(/user 991.* listens at .* now, and user 990/);
    await host.cpn(['network', 'list']);
    await eventually('the daemon is in sync', async () => (await status(host)).sync.error === undefined);
  });

  it('is trusted as root without a word', async () => {
    await controlPlane.stop();
    controlPlane = await serve(0);
    await host.cpn(['network', 'list']);
    await host.cpn(['reconcile']);
    expect(await readListener()).toBe(reinstalled);
  });
});

describe('a network without a remembered user', () => {
  it('of an older version remembers the first one that answers', async () => {
    await daemon.stop();
    await controlPlane.stop();
    controlPlane = await serve(service);
    const state = JSON.parse(await readFile(stateFile(), 'utf8'));
    delete state.service.listener;
    await writeFile(stateFile(), JSON.stringify(state));
    await host.cpn(['reconcile']);
    expect(await readListener()).toBe(service);
    const { stdout } = await run('doctor', '--all');
    expect(stdout).toMatch(/answers within \d+ ms, without TLS, from a program of user 990/);
  });

  it('whose control plane is behind a DNAT rule works, and "cpn doctor" reports that nothing is checked', async () => {
    await controlPlane.stop();
    const server = await lab.addHost('server', { address: '203.0.113.1/24' });
    const answer = `require('http').createServer((_, reply) => reply.end()).listen(8787, '203.0.113.1', () => console.log('ready'))`;
    await server.spawn(['node', '-e', answer]).waitForLine(/ready/);
    const translate = `echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet; nft -f -`;
    const rules = [
      'add table ip nat',
      'add chain ip nat output { type nat hook output priority -100; }',
      'add chain ip nat postrouting { type nat hook postrouting priority 100; }',
      'add rule ip nat output ip daddr 127.0.0.1 tcp dport 8787 dnat to 203.0.113.1',
      'add rule ip nat postrouting oifname eth0 masquerade',
    ].join('\n');
    await host.exec(['sh', '-ec', translate], { input: rules });
    const { stdout } = await run('doctor');
    expect(stdout).toMatch(/is not checked: no socket of this network namespace listens there/);
  });
});
