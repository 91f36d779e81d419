import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import type { Db } from './tables.ts';

/** Brings the database to this version's tables. There is no way back: an older version refuses the database. */
export async function migrate(db: Db): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error) throw error;
}

const migrations: Record<string, Migration> = {
  '0001-networks': {
    async up(db: Kysely<unknown>) {
      await table(db, 'organizations').addColumn('name', 'text', required).execute();
      await table(db, 'users')
        .addColumn('organization_id', 'integer', referring('organizations'))
        .addColumn('email', 'text', (column) => column.notNull().unique())
        .addColumn('password_hash', 'text', required)
        .addColumn('role', 'text', required)
        .addColumn('created_at', 'text', required)
        .execute();
      await table(db, 'sessions')
        .addColumn('user_id', 'integer', referring('users'))
        .addColumn('name', 'text', required)
        .addColumn('token_hash', 'text', (column) => column.notNull().unique())
        .addColumn('created_at', 'text', required)
        .addColumn('expires_at', 'text', required)
        .execute();
      await table(db, 'networks')
        .addColumn('organization_id', 'integer', referring('organizations'))
        .addColumn('name', 'text', required)
        .addColumn('description', 'text', required)
        .addColumn('private_cidr', 'text', required)
        .addColumn('routes', 'text', required)
        .addColumn('revision', 'integer', required)
        .addColumn('addresses_given', 'integer', required)
        .addColumn('created_at', 'text', required)
        .execute();
      await table(db, 'returned_addresses')
        .addColumn('network_id', 'integer', referring('networks'))
        .addColumn('address', 'text', required)
        .addUniqueConstraint('returned_addresses_once', ['network_id', 'address'])
        .execute();
      await table(db, 'enrollment_keys')
        .addColumn('network_id', 'integer', referring('networks'))
        .addColumn('name', 'text', required)
        .addColumn('token_hash', 'text', (column) => column.notNull().unique())
        .addColumn('max_uses', 'integer', required)
        .addColumn('uses', 'integer', required)
        .addColumn('created_at', 'text', required)
        .addColumn('expires_at', 'text', required)
        .addColumn('revoked_at', 'text')
        .addCheckConstraint('enrollment_keys_uses', sql`uses between 0 and max_uses`)
        .execute();
      await table(db, 'peers')
        .addColumn('network_id', 'integer', referring('networks'))
        .addColumn('name', 'text', required)
        .addColumn('peer_type', 'text', required)
        .addColumn('public_key', 'text', required)
        .addColumn('address', 'text', required)
        .addColumn('endpoint', 'text')
        .addColumn('routes', 'text')
        .addColumn('token_hash', 'text', (column) => column.notNull().unique())
        .addColumn('created_at', 'text', required)
        .addUniqueConstraint('peers_address', ['network_id', 'address'])
        .addUniqueConstraint('peers_public_key', ['network_id', 'public_key'])
        .execute();
      await db.schema
        .createTable('enrollments')
        .addColumn('peer_id', 'integer', (column) => referring('peers')(column).primaryKey())
        .addColumn('enrollment_key_id', 'integer', referring('enrollment_keys'))
        .addColumn('public_key', 'text', required)
        .addColumn('idempotency_hash', 'text', required)
        .addColumn('token_salt', 'text', required)
        .addUniqueConstraint('enrollments_once', ['enrollment_key_id', 'public_key', 'idempotency_hash'])
        .execute();
      for (const [from, column] of indexed) {
        await db.schema.createIndex(`${from}_${column}`).on(from).column(column).execute();
      }
    },
  },
};

/** Columns that are looked up, or that a cascade follows, and that no constraint indexes already. */
const indexed = [
  ['users', 'organization_id'],
  ['sessions', 'user_id'],
  ['networks', 'organization_id'],
  ['enrollment_keys', 'network_id'],
] as const;

/** A table with an id that is never used twice, so that an old name never means a new thing. */
function table(db: Kysely<unknown>, name: string) {
  return db.schema.createTable(name).addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement());
}

function required(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull();
}

function referring(to: string): (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder {
  return (column) => column.notNull().references(`${to}.id`).onDelete('cascade');
}
