import { chown, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { findUnstartable } from '../../../../src/host/linux/dns/file-resolver.ts';
import type { Run } from '../../../../src/host/process/run.ts';

let path: string;
/** Of a dnsmasq that starts in an hour, after each change. */
const run: Run = async (_, [verb]) =>
  verb === 'show'
    ? `Id=dnsmasq.service\nActiveState=active\nInactiveExitTimestampMonotonic=${(process.hrtime()[0] + 3_600) * 1e6}\n`
    : `   12 /usr/sbin/dnsmasq --conf-file=${path}\n`;

beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cpn-unstartable-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  path = join(folder, 'site.conf');
});

it('may be restarted if all its settings are read', async () => {
  await writeFile(path, 'server=192.0.2.1\n');
  expect(await findUnstartable(run, 'dnsmasq')).toBeNull();
});

it('must not be restarted with a conf-script', async () => {
  await writeFile(path, 'conf-script=/etc/gen.sh\n');
  expect(await findUnstartable(run, 'dnsmasq')).toBe(
    'cpn restarts dnsmasq only if it reads all its settings: it has a conf-script; correct it, then systemctl restart dnsmasq',
  );
});

it('may be restarted with a large blocklist', async () => {
  await writeFile(path, '');
  await truncate(path, (1 << 20) + 1);
  expect(await findUnstartable(run, 'dnsmasq')).toBeNull();
});

it('must not be restarted with a file of another user', async () => {
  await writeFile(path, '');
  await chown(path, 1, 1);
  expect(await findUnstartable(run, 'dnsmasq')).toContain(`: ${path} is not a file of root;`);
});
