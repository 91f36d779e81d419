import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import { makeKey } from '../lab/control-plane.ts';
import { Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import { readExecs, traceExecs } from '../lab/exec-trace.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice } from './office.ts';

vi.setConfig({ testTimeout: 120_000 });

/** As on macOS and the BSDs. Linux's own wg-quick starts `ip` itself. */
const env = { CPN_HOST_DRIVER: 'wg-quick' };

let office: Office;
let connector: Host;
let laptop: Host;

beforeAll(async () => {
  office = await startOffice();
  connector = await office.lab.addHost('connector', { address: '203.0.113.11/24' });
  laptop = await office.lab.addHost('laptop', { address: '203.0.113.12/24' });
  await office.lab.addLan(connector, '192.168.50.1/24');
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await startDaemon(connector);
}, 60_000);

afterAll(() => office?.lab.stop());

/** Runs the program on the laptop, with all that it starts written down. */
async function cpn(
  args: readonly string[],
  options: { readonly input?: string; readonly allowFailure?: boolean } = {},
) {
  runs += 1;
  const argv = traceExecs(path(office.lab.folder, `trace-${runs}`), [await builtProgram(), ...args]);
  return laptop.exec(argv, { ...options, env, timeoutMs: 60_000 });
}
let runs = 0;

/** The tools that the program itself started: what a shell script starts has a shell's variables. */
async function readTools(): Promise<string[]> {
  const traces = Array.from({ length: runs }, (_, run) => readExecs(path(office.lab.folder, `trace-${run + 1}`)));
  const execs = (await Promise.all(traces)).flat();
  const ours = execs.filter((exec) => exec.env.every((each) => /^(PATH|LC_ALL)=/.test(each)));
  return [...new Set(ours.map(({ path: program }) => program.split('/').at(-1) ?? ''))].sort();
}

const ping = async (host: Host, address: string) => (await host.ping(address, patiently)).received;
const numberOf = async () => (await laptop.exec(['cat', '/sys/class/net/cpn0/ifindex'])).stdout;
const readStatus = async () => JSON.parse((await cpn(['status', '--json'])).stdout).networks[0];

it('a host with wg and wg-quick alone joins, is reconciled by the daemon, and leaves nothing behind', async () => {
  const before = await laptop.state();
  // strace, and with it what it followed, ends a moment after the program.
  const isAsBefore = () =>
    vi.waitFor(async () => expect(await laptop.state()).toBe(before), { timeout: 10_000, interval: 250 });
  const key = await makeKey(office.controlPlane, 'office', 'laptop');
  const joining = ['join', '-', ...office.api, '--name', 'laptop'];

  // Refused before the first request: the key is still valid afterwards, and nothing was made.
  const refusals: readonly (readonly [string, readonly string[]])[] = [
    ['a connector', ['--type', 'connector']],
    ['a full tunnel', ['--allow-route', '0.0.0.0/0']],
  ];
  for (const [what, flags] of refusals) {
    const refused = await cpn([...joining, ...flags], { input: key, allowFailure: true });
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain(
      `${what} is not supported by the host driver wg-quick; join with a Linux host for that`,
    );
  }
  await isAsBefore();

  const flags = ['--type', 'admin_device', '--mtu', '1380', '--hosts', '--json'];
  const joined = JSON.parse((await cpn([...joining, ...flags], { input: key })).stdout);
  expect(joined).toMatchObject({ interface: 'cpn0', handshake: true });
  expect(await ping(laptop, '10.77.0.1')).toBe(1);
  expect(await ping(laptop, 'connector.office.cpn.internal')).toBe(1);
  expect(await ping(laptop, '192.168.50.1')).toBe(1);
  expect(await readStatus()).toMatchObject({
    ...{ state: 'up', mtu: 1380, drift: [] },
    peers: [{ name: 'connector', state: 'connected' }],
    routes: [{ prefix: '192.168.50.0/24', via: 'connector', state: 'active' }],
  });
  expect((await cpn(['plan'])).exitCode).toBe(0);
  const wider = await cpn(['set', '--allow-route', '0.0.0.0/0'], { allowFailure: true });
  expect(wider.stderr).toContain('a full tunnel is not supported by the host driver wg-quick');

  runs += 1;
  const argv = traceExecs(path(office.lab.folder, `trace-${runs}`), [
    await builtProgram(),
    'run',
    '--interval',
    '3600',
  ]);
  const daemon = new Daemon(laptop.spawn(argv, { env }));
  await eventually('the daemon waits at the control plane', async () => (await readStatus()).sync.mode === 'push');

  // A new peer costs no other peer its session.
  const number = await numberOf();
  const { rx_bytes: received } = (await readStatus()).peers[0];
  const newcomer = await office.lab.addHost('newcomer', { address: '203.0.113.13/24' });
  let mark = daemon.mark();
  const { address } = await join(office, newcomer, '--endpoint', '203.0.113.13:51820');
  await daemon.awaitLog('the change', (line) => line.msg === 'change applied', mark);
  expect(await ping(laptop, address)).toBe(1);
  expect(await numberOf()).toBe(number);
  const { peers } = await readStatus();
  const { rx_bytes: since } = peers.find((peer: { name: string }) => peer.name === 'connector');
  expect(since).toBeGreaterThanOrEqual(received);

  // Drift is repaired without waiting for the interval.
  for (const drift of ['wg set cpn0 listen-port 51999 fwmark 7', 'ip address del 10.77.0.2/24 dev cpn0']) {
    mark = daemon.mark();
    await laptop.exec(['sh', '-c', drift]);
    await daemon.awaitLog(drift, (line) => line.msg === 'drift repaired', mark);
    expect(await ping(laptop, '10.77.0.1'), drift).toBe(1);
  }
  expect((await readStatus()).drift).toEqual([]);

  const { findings } = JSON.parse((await cpn(['doctor', '--json', '--all'], { allowFailure: true })).stdout);
  const findingsOf = (subject: string) => findings.filter((each: { check: string }) => each.check === subject);
  expect(findingsOf('tools')).toMatchObject([{ verdict: 'ok' }, { verdict: 'ok' }]);
  for (const subject of ['kernel', 'managers', 'ports', 'forwarding', 'mtu']) {
    const [first, ...others] = findingsOf(subject);
    expect(first).toMatchObject({ verdict: 'note', found: 'is not examined on this kind of host' });
    expect(others).toHaveLength(subject === 'forwarding' ? 1 : 0);
  }
  expect(findingsOf('forwarding')[1].found).toContain('cpn has no packet rules on this kind of host');
  expect(findingsOf('network')[0]).toMatchObject({ verdict: 'ok', found: 'matches its intended state' });
  const way = (await cpn(['explain', '192.168.50.1'], { allowFailure: true })).stdout;
  expect(way).toMatch(/leaves by cpn0 from 10\.77\.0\.2/);

  await daemon.stop();
  await cpn(['down']);
  await cpn(['up']);
  expect(await ping(laptop, '10.77.0.1')).toBe(1);
  await cpn(['leave', '--yes', '--verify']);
  await isAsBefore();
  // On Linux a shell starts them.
  expect(await readTools()).toEqual(['sh', 'wg', 'wg-quick']);
});
