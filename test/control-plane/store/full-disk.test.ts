import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { translate } from '../../../src/control-plane/store/postgres/errors.ts';
import { labPath, labSupport } from '../../lab/support.ts';

/** What full-disk.ts saw. */
async function runOnFullDisk() {
  const support = labSupport();
  if (!support.possible) throw new Error(`no disk of our own on this machine: ${support.needs}`);
  const user = support.how === 'user namespace' ? ['--user', '--map-root-user'] : [];
  const script = join(import.meta.dirname, 'full-disk.ts');
  const argv = [...user, '--mount', '--', process.execPath, script];
  const { stdout } = await promisify(execFile)('unshare', argv, { env: { PATH: labPath() }, timeout: 50_000 });
  return JSON.parse(stdout);
}

test('on a full disk changes are a 503 with the reason, it is not ready, and what is there can be read', async () => {
  const seen = await runOnFullDisk();
  const message = "the disk of the control plane's database is full; try again in 1 s";
  expect([seen.change, seen.ready]).toEqual([
    { status: 503, body: { message } },
    { status: 503, body: { message } },
  ]);
  expect([seen.healthy, seen.read, seen.readInSession]).toEqual([200, 200, 200]);
  // The audit is chained once a second, also while the disk is full.
  const ofRequests = seen.log.filter(({ msg }: { msg: string }) => msg !== 'audit entries not chained');
  expect(ofRequests.map(({ msg, err }: { msg: string; err: { message: string } }) => [msg, err.message])).toEqual([
    ['request put off', 'database or disk is full'],
    ['not ready', 'database or disk is full'],
  ]);
  expect(seen.after).toEqual({ change: 201, ready: 200 });
});

test('a full disk of PostgreSQL is named as such', () => {
  const full = Object.assign(new Error('could not extend file'), { code: '53100', severity: 'ERROR' });
  expect(translate(full, false)).toMatchObject({
    message: 'the disk of the database is full; try again in 1 s',
    cause: full,
  });
});
