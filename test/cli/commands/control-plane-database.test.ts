import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { failServing, makeFolder, runProgram } from './served-process.ts';

const url = 'postgres://cpn:canary@127.0.0.1:1/net';

test('a URL with a password is refused on the command line, with where to put it', async () => {
  const { code, said } = await failServing(makeFolder(), '--database', url);
  expect([code, said]).toEqual([2, expect.stringMatching(/file:PATH, or the password into PGPASSWORD or ~\/\.pgpass/)]);
  expect(said).not.toContain('canary');
});

test('it is taken from a file, and from the environment', async () => {
  const folder = makeFolder();
  const file = join(folder, 'url');
  writeFileSync(file, `${url}\n`);
  const fromFile = await failServing(folder, '--database', `file:${file}`);
  vi.stubEnv('CPN_DATABASE', url);
  const fromEnvironment = await failServing(folder);
  vi.unstubAllEnvs();
  for (const { code, said } of [fromFile, fromEnvironment]) {
    expect([code, said]).toEqual([1, expect.stringMatching(/the database 127\.0\.0\.1:1\/net .*ECONNREFUSED/)]);
    expect(said).not.toContain('canary');
  }
});

test.each([
  [['--database', 'postgres://127.0.0.1/net', '--data', '/nowhere'], /--data and --database exclude each other/],
  [['--database', 'mysql://cpn:canary@127.0.0.1/net'], /--database is not a PostgreSQL URL; write postgres:/],
  [['--database', 'file:/nowhere/url'], /the database's URL cannot be read from \/nowhere\/url \(ENOENT\)/],
  [
    ['--database', 'postgres://127.0.0.1/net?sslmode=verify-full&sslrootcert=/nowhere/ca'],
    /the URL of --database names \/nowhere\/ca, which cannot be read \(ENOENT\)/,
  ],
])('%j is wrong usage', async (flags, expected) => {
  const { code, stderr } = await runProgram(['control-plane', 'serve', '--listen', '127.0.0.1:0', ...flags], {});
  expect([code, stderr]).toEqual([2, expect.stringMatching(expected)]);
  expect(stderr).not.toContain('canary');
});
