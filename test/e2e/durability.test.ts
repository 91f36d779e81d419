/** What a command or a reply states to be kept survives a power cut: its file, and the name of it, are on disk before. */
import { readFile } from 'node:fs/promises';
import { basename, dirname, join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
const traced = 'trace=fsync,fdatasync,open,openat,rename,renameat,renameat2,link,linkat,write,writev,pwrite64';

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

it('a change is on the disk of the database before its reply', async () => {
  await office.controlPlane.process.stop();
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
