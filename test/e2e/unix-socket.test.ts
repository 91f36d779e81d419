/** A control plane at a Unix socket, and a host on the same machine. */
import { readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { previousProgram } from '../lab/previous-program.ts';
import type { Process } from '../lab/process.ts';
import { status } from './office.ts';

const socket = '/run/cp/api.sock';
const api = `unix:${socket}`;
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
  const prepare = `install -d -m 755 -o ${service} -g ${service} /run/cp
    printf %s 'correct horse battery staple' >/run/cp/password; chmod 600 /run/cp/password`;
  await host.exec(['sh', '-ec', prepare]);
  controlPlane = await serve(service, api);
  await host.cpn(['login', '--api', api, '--email', email, '--password-file', '/run/cp/password']);
  await host.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24']);
}, 60_000);

afterAll(() => lab?.stop());

const as = (user: number) => ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs'];

async function spawnServe(user: number, listen: string, data = '/run/cp/data', flags: string[] = []): Promise<Process> {
  const owner = ['--owner-email', email, '--owner-password-file', '/run/cp/own-password'];
  await host.exec(['install', '-m', '600', '-o', `${user}`, '/run/cp/password', '/run/cp/own-password']);
  await host.exec(['sh', '-ec', `[ ! -e /run/cp/data ] || chown -R ${user} /run/cp/data`]);
  const argv = ['control-plane', 'serve', '--listen', listen, '--data', data, ...owner, ...flags];
  return host.spawn([...as(user), 'sh', '-c', 'umask 077; exec "$0" "$@"', await builtProgram(), ...argv]);
}

async function serve(user: number, listen: string, ...flags: string[]): Promise<Process> {
  const process = await spawnServe(user, listen, '/run/cp/data', flags);
  await process.waitForLine(/listening on unix:\/run\/cp\/api\.sock$/);
  return process;
}

async function makeKey(): Promise<string> {
  return (await host.cpn(['key', 'create', 'office', '--name', 'site'])).stdout.trim();
}

const run = (...args: string[]) => host.cpn(args, { allowFailure: true });
const readService = async () => JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8')).service;
const isSynced = async () => (await status(host)).sync.error === undefined;

describe('a host at the Unix socket of its control plane', () => {
  it('joins, and its daemon receives changes by push', async () => {
    await host.cpn(['join', '-', '--api', api, '--wait', '0'], { input: await makeKey() });
    expect(await readService()).toMatchObject({ url: api, listener: service });
    daemon = await startDaemon(host);
    await eventually('it long-polls', async () => (await status(host)).sync.mode === 'push');
    await host.cpn(['network', 'update', 'office', '--name', 'head-office']);
    await eventually('the new name is there', async () => (await status(host)).network.name === 'head-office');
    expect(daemon.log.filter(({ level }) => level >= 40)).toEqual([]);
  });

  it('is examined by "cpn doctor", and is in the audit as a client on this host', async () => {
    const { stdout } = await run('doctor', '--all');
    expect(stdout).toMatch(
      /unix:\/run\/cp\/api\.sock: answers within \d+ ms, by a Unix socket, from a program of user 990/,
    );
    const audit = JSON.parse((await host.cpn(['api', 'GET', '/api/audit'])).stdout);
    expect(audit.data[0].address).toBe('127.0.0.1');
    const { stdout: mode } = await host.exec(['stat', '-c', '%A %u', socket]);
    expect(mode.trim()).toMatch(/^srw.rw.rw. 990$/);
  });

  it('is refused where the user may not reach the folder', async () => {
    await host.exec(['chmod', '700', '/run/cp']);
    const argv = ['env', 'XDG_CONFIG_HOME=/nonexistent', await builtProgram(), 'api', 'GET', '/healthz', '--api', api];
    const { exitCode, stderr } = await host.exec([...as(stranger), ...argv], {
      allowFailure: true,
    });
    await host.exec(['chmod', '755', '/run/cp']);
    expect([exitCode, stderr]).toEqual([5, expect.stringMatching(/this user may not connect \(EACCES\)/)]);
  });

  it('cannot ask for the address of "--endpoint auto" there, which is its own', async () => {
    const { exitCode, stderr } = await run('set', '--endpoint', 'auto');
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/found no address of this host that peers can dial/)]);
  });
});

describe('the socket', () => {
  it('is not taken from a control plane that serves, and no file is replaced', async () => {
    const second = await (await spawnServe(service, api, '/run/cp/second')).exited;
    expect([second.exitCode, second.stderr]).toEqual([
      1,
      expect.stringMatching(/cannot listen on unix:.*another program/),
    ]);
    const file = await (await spawnServe(service, 'unix:/run/cp/password', '/run/cp/second')).exited;
    expect([file.exitCode, file.stderr]).toEqual([
      2,
      expect.stringMatching(/is not a socket; cpn does not replace it/),
    ]);
    const tls = ['--tls-cert', '/x', '--tls-key', '/x'];
    expect((await run('control-plane', 'serve', '--listen', api, ...tls)).exitCode).toBe(2);
    await host.cpn(['network', 'list']);
  });

  it('of a killed control plane is replaced, and gone after a stop', async () => {
    await host.exec(['sh', '-c', 'kill -9 "$(cat)"'], {
      input: (await host.exec(['pgrep', '-u', String(service)])).stdout.trim(),
    });
    await controlPlane.exited;
    const curl = 'curl -v --unix-socket /run/cp/api.sock http://localhost/';
    const { stdout } = await run('doctor');
    expect(stdout).toMatch(/unix:\/run\/cp\/api\.sock: is unreachable: the connection was refused \(ECONNREFUSED\)/);
    controlPlane = await serve(service, api);
    await host.cpn(['network', 'list']);
    await controlPlane.stop();
    const gone = await run('doctor');
    expect(gone.stdout).toMatch(/is unreachable: the socket does not exist \(ENOENT\)/);
    expect(gone.stdout).toContain(curl);
  });
});

describe('a socket of another user', () => {
  const listen = `require('net').createServer((socket) => socket.on('data', (data) => console.log(String(data))))
    .listen('${socket}', () => console.log('listening'))`;

  it('gets no secret, neither in a folder that is open to others nor in a sticky one', async () => {
    for (const [mode, problem] of [
      ['777', /they can write in \/run\/cp \(mode 0777\).*chmod go-w \/run\/cp/],
      ['1777', /the socket belongs to user 1234; before, it belonged to user 990; nothing was sent.*cpn set --api/],
    ] as const) {
      await host.exec(['chmod', mode, '/run/cp']);
      const thief = host.spawn([...as(stranger), 'node', '-e', listen]);
      await thief.waitForLine(/listening/);
      if (mode === '777') await host.exec(['chown', String(service), socket]);
      expect((await run('reconcile')).stderr).toMatch(problem);
      expect((await status(host)).sync.error).toMatch(problem);
      const listed = await run('network', 'list');
      expect([listed.exitCode, listed.stderr]).toEqual([5, expect.stringMatching(mode === '777' ? problem : /1234/)]);
      await thief.stop();
      expect(thief.output.stdout).toBe('listening\n');
      await host.exec(['rm', '-f', socket]);
    }
    await host.exec(['chmod', '755', '/run/cp']);
  });

  it('is trusted once "cpn set --api" and "cpn login" confirm it', async () => {
    await host.exec(['chown', String(reinstalled), '/run/cp']);
    controlPlane = await serve(reinstalled, api);
    expect((await run('reconcile')).stderr).toMatch(/the socket belongs to user 991; before, it belonged to user 990/);
    expect((await run('set', '--api', api)).exitCode).toBe(0);
    expect(await readService()).toMatchObject({ url: api, listener: reinstalled });
    await host.cpn(['login', '--api', api, '--email', email, '--password-file', '/run/cp/password']);
    await eventually('the daemon is in sync', isSynced);
  });
});

describe('an older version', () => {
  it('reads the state, and keeps the tunnel without a control plane', async () => {
    const previous = path(await previousProgram(), 'cpn.js');
    const reconciled = await host.exec([previous, 'reconcile'], { allowFailure: true });
    expect(reconciled.stderr).toMatch(/last known map: --api "unix:\/run\/cp\/api\.sock" is not an http/);
    const { stdout } = await host.exec([previous, 'status', '--json']);
    expect(JSON.parse(stdout).networks[0]).toMatchObject({ interface: 'cpn0', address: '10.77.0.1' });
    expect(await readService()).toMatchObject({ url: api });
    await host.cpn(['set', '--api', api]);
    expect((await run('reconcile')).exitCode).toBe(0);
  });
});

describe('a move between a loopback port and the socket', () => {
  it('keeps the host in its network', async () => {
    await controlPlane.stop();
    const process = await spawnServe(reinstalled, '127.0.0.1:8787');
    await process.waitForLine(/listening on http/);
    expect((await run('set', '--api', 'http://127.0.0.1:8787')).exitCode).toBe(0);
    await process.stop();
    controlPlane = await serve(reinstalled, api, '--trust-proxy', '127.0.0.1');
    const { exitCode, stdout } = await run('set', '--api', 'unix:///run/cp/api.sock');
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringMatching(/http:\/\/127\.0\.0\.1:8787 → unix:\/run\/cp\/api\.sock/),
    ]);
    await host.cpn(['leave', '--yes']);
  });
});

describe('a proxy in front of the socket', () => {
  it('gives the control plane the addresses of clients elsewhere', async () => {
    const site = `proxy_pass http://unix:${socket}:/; proxy_set_header X-Forwarded-For $remote_addr;`;
    const server = `server { listen 203.0.113.22:8080; location / { ${site} } }`;
    await writeFile(path(host.folder, 'nginx.conf'), `events {} http { access_log off; ${server} }`);
    const nginx = ['nginx', '-e', '/dev/null', '-c', path(host.folder, 'nginx.conf'), '-g', 'daemon off;'];
    host.spawn(nginx);
    const ask = ['curl', '-s', 'http://203.0.113.22:8080/api/networks'];
    await eventually('it answers', async () =>
      (await host.exec(ask, { allowFailure: true })).stdout.includes('message'),
    );
    const [line] = await controlPlane.waitForLine(/"status":401,"address":"203\.0\.113\.22"/);
    expect(line).toBeTruthy();
  });
});
