/** A control plane that moves to another address, and the hosts that follow it. */
import { cp, mkdir, readFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, joinHost, makeKey, serveControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

let office: Office;
let edge: Host;
let other: Host;
let daemon: Daemon;
let moved: ControlPlane;

beforeAll(async () => {
  office = await startOffice();
  edge = await newHost('edge');
  const { address } = await join(office, edge, '--endpoint', `${edge.address}:51820`);
  other = await newHost('other');
  await joinHost(office.controlPlane, other, { network: 'office', before: [edge], flags: ['--wait', '0'] });
  expect(await other.ping(address, patiently)).toMatchObject({ received: 1 });
  daemon = await startDaemon(edge);
  await daemon.awaitLog('it reconciles the network', ({ msg }) => msg === 'reconciling the network');
}, 60_000);

afterAll(() => office?.lab.stop());

function newHost(name: string): Promise<Host> {
  return office.lab.addHost(name, { address: `203.0.113.${office.lab.hosts.size + 10}/24` });
}

/** Serves a copy of the control plane on another host, as an admin brings it there. */
async function serveCopy(): Promise<ControlPlane> {
  const { host: former } = office.controlPlane;
  const copy = path(former.homeDir, 'backup.db');
  await former.cpn(['control-plane', 'backup', copy, '--data', path(former.folder, 'data')]);
  const host = await newHost('moved');
  const data = path(host.folder, 'data');
  await mkdir(data, { mode: 0o700 });
  await cp(copy, path(data, 'control-plane.db'));
  const password = path(former.homeDir, 'password');
  const process = await serveControlPlane(host, host.address, password, []);
  const url = `http://${host.address}:8787`;
  const login = ['login', '--api', url, '--insecure-http', '--email', 'owner@example.net', '--password-file', password];
  await host.cpn(login);
  return { host, url, process, cpn: (args) => host.cpn(args) };
}

const urlOf = async (host: Host): Promise<string> =>
  JSON.parse(await readFile(path(host.stateDir, 'cpn0.json'), 'utf8')).service.url;

const set = (host: Host, ...args: string[]) => host.cpn(['set', ...args], { allowFailure: true });

const namesOf = async (host: Host): Promise<string[]> =>
  (await status(host)).peers.map(({ name }: { name: string }) => name).sort();

describe('a control plane that moves', () => {
  it('keeps its hosts when they are given an address without a control plane', async () => {
    const plain = await set(edge, '--api', 'http://203.0.113.99:8787');
    expect([plain.exitCode, plain.stderr]).toEqual([2, expect.stringContaining('plain http')]);
    const nothing = await set(edge, '--api', `http://${other.address}:8787`, '--insecure-http');
    expect([nothing.exitCode, nothing.stderr]).toEqual([5, expect.stringContaining('unreachable')]);
    expect(await urlOf(edge)).toBe(office.controlPlane.url);
  });

  it('is followed by a host with one command, and by its daemon at once, though the old one still runs', async () => {
    moved = await serveCopy();
    const { stdout } = await edge.cpn(['set', '--api', moved.url, '--insecure-http', '--json']);
    expect(JSON.parse(stdout).networks).toMatchObject([
      {
        interface: 'cpn0',
        changes: [{ action: 'update', kind: 'api', before: office.controlPlane.url, after: moved.url }],
      },
    ]);
    expect(await urlOf(edge)).toBe(moved.url);
    // Otherwise the daemon would retry the old one for most of a minute.
    await eventually(
      'the daemon waits at the new address',
      async () => {
        const { stdout: log } = await moved.host.exec(['ss', '-Htn', 'state', 'established', 'sport', '= :8787']);
        return log.includes(`${edge.address}:`);
      },
      { timeoutMs: 60_000 },
    );
    const late = await newHost('late');
    await joinHost(moved, late, { network: 'office', flags: ['--wait', '0'] });
    await eventually('edge has the peer that joined there', async () => (await namesOf(edge)).includes('late'));
    expect(daemon.log.filter(({ level }) => level >= 40)).toEqual([]);
  });

  it('is named by a join at its new address, which takes no use of the key and makes no second peer', async () => {
    const input = await makeKey(moved, 'office', 'again');
    const argv = ['join', '-', '--api', moved.url, '--insecure-http', '--wait', '0'];
    const { exitCode, stderr } = await other.cpn(argv, { input, allowFailure: true });
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringContaining(`"cpn set cpn0 --api ${moved.url}" keeps the key pair`),
    ]);
    expect((await moved.cpn(['key', 'list', 'office'])).stdout).toMatch(/again .* 0 of 1/);
    expect(await namesOf(edge)).toEqual(['late', 'other']);
    expect(await urlOf(other)).toBe(office.controlPlane.url);
  });

  it('is followed after the old one is gone, and the tunnels never went down', async () => {
    await office.controlPlane.process.stop();
    const { exitCode, stdout } = await set(other, '--api', moved.url, '--insecure-http');
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/~ api cpn0 .*8787 → .*8787/)]);
    expect(await namesOf(other)).toEqual(['edge', 'late']);
    expect(await other.ping((await status(edge)).address, patiently)).toMatchObject({ received: 1 });
  });
});
