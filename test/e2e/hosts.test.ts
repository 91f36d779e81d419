import { appendFile, chmod, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

let office: Office;
let edge: Host;

const nothing = { exitCode: 0, changes: [] };

beforeAll(async () => {
  office = await startOffice();
  edge = await newHost('edge-1');
  await join(office, edge, '--type', 'connector', '--endpoint', `${edge.address}:51820`);
});

afterAll(() => office?.lab.stop());

function newHost(name: string): Promise<Host> {
  return office.lab.addHost(name, { address: `203.0.113.${office.lab.hosts.size + 10}/24` });
}

const hostsFile = (host: Host) => path(host.etcDir, 'hosts');
const readHosts = (host: Host) => readFile(hostsFile(host), 'utf8');

/** The address that the host's own resolver gives for a name; empty where there is none. */
async function lookUp(host: Host, name: string): Promise<string> {
  const { stdout } = await host.exec(['getent', 'ahostsv4', name], { allowFailure: true });
  return stdout.split(/\s/)[0] ?? '';
}

describe('a host that joins with --hosts', () => {
  it("resolves its peers' names, and removes them without a trace", async () => {
    const host = await newHost('Laptop.Zoe');
    const [before, file] = [await host.state(), await readHosts(host)];
    const { address } = await joinHost(office.controlPlane, host, {
      network: 'office',
      flags: ['--hosts'],
      before: [edge],
    });
    expect(await lookUp(host, 'edge-1.office.cpn.internal')).toBe('10.77.0.1');
    expect(await lookUp(host, 'laptop-zoe.office.cpn.internal')).toBe(address);
    expect(await host.ping('edge-1.office.cpn.internal', patiently)).toMatchObject({ received: 1 });
    expect((await readHosts(host)).startsWith(file)).toBe(true);
    expect(await plan(host)).toEqual(nothing);

    await host.cpn(['down']);
    expect(await readHosts(host)).toBe(file);
    await host.cpn(['up']);
    expect(await lookUp(host, 'edge-1.office.cpn.internal')).toBe('10.77.0.1');

    await host.cpn(['leave', '--yes', '--verify']);
    expect(await host.state()).toBe(before);
  });

  it("has new peers' names from its daemon, whatever they are, and repairs edits in its next pass", async () => {
    const host = await newHost('listener');
    const joined = await join(office, host, '--hosts', '--endpoint', `${host.address}:51820`);
    const own = '198.51.100.7 printer printer.example.net\n';
    await appendFile(hostsFile(host), own);
    await using daemon = await startDaemon(host, '--interval', '3600');
    await eventually('the daemon waits for updates', async () => (await status(host)).sync.mode === 'push');
    await join(office, await newHost('edge-2'), '--type', 'connector');
    await eventually('the new peer has a name', async () => (await lookUp(host, 'edge-2.office.cpn.internal')) !== '');

    const owner = new Owner(office.controlPlane);
    const names = ['EDGE-1', 'x\n203.0.113.66 bank.example', 'Zoë’s laptop 💻', 'db.example.net', '../../etc'];
    const ids: number[] = [];
    for (const [index, name] of names.entries()) {
      ids.push(await owner.addStranger(joined.network.id, name, `203.0.113.${200 + index}:51820`));
    }
    const wanted = ['edge-1-2', 'x-203-0-113-66-bank-example', 'zoes-laptop-computer', 'db-example-net', 'etc'];
    const peers = await owner.listPeers(joined.network.id);
    for (const [index, label] of wanted.entries()) {
      const { address } = peers.find(({ id }) => id === ids[index]) ?? {};
      await eventually(label, async () => (await lookUp(host, `${label}.office.cpn.internal`)) === address);
    }
    expect(await lookUp(host, 'edge-1.office.cpn.internal')).toBe('10.77.0.1');
    expect(await lookUp(host, 'bank.example')).toBe('');
    for (const id of ids) await owner.removePeer(joined.network.id, id);
    await eventually('they are gone', async () => (await lookUp(host, 'etc.office.cpn.internal')) === '');
    // A change that is not confirmed when the daemon ends is rolled back.
    await eventually('their leaving is saved', async () => (await status(host)).peers.length === 2);
    await daemon.stop();

    const right = await readHosts(host);
    expect(right).toContain(own);
    await writeFile(hostsFile(host), right.replace('10.77.0.1 ', '10.0.0.66 '));
    expect(await plan(host)).toMatchObject({
      exitCode: 3,
      changes: [{ action: 'update', kind: 'hosts', target: 'cpn0', before: ['10.0.0.66 edge-1.office.cpn.internal'] }],
    });
    await host.cpn(['reconcile']);
    expect(await readHosts(host)).toBe(right);
    expect(await plan(host)).toEqual(nothing);
  });

  it('writes a hosts file in place that is mounted by itself, as in a container', async () => {
    const host = await newHost('contained');
    await writeFile(path(host.homeDir, 'hosts'), '127.0.0.1 localhost');
    await host.exec(['mount', '--bind', path(host.homeDir, 'hosts'), '/etc/hosts']);
    await join(office, host, '--hosts');
    expect(await lookUp(host, 'edge-1.office.cpn.internal')).toBe('10.77.0.1');
    expect(await plan(host)).toEqual(nothing);
    await host.cpn(['leave', '--yes', '--verify']);
    expect((await host.exec(['cat', '/etc/hosts'])).stdout).toBe('127.0.0.1 localhost');
  });

  it('has a tunnel also where the hosts file is not writable, and logs why', async () => {
    const host = await newHost('nix');
    await rename(hostsFile(host), path(host.homeDir, 'store'));
    await chmod(path(host.homeDir, 'store'), 0o444);
    await symlink(path(host.homeDir, 'store'), hostsFile(host));
    const file = await readHosts(host);
    const error = /the hosts file lacks the peers of cpn0: \/etc\/hosts, which is .*, has no write permission/;
    await join(office, host, '--hosts');
    expect(await status(host)).toMatchObject({ state: 'up', drift: [], warnings: [expect.stringMatching(error)] });
    await using daemon = await startDaemon(host, '--interval', '1');
    const logged = await daemon.awaitLog('the error', ({ msg }) => msg === 'the hosts file cannot be changed');
    expect(logged.problem).toMatch(/^\/etc\/hosts, which is .*, has no write permission/);

    await rm(hostsFile(host));
    await writeFile(hostsFile(host), file);
    await daemon.awaitLog('the end of it', ({ msg }) => msg === 'over: the hosts file cannot be changed');
    expect(await lookUp(host, 'edge-1.office.cpn.internal')).toBe('10.77.0.1');
    expect(daemon.log.filter(({ msg }) => msg === logged.msg)).toHaveLength(1);
    await daemon.stop();
    expect((await status(host)).warnings).toBeUndefined();
  });

  it('leaves a block alone whose end is gone, and everything below it', async () => {
    const host = await newHost('damaged');
    await join(office, host, '--hosts');
    const damaged = `${(await readHosts(host)).replace('# END cpn cpn0\n', '')}198.51.100.7 printer\n`;
    await writeFile(hostsFile(host), damaged);
    expect((await host.cpn(['reconcile'])).exitCode).toBe(0);
    expect((await status(host)).warnings).toMatchObject([expect.stringContaining('remove the rest of that block')]);
    const { stderr } = await host.cpn(['leave', '--yes']);
    expect(stderr).toContain('the names of the peers of cpn0 stay in the hosts file');
    expect(await readHosts(host)).toBe(damaged);
  });

  it('in two networks of one name keeps both apart', async () => {
    const host = await newHost('in-two');
    const file = await readHosts(host);
    await office.controlPlane.cpn(['network', 'create', '--name', 'Office', '--cidr', '10.78.0.0/24']);
    await join(office, host, '--hosts');
    const flags = ['--hosts', '--wait', '0'];
    const second = await joinHost(office.controlPlane, host, { network: 'Office', flags });
    expect(await lookUp(host, 'edge-1.office.cpn.internal')).toBe('10.77.0.1');
    const name = `in-two.office-${second.network.id}.cpn.internal`;
    expect(await lookUp(host, name)).toBe(second.address);
    await host.cpn(['leave', '--yes', 'office']);
    expect(await readHosts(host)).toBe(`${file}${await blockOf(host, 'cpn1')}`);
    await host.cpn(['leave', '--yes']);
    expect(await readHosts(host)).toBe(file);
  });
});

async function blockOf(host: Host, link: string): Promise<string> {
  return new RegExp(`^# BEGIN cpn ${link} .*^# END cpn ${link}\n`, 'ms').exec(await readHosts(host))?.[0] ?? '';
}
