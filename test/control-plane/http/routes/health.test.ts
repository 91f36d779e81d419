import { expect, test } from 'vitest';
import { startPlane, withDatabase } from '../../harness.ts';

test('health and readiness need no token', async () => {
  const plane = await startPlane();
  expect(await plane.call('GET', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
  expect(await plane.call('GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ready' } });
});

test('who can read the database and not write it is not ready', async () => {
  const plane = await startPlane();
  await withDatabase(plane.dataDir, (db) => db.schema.dropTable('write_checks').execute());
  expect((await plane.call('GET', '/readyz')).status).toBe(503);
});

test('who has no database lives, but is not ready, and says so until it is there again', async () => {
  const plane = await startPlane();
  const rename = (from: string, to: string) =>
    withDatabase(plane.dataDir, (db) => db.schema.alterTable(from).renameTo(to).execute());
  await rename('organizations', 'hidden');
  const { status, headers, body } = await plane.call('GET', '/readyz');
  expect([status, body]).toEqual([503, { message: 'the database does not answer; try again in 1 s' }]);
  expect(headers.get('retry-after')).toBe('1');
  expect((await plane.call('GET', '/healthz')).status).toBe(200);
  expect((await plane.call('GET', '/readyz')).status).toBe(503);
  await rename('hidden', 'organizations');
  expect((await plane.call('GET', '/readyz')).status).toBe(200);
  const logged = plane
    .log()
    .split('\n')
    .filter((line) => /"level":[^12]\d.*ready/.test(line));
  expect(logged).toEqual([
    expect.stringMatching(/"level":40.*organizations.*"msg":"not ready"/),
    expect.stringMatching(/"level":30.*"msg":"ready again"/),
  ]);
});
