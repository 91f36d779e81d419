import { appendFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/** Longer than the tests run: an event must have triggered the pass. */
const never = ['--interval', '3600'];

let office: Office;
let hosts = 1;

beforeAll(async () => {
  office = await startOffice();
}, 60_000);

afterAll(() => office?.lab.stop());

/** The host that most tests use, one after the other. */
let common: Member | undefined;
let last: Daemon | undefined;

afterEach(() => last?.stop());

interface Member {
  readonly host: Host;
  readonly address: string;
}

/** A host that joined the office. */
async function addMember(): Promise<Member> {
  hosts += 1;
  const host = await office.lab.addHost(`host-${hosts}`, { address: `203.0.113.${hosts}/24` });
  const { address } = await join(office, host, '--endpoint', `203.0.113.${hosts}:51820`);
  return { host, address };
}

/** The common host, or another one, with a daemon on it that has made its first pass. */
async function startKept(flags: readonly string[], on?: Member): Promise<Member & { daemon: Daemon }> {
  common ??= await addMember();
  const member = on ?? common;
  // Of the daemon before, which waited at the control plane too.
  await rm(path(member.host.runtimeDir, 'cpn0.notes.json'), { force: true });
  const daemon = await startDaemon(member.host, ...flags);
  last = daemon;
  await awaitSync(member.host);
  return { ...member, daemon };
}

/** Until the daemon waits at the control plane, which it does once its first pass is over. */
async function awaitSync(host: Host): Promise<void> {
  await eventually('the daemon waits at the control plane', async () => (await status(host)).sync.mode === 'push');
}

/** Up, and nothing to repair; degraded all the same, as no connector serves the office's route. */
const right = { state: 'degraded', drift: [], routes: [{ state: 'missing' }] };

const countLogged = (daemon: Daemon, message: string) => daemon.log.filter((line) => line.msg === message).length;

describe('cpn run passes', () => {
  it('it does when the control plane reports that the network changed', async () => {
    const { host, daemon } = await startKept(never);
    const other = await office.lab.addHost('newcomer', { address: '203.0.113.101/24' });
    const mark = daemon.mark();
    const { address } = await join(office, other, '--endpoint', '203.0.113.101:51820');
    await daemon.awaitLog('the change', (line) => line.msg === 'change applied', mark);
    expect(await host.ping(address, patiently)).toMatchObject({ received: 1 });
    await daemon.stop();
  });

  it('it does when something happens to its interface', async () => {
    const { host, daemon } = await startKept(never);
    const mark = daemon.mark();
    await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
    await daemon.awaitLog('the repair', (line) => line.msg === 'drift repaired', mark);
    expect((await status(host)).mtu).toBe(1420);
    await daemon.stop();
  });

  it('it does when its time has come, and nothing at all happened', async () => {
    const { host, daemon } = await startKept(['--interval', '1']);
    const mark = daemon.mark();
    await appendFile(path(host.configDir, 'cpn0.conf'), '# edited\n');
    await daemon.awaitLog('the repair', (line) => line.msg === 'drift repaired', mark);
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    await daemon.stop();
  });

  it('it does when it is sent SIGHUP, and reads all state again', async () => {
    const { host, daemon } = await startKept(never);
    await writeFile(path(host.configDir, 'cpn0.conf'), '');
    const mark = daemon.mark();
    daemon.process.signal('SIGHUP');
    await daemon.awaitLog('the repair', (line) => line.msg === 'drift repaired', mark);
    expect(daemon.since(mark)[0]).toMatchObject({ msg: 'reloading' });
    await awaitSync(host);
    await daemon.stop();
  });

  it('over a network that is joined while it runs, and no longer over one that is left', async () => {
    hosts += 1;
    const host = await office.lab.addHost(`host-${hosts}`, { address: `203.0.113.${hosts}/24` });
    const daemon = await startDaemon(host, ...never);
    await daemon.awaitLog('the start', (line) => line.msg === 'started');
    await join(office, host, '--endpoint', `203.0.113.${hosts}:51820`);
    await daemon.awaitLog('the network', (line) => line.msg === 'reconciling the network');
    await awaitSync(host);
    await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
    await daemon.awaitLog('the repair', (line) => line.msg === 'drift repaired');
    await host.cpn(['leave', '--yes']);
    await daemon.awaitLog('the end of it', (line) => line.msg === 'stopped reconciling the network');
    expect((await host.exec(['ip', 'link', 'show', 'cpn0'], { allowFailure: true })).exitCode).not.toBe(0);
    await daemon.stop();
  });

  it('leaves a network down that was taken down, and brings it up again with the rest', async () => {
    const { host, daemon } = await startKept(never);
    await host.cpn(['down']);
    daemon.process.signal('SIGHUP');
    await awaitSync(host);
    expect((await status(host)).state).toBe('down');
    await host.cpn(['up']);
    expect(await status(host)).toMatchObject(right);
    expect(countLogged(daemon, 'drift repaired')).toBe(0);
    await daemon.stop();
  });
});

describe('cpn run ends', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('on %s with nothing lost, and leaves the tunnel up', async (signal) => {
    const { host, daemon } = await startKept(never);
    const before = await networkState(host);
    daemon.process.signal(signal);
    expect(await daemon.process.endWithin(30_000)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(daemon.log.at(-1)).toMatchObject({ msg: 'stopped; the tunnels stay up' });
    expect(await status(host)).toMatchObject(right);
    expect(await networkState(host)).toBe(before);
  });

  it('with all that it started when it is killed', async () => {
    const { host, daemon } = await startKept(['--interval', '1']);
    const started = daemon.log.find((line) => line.msg === 'started')?.pid;
    const running = async () => {
      const { stdout } = await host.exec(['ps', '-e', '-o', 'pid=,ppid=,stat=,args=']);
      const rows = stdout.split('\n').map((row) => row.trim().split(/\s+/));
      return rows.filter(([, , stat = 'Z']) => !stat.startsWith('Z'));
    };
    const [monitor, shell] = [/ip -oneline monitor/, /sh -c .* read /];
    const children = await eventually('a monitor runs, and a shell stands by', async () => {
      const rows = (await running()).filter(([, parent]) => parent === String(started));
      const has = (what: RegExp) => rows.some((row) => what.test(row.join(' ')));
      return has(monitor) && has(shell) && rows;
    });
    daemon.process.signal('SIGKILL');
    await daemon.process.exited;
    const pids = new Set(children.map(([pid]) => pid));
    const killed = `the daemon (pid ${started}) was killed`;
    expect((await status(host)).warnings).toContainEqual(expect.stringContaining(killed));
    expect((await host.cpn(['status'])).stdout).toContain(`warning ${killed}`);
    await eventually('all of them end', async () => {
      const left = (await running()).filter((row) => pids.has(row[0]) || monitor.test(row.join(' ')));
      return left.length === 0;
    });
  });

  it('although a tool that it started hangs', async () => {
    const { host, daemon } = await startKept(never, await addMember());
    const [real, hanging, hangs] = ['wg-real', 'wg-hanging', 'hangs'].map((name) => path(host.folder, name));
    const script = `#!/bin/sh\n[ "$1" = show ] && exec ${real} "$@"\n: >${hangs}\nexec sleep 600\n`;
    await writeFile(`${hanging}`, script, { mode: 0o755 });
    await host.exec(['sh', '-c', `cp "$(command -v wg)" ${real}; mount --bind ${hanging} "$(command -v wg)"`]);
    await host.exec(['ip', 'link', 'del', 'cpn0']);
    await eventually('wg hangs', async () => (await readFile(`${hangs}`, 'utf8')) === '');
    daemon.process.signal('SIGTERM');
    expect(await daemon.process.endWithin(30_000)).toMatchObject({ exitCode: 1, signal: null });
  });

  it('at once when another one runs, and names its pid', async () => {
    const { host, daemon } = await startKept(never);
    const { exitCode, stderr } = await host.cpn(['run'], { allowFailure: true });
    const pid = daemon.log.find((line) => line.msg === 'started')?.pid;
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`(pid ${pid})`);
    await daemon.stop();
    const next = await startDaemon(host, ...never);
    await next.awaitLog('the start', (line) => line.msg === 'started');
    await next.stop();
  });
});

describe('several networks on one host', () => {
  it('are kept apart: one whose control plane, interface and state fail does not stop another', async () => {
    const { host, daemon } = await startKept(['--interval', '1'], await addMember());
    await office.controlPlane.cpn(['network', 'create', '--name', 'lab', '--cidr', '10.88.0.0/24']);
    const second = { ...office, controlPlane: office.controlPlane };
    await joinSecond(second, host);
    await host.exec(['ip', 'link', 'del', 'cpn1']);
    await daemon.awaitLog('the second', (line) => line.msg === 'drift repaired' && line.interface === 'cpn1');

    // Another program's interface now has its name.
    await host.exec(['sh', '-c', 'ip link del cpn1; ip link add cpn1 type bridge']);
    const mark = daemon.mark();
    await daemon.awaitLog('the failure', (line) => line.level === 40 && line.interface === 'cpn1');
    await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
    await daemon.awaitLog('the repair', (line) => line.msg === 'drift repaired' && line.interface === 'cpn0', mark);

    await writeFile(path(host.stateDir, 'cpn1.json'), '{"version": 999}');
    await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1301']);
    await eventually('the second repair', async () => (await networkOf(host, 'cpn0')).mtu === 1420);
    expect(await networkOf(host, 'cpn0')).toMatchObject(right);
    await daemon.stop();
  });
});

/** Everything but processes and files. */
async function networkState(host: Host): Promise<string | undefined> {
  return (await host.state()).split('# processes')[0];
}

async function joinSecond(at: Office, host: Host): Promise<void> {
  const key = (await at.controlPlane.cpn(['key', 'create', 'lab', '--name', host.name])).stdout.trim();
  await host.cpn(['join', '-', ...at.api, '--wait', '0'], { input: key });
}

async function networkOf(host: Host, link: string) {
  const { stdout } = await host.cpn(['status', '--json'], { allowFailure: true });
  return JSON.parse(stdout).networks.find((network: { interface: string }) => network.interface === link);
}
