import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { call, enroll, makeKey, makeNetwork, type Reply } from '../../control-plane/harness.ts';
import { makeFolder, owner, program, runProgram, startServing } from './served-process.ts';

const backUp = (folder: string, file: string) =>
  runProgram(['control-plane', 'backup', file, '--data', join(folder, 'data')]);

/** Calls a control plane as its owner. */
async function asOwner(url: string) {
  const remote = { call: (method: string, path: string, options?: object) => call(url, method, path, options) };
  const login = await remote.call('POST', '/api/auth/login', { body: owner });
  return { remote, token: login.body.data.access_token as string };
}

test('under load a backup holds everything that was acknowledged before it began, and nothing by halves', async () => {
  const folder = makeFolder();
  const served = await startServing(folder, '--limit-requests', '1000000');
  const { remote, token } = await asOwner(served.url);
  const network = await makeNetwork(remote, token, { private_cidr: '10.64.0.0/16' });
  const acknowledged: Reply[] = [];
  const enough = Promise.withResolvers<void>();
  let over = false;
  const load = Array.from({ length: 4 }, async () => {
    for (let round = 0; round < 500 && !over; round += 1) {
      const key = await makeKey(remote, token, network);
      for (let use = 0; use < 5; use += 1) {
        acknowledged.push(await enroll(remote, key));
        if (acknowledged.length >= 40) enough.resolve();
      }
    }
  });
  await Promise.race([enough.promise, Promise.all(load)]);
  const before = [...acknowledged];
  const file = join(folder, 'backup.db');
  const { code, stdout } = await backUp(folder, file);
  const during = acknowledged.length - before.length;
  over = true;
  await Promise.all(load);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^backed up to .*backup\.db, \d+ KiB\n$/)]);
  expect(during).toBeGreaterThan(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  served.child.kill('SIGTERM');
  await served.ended();

  const restored = makeFolder();
  mkdirSync(join(restored, 'data'), { mode: 0o700 });
  copyFileSync(file, join(restored, 'data', 'control-plane.db'));
  const again = await startServing(restored);
  const { body } = await call(again.url, 'GET', `/api/networks/${network}`, { token });
  for (const reply of before) {
    expect(reply.status).toBe(201);
    expect(body.data.peers).toContainEqual(reply.body.data.peer);
  }
  expect(body.data.revision).toBe(1 + body.data.peers.length);
  const keys = await call(again.url, 'GET', `/api/networks/${network}/enrollment-keys?all=true`, { token });
  const uses = keys.body.data.reduce((sum: number, key: { uses: number }) => sum + key.uses, 0);
  expect(uses).toBe(body.data.peers.length);
  // It continues from the backup: the next peer gets a free address.
  const next = await enroll(
    { call: (...given) => call(again.url, ...given) },
    await makeKey((await asOwner(again.url)).remote, token, network),
  );
  const taken = body.data.peers.map(({ address }: { address: string }) => address);
  expect([next.status, taken.includes(next.body.data.peer.address)]).toEqual([201, false]);
});

describe('a backup', () => {
  test('works without a running control plane, and leaves the folder unchanged', async () => {
    const folder = makeFolder();
    const served = await startServing(folder);
    served.child.kill('SIGTERM');
    await served.ended();
    const names = readdirSync(join(folder, 'data'));
    expect((await backUp(folder, join(folder, 'backup.db'))).code).toBe(0);
    expect(readdirSync(join(folder, 'data'))).toEqual(names);
    expect(readdirSync(folder).toSorted()).toEqual(['backup.db', 'data', 'password']);
  });

  test('is made after a kill -9 too, with all that was acknowledged', async () => {
    const folder = makeFolder();
    const served = await startServing(folder);
    const { remote, token } = await asOwner(served.url);
    await makeNetwork(remote, token, { name: 'canary' });
    served.child.kill('SIGKILL');
    await served.ended();
    const file = join(folder, 'backup.db');
    expect((await backUp(folder, file)).code).toBe(0);
    expect(readFileSync(file).includes('canary')).toBe(true);
  });

  test('replaces nothing, and what a name leads to neither', async () => {
    const folder = makeFolder();
    await startServing(folder);
    writeFileSync(join(folder, 'old'), 'canary');
    symlinkSync('nowhere', join(folder, 'dangling'));
    for (const name of ['old', 'dangling']) {
      const { code, stderr } = await backUp(folder, join(folder, name));
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining('a backup does not replace files; name another file'),
      ]);
    }
    expect(readFileSync(join(folder, 'old'), 'utf8')).toBe('canary');
    expect(readdirSync(folder).toSorted()).toEqual(['dangling', 'data', 'old', 'password']);
  });

  test('of a folder without a database, or into one that is not there, says so', async () => {
    const folder = makeFolder();
    const nothing = await backUp(folder, join(folder, 'backup.db'));
    expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining('there is no database in')]);
    expect(existsSync(join(folder, 'data'))).toBe(false);
    await startServing(folder);
    const nowhere = await backUp(folder, join(folder, 'nowhere', 'backup.db'));
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('no such file or directory (ENOENT)')]);
  });

  test('of a database that is damaged is none', async () => {
    const folder = makeFolder();
    const served = await startServing(folder);
    served.child.kill('SIGTERM');
    await served.ended();
    const database = join(folder, 'data', 'control-plane.db');
    truncateSync(database, Math.floor(statSync(database).size / 2 / 4096) * 4096);
    const { code, stderr } = await backUp(folder, join(folder, 'backup.db'));
    expect([code, stderr]).toEqual([1, expect.stringMatching(/cannot be copied \(.*malformed.*\); no copy was made/)]);
    expect(readdirSync(folder).toSorted()).toEqual(['data', 'password']);
  });

  test('fits on the disk or is none', async () => {
    const folder = makeFolder();
    await startServing(folder);
    const small = join(folder, 'small');
    mkdirSync(small);
    // In a namespace of its own the small disk goes with the shell.
    const script = 'mount -t tmpfs -o size=16k tmpfs "$0" && "$@"; echo "$?"; ls -A "$0"';
    const command = [process.execPath, program, 'control-plane', 'backup', join(small, 'backup.db')];
    const argv = ['--mount', 'sh', '-c', script, small, ...command, '--data', join(folder, 'data')];
    const { stdout, stderr } = spawnSync('unshare', argv, { encoding: 'utf8' });
    expect([stdout, stderr]).toEqual(['1\n', expect.stringContaining('database or disk is full')]);
  });

  test('of a read-only folder names the folder, and so does one into it', async () => {
    const folder = makeFolder();
    const served = await startServing(folder);
    served.child.kill('SIGTERM');
    await served.ended();
    const data = join(folder, 'data');
    const script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && "$@"; echo "$?"';
    const backUpReadOnly = (file: string) => {
      const command = [process.execPath, program, 'control-plane', 'backup', file, '--data', data];
      return spawnSync('unshare', ['--mount', 'sh', '-c', script, data, ...command], { encoding: 'utf8' });
    };
    const from = backUpReadOnly(join(folder, 'backup.db'));
    expect([from.stdout, from.stderr]).toEqual(['1\n', expect.stringContaining(`${data} is read-only`)]);
    const into = backUpReadOnly(join(data, 'backup.db'));
    expect([into.stdout, into.stderr]).toEqual(['1\n', expect.stringContaining(`${data}/backup.db`)]);
    expect(into.stderr).toContain('read-only file system (EROFS)');
    expect(readdirSync(folder).toSorted()).toEqual(['data', 'password']);
  });
});
