import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { startPlane, withDatabase } from '../../harness.ts';

test('a database that is silent is asked once, however many want to know whether all is ready', async () => {
  const plane = await startPlane();
  const ready = () => plane.call('GET', '/readyz');
  await withDatabase(plane.dataDir, (db) =>
    db.transaction().execute(async (transaction) => {
      await sql`lock table organizations in access exclusive mode`.execute(transaction);
      for (const { status, body } of await Promise.all([ready(), ready(), ready()])) {
        expect([status, body.message]).toEqual([503, 'the database did not answer within 2 s; try again in 1 s']);
      }
      const held = sql<{ queries: number }>`
        select count(*)::int as queries from pg_locks where not granted and relation = 'organizations'::regclass`;
      expect((await held.execute(transaction)).rows).toEqual([{ queries: 1 }]);
    }),
  );
  expect((await ready()).status).toBe(200);
});
