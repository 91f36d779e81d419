import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join as path } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { builtProgram, REPOSITORY } from '../lab/built-program.ts';
import { addMissingLans, makeKey } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import { readCreated, traceFiles } from '../lab/file-trace.ts';
import type { Host } from '../lab/host.ts';
import { run } from '../lab/run.ts';
import { type Office, startOffice, status } from './office.ts';

let office: Office;
let host: Host;
/** Every file, folder and socket that the program has named, with the host's folders. */
let created: readonly string[];

beforeAll(async () => {
  office = await startOffice();
  host = await office.lab.addHost('edge', { address: '203.0.113.11/24' });
  await mkdir(traces());
  const key = await makeKey(office.controlPlane, 'office', host.name, '--type', 'connector');
  await addMissingLans(office.controlPlane, host, 'office');
  const flags = ['--type', 'connector', '--endpoint', '203.0.113.11:51820', '--hosts', '--wait', '0'];
  await traced(['join', '-', ...office.api, ...flags], key);
  const daemon = host.spawn(traceFiles(traces(), 'run', [await builtProgram(), 'run', '--interval', '1']));
  await eventually('the daemon waits at the control plane', async () => (await status(host)).sync.mode === 'push');
  await traced(['rotate-key', '--yes']);
  await daemon.stop();
  await writeFile(path(host.stateDir, 'cpn0.json'), '{ damaged');
  await traced(['up']);
  created = (await readCreated(traces())).filter(isOurs);
}, 120_000);

afterAll(() => office?.lab.stop());

const traces = () => path(host.folder, 'traces');

/** Runs a command of the program to its end, under the trace. */
async function traced(args: readonly string[], input?: string): Promise<void> {
  const argv = traceFiles(traces(), args[0] ?? '', [await builtProgram(), ...args]);
  await host.exec(argv, { timeoutMs: 60_000, ...(input !== undefined && { input }) });
}

/** Without what the kernel shows, and what the tests' own Node compiles. */
function isOurs(file: string): boolean {
  return file.startsWith(host.folder) || !/^\/(proc|sys|dev|tmp\/cpn-tests-)/.test(file);
}

/** Where a file of the host is without the lab's folders. */
function installed(file: string): string {
  const places = [
    [host.stateDir, '/var/lib/cpn'],
    [`${host.folder}/`, '/'],
    ['/var/run/', '/run/'],
  ];
  const [from = '', to = ''] = places.find(([folder = '']) => file.startsWith(folder)) ?? [];
  return to + file.slice(from.length);
}

/** What the tunnel's own program makes, and removes when its interface goes. */
const socket = '/run/wireguard/cpn0.sock';
/** The file of the only route of the office. */
const route = '192.168.50.0_24';

test('the program names files in its folders, and next to the hosts file, alone', () => {
  const kinds = new Set(created.map((file) => installed(file).replace(/\.\d+\.tmp$/, '.PID.tmp')));
  expect([...kinds].toSorted()).toEqual([
    ...['/etc/hosts', '/etc/hosts.cpn.tmp', '/etc/wireguard/cpn0.conf', '/etc/wireguard/cpn0.conf.PID.tmp'],
    ...['', '/change', '/change.pid', '/cpn0.notes.json', '/cpn0.notes.json.PID.tmp'].map((name) => `/run/cpn${name}`),
    ...['/daemon', '/daemon.pid', '/lock', '/lock.pid'].map((name) => `/run/cpn${name}`),
    ...['', '/cpn0', `/cpn0/${route}`, `/cpn0/${route}.PID.tmp`].map((name) => `/run/cpn/serving${name}`),
    socket,
    ...['', '/cpn0.json', '/cpn0.json.PID.tmp'].map((name) => `/var/lib/cpn${name}`),
    ...['.damaged', '.damaged.PID.tmp', '.previous', '.previous.PID.tmp'].map(
      (name) => `/var/lib/cpn/cpn0.json${name}`,
    ),
  ]);
});

/** Names of wg-quick files that this run does not reach; `cpn0.conf.deleted` is that of a deleted network. */
async function listConfigNames(): Promise<string[]> {
  const source = await readFile(path(REPOSITORY, 'src/store/file-store.ts'), 'utf8');
  const names = [...source.matchAll(/join\(config, `\$\{link\}([\w.]+)`\)/g)].map(([, end]) => `cpn0${end}`);
  expect(names).toContain('cpn0.conf.deleted');
  return names.map((name) => path('/etc/wireguard', name));
}

test('purging the package removes each of them, whenever the program was killed', async () => {
  const root = path(host.folder, 'purged');
  const files = [...new Set([...created.map(installed), ...(await listConfigNames())])].filter(
    (each) => each !== socket,
  );
  const folders = files.filter((each) => files.some((other) => other.startsWith(`${each}/`)));
  for (const file of files.filter((each) => !folders.includes(each))) {
    await mkdir(path(root, dirname(file)), { recursive: true });
    await writeFile(path(root, file), 'PrivateKey = secret\n');
  }
  const theirs = ['etc/wireguard/wg0.conf', 'etc/wireguard/cpn0.conf.orig', 'etc/hosts.bak'];
  for (const file of theirs) await writeFile(path(root, file), '');
  await copyFile(path(host.stateDir, 'cpn0.json'), path(root, 'var/lib/cpn/cpn0.json'));
  await writeFile(path(root, 'etc/hosts'), '127.0.0.1 localhost\n');
  const postrm = await readFile(path(REPOSITORY, 'packaging/debian/postrm'), 'utf8');
  await writeFile(path(host.folder, 'postrm'), postrm.replaceAll('@UNITS@', ''));
  await run(['unshare', '--net', 'sh', path(host.folder, 'postrm'), 'purge'], {
    env: { ...host.env, DPKG_ROOT: root },
  });
  const left = (await readdir(root, { recursive: true, withFileTypes: true })).filter((each) => !each.isDirectory());
  const names = left.map((each) => path(each.parentPath, each.name).slice(root.length + 1));
  expect(names.toSorted()).toEqual(['etc/hosts', ...theirs].toSorted());
});

test('leave removes each of them, whenever the program was killed', async () => {
  // A killed program leaves what it was about to rename.
  const leftovers = created.filter((file) => !existsSync(file) && file.startsWith(host.folder));
  const hosts = path(host.etcDir, 'hosts');
  for (const file of [...leftovers, `${hosts}.cpn.tmp`]) {
    // A lock is an empty file until it is a database.
    await writeFile(file, file.startsWith(host.runtimeDir) ? '' : 'PrivateKey = secret\n');
  }
  await host.cpn(['leave', '--yes']);
  const inside = created.map((file) => (file.startsWith('/etc/') ? path(host.folder, file) : file));
  const kept = [hosts, path(host.folder, 'run/cpn'), ...['change', 'lock'].map((name) => path(host.runtimeDir, name))];
  expect(inside.filter((file) => existsSync(file) && !kept.includes(file))).toEqual([]);
  expect(await readdir(host.configDir)).toEqual([]);
  expect(existsSync(path(host.folder, 'run/wireguard/cpn0.sock'))).toBe(false);
});
