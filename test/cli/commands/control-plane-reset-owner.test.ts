import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { call } from '../../control-plane/harness.ts';
import { makeFolder, owner, runProgram, startServing } from './served-process.ts';

const password = 'another long password';

test('reset-owner sets the password of an owner from a file while the control plane runs, and reports the ended sessions', async () => {
  const folder = makeFolder();
  const served = await startServing(folder);
  const login = (word: string) =>
    call(served.url, 'POST', '/api/auth/login', { body: { email: owner.email, password: word } });
  await login(owner.password);
  const file = join(folder, 'new');
  writeFileSync(file, `${password}\n`, { mode: 0o600 });
  const flags = ['--password-file', file, '--data', join(folder, 'data')];
  const reset = (...more: string[]) => runProgram(['control-plane', 'reset-owner', ...flags, ...more]);

  const refused = await reset('--email', 'unknown@example.net');
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/not an owner here; the owners are: owner@/),
  ]);
  const done = await reset('--email', owner.email);
  expect([done.code, done.stdout]).toEqual([
    0,
    `reset the password of ${owner.email} in ${join(folder, 'data')}; sessions ended: 1\n`,
  ]);
  expect([(await login(owner.password)).status, (await login(password)).status]).toEqual([401, 200]);
});
