import { rm, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fileStore } from '../../src/store/file-store.ts';
import { noNotes } from '../../src/store/notes.ts';
import type { HostStore } from '../../src/store/store.ts';
import { joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

let office: Office;
let connector: Host;
let origin: Host;
let store: HostStore;

beforeAll(async () => {
  office = await startOffice();
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  origin = await office.lab.addHost('origin', { address: '203.0.113.22/24' });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await joinHost(office.controlPlane, origin, {
    network: 'office',
    flags: ['--endpoint', '203.0.113.22:51820'],
    before: [connector],
  });
  store = fileStore({ config: origin.configDir, state: origin.stateDir, runtime: origin.runtimeDir });
}, 90_000);

afterAll(() => office?.lab.stop());

/** Notes as the daemon writes them. */
beforeEach(() => store.writeNotes('cpn0', noNotes));

const check = async () => (await origin.cpn(['status', '--check'], { allowFailure: true })).exitCode;
const connectorSeen = async () => (await status(origin)).peers[0];

describe('a route of which a part leads elsewhere', () => {
  const hijack = async (action: 'add' | 'delete', part: string) => {
    await origin.exec(['ip', 'route', action, part, 'via', '203.0.113.1']);
  };

  it('is reported, degrades the network, and is left to the program that made it', async () => {
    expect(await status(origin)).toMatchObject({ state: 'up', routes: [{ state: 'active' }] });
    await hijack('add', '192.168.50.128/25');
    const seen = await status(origin);
    expect(seen.state).toBe('degraded');
    expect(seen.routes).toEqual([
      {
        prefix: '192.168.50.0/24',
        via: 'connector',
        state: 'active',
        reason: '192.168.50.128/25 of it leads to eth0',
      },
    ]);
    expect(seen.drift).toEqual([]);
    expect(await check()).toBe(3);
    expect(await plan(origin)).toEqual({ exitCode: 0, changes: [] });
    await origin.cpn(['reconcile']);
    await hijack('delete', '192.168.50.128/25');
    expect(await status(origin)).toMatchObject({ state: 'up', routes: [{ state: 'active' }] });
    expect(await check()).toBe(0);
  });

  it('is reported of the network itself too', async () => {
    await hijack('add', '10.77.0.1/32');
    expect(await status(origin)).toMatchObject({
      state: 'degraded',
      warnings: [expect.stringMatching(/^10\.77\.0\.1\/32 of 10\.77\.0\.0\/24 leads to eth0; ip route delete /)],
    });
    await hijack('delete', '10.77.0.1/32');
    expect(await status(origin)).not.toHaveProperty('warnings');
  });
});

describe('a route into the tunnel that is not of the network', () => {
  const sh = (command: string) => origin.exec(command.split(' '));

  it('is shown with the command that removes it, and stays', async () => {
    await sh('ip route add 10.9.0.0/16 dev cpn0');
    const remedy = 'ip route del 10.9.0.0/16 dev cpn0';
    const route = { prefix: '10.9.0.0/16', table: 'main', protocol: 'boot', remedy };
    expect(await status(origin)).toMatchObject({ state: 'up', drift: [], foreign_routes: [route] });
    await origin.cpn(['reconcile']);
    expect((await status(origin)).foreign_routes).toEqual([route]);
    expect((await origin.cpn(['status'])).stdout).toContain(`does not belong to this network; ${remedy}`);
    await sh(remedy);
    expect(await status(origin)).not.toHaveProperty('foreign_routes');
  });

  it('is a fault where it is a default route: status, its check, doctor and explain name the remedy', async () => {
    await sh('ip route add default dev cpn0');
    await origin.cpn(['reconcile']);
    const seen = await status(origin);
    expect(seen).toMatchObject({ state: 'degraded', drift: [], foreign_routes: [{ prefix: '0.0.0.0/0' }] });
    const [{ remedy }] = seen.foreign_routes;
    expect(await check()).toBe(3);
    const doctor = JSON.parse((await origin.cpn(['doctor', '--json'], { allowFailure: true })).stdout);
    expect(doctor.findings).toContainEqual(expect.objectContaining({ verdict: 'problem', remedy }));
    const explained = await origin.cpn(['explain', '198.51.100.1'], { allowFailure: true });
    expect(explained.stdout).toContain(`"${remedy}" removes that route`);
    await sh(remedy);
    expect(await check()).toBe(0);
  });
});

describe('what the daemon noted', () => {
  it('makes a peer stale that does not answer, until it answers', async () => {
    expect(await connectorSeen()).toMatchObject({ state: 'connected' });
    const peer = await connectorSeen();
    await store.writeNotes('cpn0', { ...noNotes, silent: { [peer.public_key]: peer.rx_bytes } });
    expect((await connectorSeen()).state).toBe('stale');
    expect((await status(origin)).state).toBe('degraded');
    expect(await origin.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
    expect((await connectorSeen()).state).toBe('connected');
    expect((await status(origin)).state).toBe('up');
  });

  it('is shown: how it receives changes, its last error, and its warnings', async () => {
    await store.writeNotes('cpn0', {
      ...noNotes,
      sync: { mode: 'push', lastSuccess: null, error: 'unreachable', refused: null },
      troubles: ['another program keeps deleting a route'],
    });
    const seen = await status(origin);
    expect(seen.sync).toEqual({ mode: 'push', last_success: null, error: 'unreachable' });
    expect(seen.warnings).toEqual(['another program keeps deleting a route']);
    const { stdout } = await origin.cpn(['status']);
    expect(stdout).toMatch(/^sync unreachable\nwarning another program keeps deleting a route$/m);
  });
});

describe('a host that its network lists no more', () => {
  it('reports it with the remedy', async () => {
    const state = await store.read('cpn0');
    if (!state?.membership) throw new Error('the host has not joined');
    const { membership } = state;
    const peers = membership.map.peers.filter(({ publicKey }) => publicKey !== state.keyPair.publicKey);
    await store.write({ ...state, membership: { ...membership, map: { ...membership.map, peers } } });
    const seen = await status(origin);
    await store.write(state);
    expect(seen).toMatchObject({
      state: 'degraded',
      warnings: [expect.stringMatching(/no longer lists this host .* network office; "cpn leave cpn0"/)],
    });
    expect((await status(origin)).state).toBe('up');
  });
});

describe('a network whose state cannot be read', () => {
  const damaged = () => path(origin.stateDir, 'cpn1.json');

  beforeAll(() => writeFile(damaged(), '\0\0\0\0', { mode: 0o600 }));
  afterAll(() => rm(damaged()));

  it('is reported, and hides no other', async () => {
    const { stdout, stderr, exitCode } = await origin.cpn(['status', '--json'], { allowFailure: true });
    expect(JSON.parse(stdout).networks).toMatchObject([
      { interface: 'cpn0', state: 'up', network: { name: 'office' } },
      { interface: 'cpn1', state: 'degraded', network: null, address: null },
    ]);
    expect(stderr).toMatch(/^cpn: .*cpn1\.json is damaged; /);
    expect(exitCode).toBe(1);
    expect(await check()).toBe(3);
  });

  it('does not matter to the status of another', async () => {
    expect((await origin.cpn(['status', 'office', '--check'])).stderr).toBe('');
  });
});

describe('status --watch', () => {
  it('prints it repeatedly, with rates, until it is interrupted', async () => {
    const watch = await origin.spawnCpn(['status', '--watch']);
    await watch.waitForLine(/^cpn0 {2}up/);
    await watch.waitForLine(/^$/);
    await watch.waitForLine(/^cpn0 {2}up/);
    await watch.waitForLine(/connector .* B\/s\)/);
    watch.signal('SIGINT');
    const { exitCode, stderr, stdout } = await watch.exited;
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).not.toContain('\x1b');
  });

  it('redraws a terminal in place, and Ctrl-C leaves it whole', async () => {
    // The terminal's settings are noted before and after; Ctrl-C is typed when the second frame is there.
    const session = `
      stty rows 30 cols 200; stty -a >before; trap : INT
      "$PROGRAM" status --watch; echo "ended with $?"; stty -a >after`;
    const script = `
      cd; : >screen
      (for i in $(seq 300); do [ "$(grep -c 'network office' screen)" -gt 1 ] && break; sleep 0.1; done; printf '\\003') |
        SHELL=/bin/sh script -qefc "$SESSION" screen
      cmp before after`;
    const { stdout } = await origin.exec(['sh', '-c', script], {
      timeoutMs: 45_000,
      env: { SESSION: session, PROGRAM: path(import.meta.dirname, '../../dist/cpn.js') },
    });
    const frames = stdout.split('\x1b[?7l\x1b[H').slice(1);
    expect(frames.length).toBeGreaterThan(1);
    for (const each of frames) expect(each).toContain('\x1b[J\x1b[?7h');
    expect(frames.at(-1)).toContain('ended with 0');
  });

  it('ends without an error when its reader is gone', async () => {
    const program = path(import.meta.dirname, '../../dist/cpn.js');
    const piped = `set -o pipefail; '${program}' status --watch | head -n 1`;
    expect(await origin.exec(['bash', '-c', piped])).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('cannot be one document, nor a verdict', async () => {
    for (const flag of ['--json', '--check']) {
      const { exitCode, stderr } = await origin.cpn(['status', '--watch', flag], { allowFailure: true });
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('leave out --json and --check')]);
    }
  });
});
