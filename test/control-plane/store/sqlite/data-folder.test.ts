import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { resetOwner } from '../../../../src/control-plane/reset-owner.ts';
import { durable, openSqlite } from '../../../../src/control-plane/store/sqlite/sqlite.ts';
import { withExistingDatabase } from '../../../../src/control-plane/store/sqlite/store.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { Locked } from '../../../../src/core/errors/index.ts';
import { makeFolder, openPlane, startPlane, withDatabase } from '../../harness.ts';
import { startProcess } from '../../start-process.ts';

/** Until a person acts. */
const unusable = { name: 'UnusableFile', isRetryable: false };

const mode = (path: string) => statSync(path).mode & 0o777;

describe('the data folder', () => {
  test('is made, closed to others, and so are its files', async () => {
    const dataDir = join(makeFolder(), 'deep', 'data');
    await startPlane({ dataDir });
    expect(mode(dataDir)).toBe(0o700);
    const files = readdirSync(dataDir);
    expect(files).toContain('control-plane.db-wal');
    for (const file of files) expect([file, mode(join(dataDir, file))]).toEqual([file, 0o600]);
  });

  test('is closed to others when it was open', async () => {
    const dataDir = makeFolder();
    chmodSync(dataDir, 0o755);
    await startPlane({ dataDir });
    expect(mode(dataDir)).toBe(0o700);
  });

  test('keeps its mode when it holds what is not ours', async () => {
    const dataDir = makeFolder();
    mkdirSync(join(dataDir, 'lost+found'));
    chmodSync(dataDir, 0o755);
    await startPlane({ dataDir });
    expect(mode(dataDir)).toBe(0o755);
    expect(mode(join(dataDir, 'control-plane.db'))).toBe(0o600);
  });

  test.each(['control-plane.db', 'control-plane.db-wal', 'control-plane.lock', 'control-plane.pid'])(
    'with a link in the place of its %s is refused by its path, and nothing is written through it',
    async (name) => {
      const dataDir = makeFolder();
      const target = join(makeFolder(), 'target');
      symlinkSync(target, join(dataDir, name));
      const refused = openPlane({ dataDir });
      await expect(refused).rejects.toThrow(`${join(dataDir, name)} is not a regular file`);
      expect(existsSync(target)).toBe(false);
    },
  );

  test('is not made by reset-owner where there is none, and no link in it is followed', async () => {
    const dataDir = makeFolder();
    const owner = { email: 'owner@example.net', password: new Secret('a long enough password') };
    const reset = () => resetOwner({ dataDir, database: null }, owner, { keepsTokens: false });
    await expect(reset()).rejects.toThrow(`there is no database in ${dataDir}; name its folder with --data`);
    expect(readdirSync(dataDir)).toEqual([]);
    const loop = join(makeFolder(), 'control-plane.db');
    symlinkSync(loop, loop);
    await expect(resetOwner({ dataDir: dirname(loop), database: null }, owner, { keepsTokens: false })).rejects.toThrow(
      'cannot be read (ELOOP)',
    );
    const target = join(makeFolder(), 'target');
    writeFileSync(target, 'canary', { mode: 0o644 });
    symlinkSync(target, join(dataDir, 'control-plane.db'));
    await expect(reset()).rejects.toThrow('is not a regular file');
    expect(mode(target)).toBe(0o644);
  });

  test.runIf(process.geteuid?.() === 0)('of another user stays theirs, also when root resets an owner', async () => {
    const dataDir = makeFolder();
    await (await openPlane({ dataDir })).server.close();
    const database = join(dataDir, 'control-plane.db');
    for (const path of [dataDir, database]) chownSync(path, 65534, 65534);
    const made = await withExistingDatabase(dataDir, async (db) => {
      await sql`update users set role = role`.execute(db);
      return readdirSync(dataDir).filter((name) => name.startsWith('control-plane.db'));
    });
    expect(made).toContain('control-plane.db-wal');
    const owners = readdirSync(dataDir).filter((name) => name.startsWith('control-plane.db'));
    expect(owners.map((name) => statSync(join(dataDir, name)).uid)).toEqual(owners.map(() => 65534));
  });

  test.runIf(process.geteuid?.() === 0)(
    'that root restored is refused with the command that gives it away',
    async () => {
      const dataDir = makeFolder();
      await (await openPlane({ dataDir })).server.close();
      const database = join(dataDir, 'control-plane.db');
      chownSync(dataDir, 65534, 65534);
      process.seteuid?.(65534);
      try {
        const problem = `${database} belongs to user 0, and user 65534 cannot read and write it; type: chown 65534 ${database}`;
        await expect(openPlane({ dataDir })).rejects.toThrow(problem);
      } finally {
        process.seteuid?.(0);
      }
    },
  );

  test.runIf(process.geteuid?.() === 0)(
    'that root restored as a whole is refused with the command that gives it away',
    async () => {
      const dataDir = makeFolder();
      await (await openPlane({ dataDir })).server.close();
      const remedy = `if it holds the control plane's data, type: chown -R 65534 ${dataDir}`;
      for (const mode of [0o755, 0o700]) {
        chmodSync(dataDir, mode);
        process.seteuid?.(65534);
        try {
          const problem = `${dataDir} belongs to user 0, and user 65534 cannot use it; ${remedy}`;
          await expect(openPlane({ dataDir })).rejects.toThrow(problem);
        } finally {
          process.seteuid?.(0);
        }
      }
    },
  );

  test.runIf(process.geteuid?.() === 0)('of another user is refused, and its mode stays', async () => {
    const dataDir = makeFolder();
    chownSync(dataDir, 4242, 4242);
    chmodSync(dataDir, 0o755);
    await expect(openPlane({ dataDir })).rejects.toThrow(`${dataDir} belongs to user 4242`);
    expect(mode(dataDir)).toBe(0o755);
  });

  test('serves one control plane at a time', async () => {
    const plane = await startPlane();
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const refused = openPlane({ dataDir: plane.dataDir });
      await expect(refused).rejects.toThrow(Locked);
      await expect(refused).rejects.toThrow(`pid ${process.pid}`);
    }
    expect((await plane.call('GET', '/healthz')).status).toBe(200);
  });

  test('that cannot be one is refused by name', async () => {
    const dataDir = join(makeFolder(), 'file');
    writeFileSync(dataDir, '');
    const refused = openPlane({ dataDir });
    await expect(refused).rejects.toMatchObject(unusable);
    await expect(refused).rejects.toThrow(dataDir);
  });

  test('with a database of a later version is refused and left alone', async () => {
    const dataDir = makeFolder();
    await (await openPlane({ dataDir })).server.close();
    await withDatabase(dataDir, (db) =>
      db
        // biome-ignore lint/suspicious/noExplicitAny: the table is Kysely's own.
        .insertInto('kysely_migration' as any)
        .values({ name: '9999-later', timestamp: '2031-01-01' })
        .execute(),
    );
    await expect(openPlane({ dataDir })).rejects.toMatchObject(unusable);
  });

  test('with something else in the place of the database is refused, and can be tried again', async () => {
    const dataDir = makeFolder();
    writeFileSync(join(dataDir, 'control-plane.db'), 'no database at all, but long enough to look like one'.repeat(9));
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await expect(openPlane({ dataDir })).rejects.toMatchObject(unusable);
    }
  });

  test('is not shared by two processes, and one that was killed leaves it free', async () => {
    const dataDir = makeFolder();
    const { child } = await startProcess(dataDir);
    const refused = openPlane({ dataDir });
    await expect(refused).rejects.toThrow(Locked);
    await expect(refused).rejects.toThrow(`pid ${child.pid}`);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const plane = await startPlane({ dataDir, owner: null });
    expect((await plane.call('GET', '/healthz')).status).toBe(200);
  });
});

test('a database of a newer version is named as such', async () => {
  const dataDir = makeFolder();
  const plane = await startPlane({ dataDir });
  await plane.server.close();
  await withDatabase(dataDir, (db) =>
    sql`insert into kysely_migration (name, timestamp) values ('9999-later', '2030-01-01T00:00:00.000Z')`.execute(db),
  );
  await expect(openPlane({ dataDir })).rejects.toThrow(
    /control-plane\.db was written by a newer cpn \(it has the migration 9999-later.*\); run that version, or restore a backup/,
  );
});

test('what was acknowledged is on disk: each commit is synced, and rows refer to rows that are there', () => {
  const database = openSqlite(join(makeFolder(), 'control-plane.db'), durable);
  const settings = { synchronous: 2, journal_mode: 'wal', foreign_keys: 1, busy_timeout: 5000, trusted_schema: 0 };
  const read = Object.keys(settings).map((name) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  database.close();
  expect(read).toEqual(Object.values(settings));
});
