import { type Kysely, sql } from 'kysely';
import { expect, test } from 'vitest';
import { NewerDatabase } from '../../../../src/control-plane/errors.ts';
import { migrate } from '../../../../src/control-plane/store/migrations/migrate.ts';
import { migrations, neededMigration } from '../../../../src/control-plane/store/migrations/migrations.ts';
import type { Db } from '../../../../src/control-plane/store/tables.ts';
import { databaseFor, withDatabase } from '../../databases.ts';
import { makeFolder, openPlane } from '../../harness.ts';

const namesIn = async (db: Db, table: string) =>
  (await sql<{ name: string }>`select name from ${sql.table(table)} order by name`.execute(db)).rows.map(
    ({ name }) => name,
  );
/** The steps that were done. */
const done = (db: Db) => namesIn(db, 'applied_migrations');
/** The steps that a version must know, in the table that versions up to 0.1.0 read. */
const needed = (db: Db) => namesIn(db, 'kysely_migration');
const tables = async (db: Db) => (await db.introspection.getTables()).map(({ name }) => name).sort();

async function emptyDatabase(): Promise<string> {
  const dataDir = makeFolder();
  await databaseFor(dataDir);
  return dataDir;
}

test('a step that fails half done leaves nothing of itself nor of those before it, and can be tried again', async () => {
  await withDatabase(await emptyDatabase(), async (db) => {
    const broken = {
      '9999-broken': async (within: Kysely<unknown>) => {
        await within.schema.createTable('half').addColumn('id', 'integer').execute();
        await sql`insert into nowhere values (1)`.execute(within);
      },
    };
    await expect(migrate(db, { ...migrations, ...broken })).rejects.toThrow(/nowhere/);
    expect(await tables(db)).toEqual([]);
    await migrate(db);
    expect(await done(db)).toEqual(Object.keys(migrations));
    expect(await tables(db)).toContain('peers');
  });
});

test('from each version there ever was there is a way to this one', async () => {
  for (const [index] of Object.keys(migrations).entries()) {
    await withDatabase(await emptyDatabase(), async (db) => {
      await migrate(db, Object.fromEntries(Object.entries(migrations).slice(0, index + 1)));
      await migrate(db);
      expect(await done(db)).toEqual(Object.keys(migrations));
    });
  }
});

const later = (...names: string[]) => ({
  ...migrations,
  ...Object.fromEntries(
    names.map((name) => [
      name,
      async (db: Kysely<unknown>) => db.schema.createTable(name).addColumn('id', 'integer').execute(),
    ]),
  ),
});

test('a step that only adds is survived by the version before it, and one that takes away by those that know enough', async () => {
  await withDatabase(await emptyDatabase(), async (db) => {
    await migrate(db, later('9997-adds'));
    await migrate(db);
    expect(await needed(db)).toEqual(Object.keys(migrations).filter((name) => name <= neededMigration));

    await migrate(db, later('9997-adds', '9998-takes-away'), '9997-adds');
    await migrate(db, later('9997-adds'), neededMigration);
    const before = [await done(db), await needed(db)];
    await expect(migrate(db)).rejects.toThrow(new NewerDatabase('9997-adds'));
    expect([await done(db), await needed(db)]).toEqual(before);
  });
});

test('a database of the version with which this began is taken on as it is', async () => {
  await withDatabase(await emptyDatabase(), async (db) => {
    const before = Object.fromEntries(Object.entries(migrations).filter(([name]) => name <= neededMigration));
    await migrate(db, before);
    await db.schema.dropTable('applied_migrations').execute();
    await migrate(db);
    const added = Object.keys(migrations).filter((name) => name > neededMigration);
    expect([await needed(db), await done(db)]).toEqual([Object.keys(before), added]);
  });
});

test('starting again changes nothing', async () => {
  const dataDir = makeFolder();
  const look = () => withDatabase(dataDir, async (db) => [await tables(db), await done(db)]);
  await (await openPlane({ dataDir })).server.close();
  const before = await look();
  await (await openPlane({ dataDir })).server.close();
  expect(await look()).toEqual(before);
});

test('ids and numbers have room for more than 32 bits, and an id is not used twice', async () => {
  await withDatabase(await emptyDatabase(), async (db) => {
    await migrate(db);
    const id = 2 ** 40;
    await db.insertInto('organizations').values({ id, name: 'far' }).execute();
    const found = await db.selectFrom('organizations').selectAll().where('id', '=', id).execute();
    expect(found).toEqual([{ id, name: 'far' }]);
    const make = () => db.insertInto('users').values(user).returning('id').executeTakeFirstOrThrow();
    const user = { organization_id: id, email: 'a@b.net', password_hash: '', role: 'owner', created_at: '' } as const;
    const first = await make();
    await db.deleteFrom('users').execute();
    expect((await make()).id).toBeGreaterThan(first.id);
  });
});
