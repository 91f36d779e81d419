/** What a command or a reply states to be kept survives a power cut: its file, and the name of it, are on disk before. */
import { readFile, rm } from 'node:fs/promises';
import { basename, dirname, join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeKey } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, startOffice } from './office.ts';

let office: Office;
let admin: Host;

beforeAll(async () => {
  office = await startOffice();
  admin = office.controlPlane.host;
  const edge = await office.lab.addHost('edge', { address: '203.0.113.12/24' });
  await join(office, edge, '--type', 'connector', '--endpoint', '203.0.113.12:51820');
});

afterAll(() => office?.lab.stop());

const program = path(import.meta.dirname, '../../dist/cpn.js');
const traced = 'trace=fsync,fdatasync,open,openat,rename,renameat,renameat2,link,linkat,write,writev,pwrite64,execve';

/** Runs `cpn` with its system calls in a file, each with the paths of its descriptors. */
const strace = () => [
  'strace',
  '-I1',
  '-f',
  '-y',
  '-s',
  '64',
  '-e',
  traced,
  '-o',
  path(admin.folder, 'trace'),
  program,
];
const calls = async () => (await readFile(path(admin.folder, 'trace'), 'utf8')).split('\n');

/**
 * Whether the last write to a file is followed by its sync, and the call that gave it its name by a sync of its folder.
 *
 * @param draft what the name begins with while the file is written
 */
function isDurable(
  calls: readonly string[],
  file: string,
  draft = basename(file),
): { content: boolean; name: boolean } {
  const literally = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const last = (pattern: string) => calls.findLastIndex((call) => new RegExp(pattern).test(call));
  const descriptor = `\\d+<[^>]*/${literally(draft)}[^/>]*>`;
  const written = last(`write(?:64)?\\(${descriptor}`);
  const named = last(
    `(?:rename\\w*|link(?:at)?)\\(.*/${literally(basename(file))}"|open(?:at)?\\(.*/${literally(basename(file))}".*O_CREAT`,
  );
  expect(written).toBeGreaterThan(-1);
  expect(named).toBeGreaterThan(-1);
  return {
    content: last(`f(?:data)?sync\\(${descriptor}`) > written,
    name: last(`fsync\\(\\d+<${literally(dirname(file))}>`) > named,
  };
}

const password = () => path(admin.homeDir, 'password');
const data = () => path(admin.folder, 'data');
const inHome = (name: string) => path(admin.homeDir, name);

describe('a file with a secret is on disk, with its name, when the command ends', () => {
  it.each<[string, () => string, string | undefined, (file: string) => string[]]>([
    [
      'cpn export --new-peer',
      () => inHome('phone.conf'),
      undefined,
      (file) => ['export', 'office', '--new-peer', 'phone', '--output', file],
    ],
    [
      'cpn login',
      () => path(admin.xdgConfigDir, 'cpn', 'login.json'),
      undefined,
      () => [
        'login',
        '--api',
        office.controlPlane.url,
        '--insecure-http',
        '--email',
        'owner@example.net',
        '--password-file',
        password(),
      ],
    ],
    [
      'cpn control-plane backup',
      () => inHome('backup.db'),
      '.cpn-backup-',
      (file) => ['control-plane', 'backup', file, '--data', data()],
    ],
  ])('%s', async (_, file, draft, command) => {
    const { exitCode, stderr } = await admin.exec([...strace(), ...command(file())], { allowFailure: true });
    expect([exitCode, stderr]).toEqual([0, expect.anything()]);
    expect(isDurable(await calls(), file(), draft)).toEqual({ content: true, name: true });
  });
});

describe('a key of a host is on disk, with its name', () => {
  const joining = async (host: Host, network: string) => ({
    args: ['join', '-', ...office.api, '--name', host.name, '--wait', '0', '--json'],
    input: await makeKey(office.controlPlane, network, `${host.name}-${network}`),
  });
  const state = (host: Host) => path(host.stateDir, 'cpn0.json');
  const config = (host: Host) => path(host.configDir, 'cpn0.conf');
  const durable = { content: true, name: true };

  /** Runs a command of a host, and returns its system calls before it sends `request`, and before it prints its result. */
  async function trace(
    host: Host,
    args: readonly string[],
    { request, ...options }: { request?: string; input?: string; env?: Record<string, string> } = {},
  ) {
    const file = path(host.folder, 'trace');
    await rm(file, { force: true });
    // It does not wait for a WireGuard in user space, which the command leaves behind.
    const detached = ['strace', '-D', '-f', '-y', '-s', '64', '-e', traced, '-o', file, program];
    await host.exec([...detached, ...args], { ...options, timeoutMs: 60_000 });
    return eventually('the trace has the result', async () => {
      const all = (await readFile(file, 'utf8')).split('\n');
      const sent = all.findIndex((call) => call.includes(`"${request} /api/`));
      const printed = all.findLastIndex((call) => /write\(1</.test(call));
      expect([printed > 0, sent > 0]).toEqual([true, request !== undefined]);
      return { beforeSent: all.slice(0, sent), beforePrinted: all.slice(0, printed) };
    });
  }

  it('before a join or a change of keys sends its public part, and before the command prints its result', async () => {
    const host = await office.lab.addHost('host', { address: '203.0.113.21/24' });
    const { args, input } = await joining(host, 'office');
    const joined = await trace(host, args, { input, request: 'POST' });
    const rotated = await trace(host, ['rotate-key', '--json'], { request: 'PATCH' });
    for (const { beforeSent, beforePrinted } of [joined, rotated]) {
      expect(isDurable(beforeSent, state(host))).toEqual(durable);
      for (const file of [state(host), config(host)]) expect(isDurable(beforePrinted, file), file).toEqual(durable);
    }
    await host.cpn(['down', '--json']);
    await rm(config(host));
    const { beforePrinted } = await trace(host, ['up', '--json']);
    for (const file of [state(host), config(host)]) expect(isDurable(beforePrinted, file), file).toEqual(durable);
  });

  it("before wg-quick brings up a tunnel from a file, where that is the host's driver", async () => {
    const host = await office.lab.addHost('laptop', { address: '203.0.113.22/24' });
    const { args, input } = await joining(host, 'office');
    const { beforePrinted } = await trace(host, args, { input, env: { CPN_HOST_DRIVER: 'wg-quick' } });
    const file = path(host.runtimeDir, 'tunnels', 'cpn0.conf');
    const up = beforePrinted.findIndex((call) => /execve\(.*wg-quick/.test(call));
    expect(up).toBeGreaterThan(0);
    expect(isDurable(beforePrinted.slice(0, up), file)).toEqual(durable);
  });

  it('before a leave prints that what removes its peer later is kept', async () => {
    const host = await office.lab.addHost('away', { address: '203.0.113.23/24' });
    const { args, input } = await joining(host, 'office');
    await host.cpn(args, { input });
    await office.controlPlane.process.stop();
    const { beforePrinted } = await trace(host, ['leave', '--yes', '--json']);
    expect(isDurable(beforePrinted, path(host.stateDir, 'former-memberships'))).toEqual(durable);
  });
});

it('a change is on the disk of the database before its reply', async () => {
  const listen = ['--listen', '203.0.113.1:8787', '--data', data()];
  const serving = admin.spawn([...strace(), 'control-plane', 'serve', ...listen]);
  await serving.waitForLine(/listening on/);
  await office.controlPlane.cpn(['network', 'create', '--name', 'other', '--cidr', '10.78.0.0/24']);
  serving.signal('SIGTERM');
  await serving.exited;
  const all = await calls();
  const reply = all.findIndex((call) => /write[v\d]*\(.*HTTP\/1\.1 201/.test(call));
  const before = all.slice(0, reply);
  const last = (pattern: RegExp) => before.findLastIndex((call) => pattern.test(call));
  const written = last(/write64\(\d+<[^>]*control-plane\.db-wal>/);
  expect([reply > -1, written > -1]).toEqual([true, true]);
  expect(last(/f(?:data)?sync\(\d+<[^>]*control-plane\.db-wal>/)).toBeGreaterThan(written);
});
