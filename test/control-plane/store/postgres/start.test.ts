import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { UnusableDatabase } from '../../../../src/control-plane/errors.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { startServing } from '../../../cli/commands/served-process.ts';
import { databaseFor, postgres, withDatabase } from '../../databases.ts';
import { call, makeFolder, openPlane, startPlane } from '../../harness.ts';
import { asSuperuser, urlOf } from '../../postgres-server.ts';

if (postgres === null) throw new Error('these tests are for PostgreSQL');
const server = postgres;

/** Over TCP, where a password is asked for. */
const byTcp = (database: string, login: string) => `postgres://${login}@127.0.0.1:${server.port}/${database}`;
const open = (url: string) => openPlane({ database: new Secret(url) });
const nameOf = async (dataDir: string) => new URL((await databaseFor(dataDir))?.reveal() ?? '').pathname.slice(1);
const freshName = () => nameOf(makeFolder());

describe('a database that cannot be used is refused, with what to do', () => {
  test.each<[string, () => Promise<string> | string, RegExp, 'again' | 'lasting']>([
    [
      'no server listens',
      () => 'postgres://cpn:canary@127.0.0.1:1/net',
      /127\.0\.0\.1:1\/net .*ECONNREFUSED.*check that/,
      'again',
    ],
    ['no such socket', () => 'postgres:///net?host=/nowhere', /ENOENT.*check that PostgreSQL runs there/, 'again'],
    [
      'a wrong password',
      async () => byTcp(await freshName(), 'cpn:canary'),
      /authentication failed.*PGPASSWORD/,
      'lasting',
    ],
    [
      'no password',
      async () => byTcp(await freshName(), 'cpn'),
      /password.*; put the correct one into PGPASSWORD/,
      'lasting',
    ],
    [
      'no such database',
      () => byTcp('nowhere', `cpn:${server.password}`),
      /"nowhere" does not exist.*createdb/,
      'lasting',
    ],
    [
      'no TLS',
      () => `${byTcp('postgres', 'cpn:canary')}?sslmode=verify-full`,
      /does not support SSL.*turn ssl on there, or add sslmode=disable/,
      'lasting',
    ],
  ])('%s', async (_, url, problem, kind) => {
    const refused = open(await url());
    await expect(refused).rejects.toThrow(UnusableDatabase);
    await expect(refused).rejects.toThrow(problem);
    await expect(refused).rejects.toMatchObject({ isRetryable: kind === 'again' });
    await expect(refused).rejects.not.toThrow(new RegExp(`canary|${server.password}`));
  });

  test('refuses a user who may not make tables', async () => {
    const name = await freshName();
    const user = `${name}_guest`;
    await asSuperuser(server, (client) => client.query(`create role ${user} login`));
    await expect(open(urlOf({ ...server, user }, name))).rejects.toThrow(/permission denied.*make \S+_guest the owner/);
  });

  test('refuses another encoding', async () => {
    const name = `${await freshName()}_latin`;
    const make = `create database ${name} encoding 'LATIN1' locale 'C' template template0`;
    await asSuperuser(server, (client) => client.query(make));
    await expect(open(urlOf(server, name))).rejects.toThrow(/its encoding is LATIN1.*UTF8/);
    await asSuperuser(server, (client) => client.query(`drop database ${name}`));
  });

  test('refuses a standby, and a database that an administrator made read-only', async () => {
    const name = await freshName();
    await asSuperuser(server, (client) =>
      client.query(`alter database ${name} set default_transaction_read_only = on`),
    );
    const refused = open(urlOf(server, name));
    await expect(refused).rejects.toThrow(/read-only; name the primary/);
    // It may become the primary.
    await expect(refused).rejects.toMatchObject({ isRetryable: true });
  });

  test('refuses the tables of another program', async () => {
    const name = await freshName();
    await asSuperuser(server, (client) => client.query('create table users (id text)'), name);
    const refused = open(urlOf(server, name));
    await expect(refused).rejects.toThrow(/"users" already exists.*database of its own/);
    await expect(refused).rejects.toMatchObject({ isRetryable: false });
  });

  test('refuses a newer version, and changes nothing in it', async () => {
    const dataDir = makeFolder();
    await (await openPlane({ dataDir })).server.close();
    await withDatabase(dataDir, (db) =>
      sql`insert into kysely_migration values ('9999-later', '2031-01-01')`.execute(db),
    );
    await expect(openPlane({ dataDir })).rejects.toThrow(/9999-later.*newer cpn/);
  });
});

describe('the password', () => {
  test.each<[string, string, (folder: string) => string]>([
    ['PGPASSWORD', 'PGPASSWORD', () => server.password],
    [
      'the file of PGPASSFILE',
      'PGPASSFILE',
      (folder) => {
        const file = join(folder, 'pgpass');
        writeFileSync(file, `127.0.0.1:${server.port}:*:cpn:${server.password}\n`, { mode: 0o600 });
        return file;
      },
    ],
  ])('comes from %s, as for every program of PostgreSQL', async (_, variable, makeValue) => {
    const dataDir = makeFolder();
    vi.stubEnv(variable, makeValue(dataDir));
    onTestFinished(() => void vi.unstubAllEnvs());
    const { url, said } = await startServing(dataDir, '--database', byTcp(await nameOf(dataDir), 'cpn'));
    expect((await call(url, 'GET', '/readyz')).status).toBe(200);
    expect(said()).not.toContain(server.password);
  });
});

test('what the database would do without is not done without: commits wait for the disk, and transactions are as they are meant', async () => {
  const dataDir = makeFolder();
  const name = await nameOf(dataDir);
  await asSuperuser(server, async (client) => {
    await client.query(`alter database ${name} set synchronous_commit = off`);
    await client.query(`alter database ${name} set default_transaction_isolation = serializable`);
  });
  const plane = await startPlane({ dataDir });
  expect((await plane.call('GET', '/readyz')).status).toBe(200);
  // A trigger tells of the session that it runs in: one of the control plane's.
  await withDatabase(dataDir, async (db) => {
    for (const [setting, value] of [
      ['synchronous_commit', 'on'],
      ['transaction_isolation', 'read committed'],
      // A process that hangs must not hold up all others.
      ['statement_timeout', '15s'],
      ['idle_in_transaction_session_timeout', '30s'],
    ] as const) {
      await sql`drop trigger if exists tell on networks`.execute(db);
      await sql`create or replace function tell() returns trigger language plpgsql as
        $$ begin new.description := current_setting(${sql.lit(setting)}); return new; end $$`.execute(db);
      await sql`create trigger tell before insert on networks for each row execute function tell()`.execute(db);
      const body = { name: setting, private_cidr: '10.0.0.0/24' };
      const reply = await plane.call('POST', '/api/networks', { token: await plane.signIn('owner'), body });
      expect([setting, reply.body.data.description]).toEqual([setting, value]);
    }
  });
});
