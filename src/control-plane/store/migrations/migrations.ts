import { randomBytes } from 'node:crypto';
import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely';
import { makeNonce } from '../changes.ts';
import type { Db } from '../tables.ts';
import { labelPeers } from './label-peers.ts';

export type Migration = (db: Kysely<unknown>) => Promise<void>;

/**
 * The last step that a version needs to use this database. Later steps only add: older versions
 * still work. A step that removes something that versions up to step N use must set this to N + 1.
 */
export const neededMigration = '0011-previous-keys';

/** All steps, by name and in that order. A released step never changes. */
export const migrations: Readonly<Record<string, Migration>> = {
  '0001-networks': async (db) => {
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
  '0002-withdrawn': async (db) => {
    await db.schema
      .alterTable('peers')
      .addColumn('withdrawn', 'text', (column) => column.notNull().defaultTo('[]'))
      .execute();
  },
  '0003-personal-tokens': async (db) => {
    await table(db, 'personal_tokens')
      .addColumn('user_id', 'integer', referring('users'))
      .addColumn('name', 'text', required)
      .addColumn('token_hash', 'text', (column) => column.notNull().unique())
      .addColumn('created_at', 'text', required)
      .addColumn('expires_at', 'text')
      .addColumn('last_used_at', 'text')
      .execute();
    await db.schema.createIndex('personal_tokens_user_id').on('personal_tokens').column('user_id').execute();
  },
  '0004-audit': async (db) => {
    await table(db, 'audit_entries')
      .addColumn('organization_id', 'integer', (column) => column.references('organizations.id').onDelete('cascade'))
      .addColumn('at', 'text', required)
      .addColumn('actor_kind', 'text', required)
      .addColumn('actor_id', 'integer')
      .addColumn('actor_name', 'text')
      .addColumn('action', 'text', required)
      .addColumn('target_kind', 'text', required)
      .addColumn('target_id', 'integer')
      .addColumn('target_name', 'text')
      .addColumn('address', 'text')
      .addColumn('details', 'text', required)
      .execute();
    await db.schema.createIndex('audit_entries_page').on('audit_entries').columns(['organization_id', 'id']).execute();
    await db.schema.createIndex('audit_entries_at').on('audit_entries').column('at').execute();
  },
  '0005-changes': async (db) => {
    await db.schema
      .createTable('changes')
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('revision', 'integer', required)
      .addColumn('peer_id', 'integer')
      .execute();
    await db.schema.createIndex('changes_revision').on('changes').columns(['network_id', 'revision']).execute();
  },
  '0006-identities': async (db) => {
    for (const column of ['identity_key', 'key_proof', 'network_secret_tag']) {
      await db.schema.alterTable('peers').addColumn(column, 'text').execute();
    }
  },
  '0007-nonces': async (db) => {
    const withNonces = db as Kysely<{
      networks: { id: number; revision: number; nonce: string };
      changes: { network_id: number; revision: number; peer_id: number | null; nonce: string | null };
    }>;
    await db.schema
      .alterTable('networks')
      .addColumn('nonce', 'text', (column) => column.notNull().defaultTo(''))
      .execute();
    await db.schema.alterTable('changes').addColumn('nonce', 'text').execute();
    for (const { id, revision } of await withNonces.selectFrom('networks').select(['id', 'revision']).execute()) {
      const nonce = makeNonce(randomBytes);
      await withNonces.updateTable('networks').set({ nonce }).where('id', '=', id).execute();
      await withNonces.insertInto('changes').values({ network_id: id, revision, peer_id: null, nonce }).execute();
    }
  },
  '0008-key-limits': async (db) => {
    for (const column of ['peer_types', 'routes']) {
      await db.schema.alterTable('enrollment_keys').addColumn(column, 'text').execute();
    }
  },
  '0009-ranks': async (db) => {
    await db.schema.alterTable('peers').addColumn('serving_since', 'text').execute();
    await db.schema
      .alterTable('peers')
      .addColumn('priority', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await sql`update peers set serving_since = created_at where peer_type = 'connector'`.execute(db);
  },
  '0010-labels': async (db) => {
    await db.schema.alterTable('peers').addColumn('label', 'text').execute();
    await db.schema
      .createIndex('audit_entries_actor')
      .on('audit_entries')
      .columns(['actor_kind', 'actor_id', 'at'])
      .execute();
    await labelPeers(db as Db);
    await db.schema.createIndex('peers_label').unique().on('peers').columns(['network_id', 'label']).execute();
  },
  '0011-previous-keys': async (db) => {
    await db.schema.alterTable('peers').addColumn('previous_key', 'text').execute();
    await db.schema.createIndex('peers_previous_key').on('peers').columns(['network_id', 'previous_key']).execute();
  },
  '0012-write-checks': async (db) => {
    await table(db, 'write_checks').addColumn('at', 'text', required).execute();
  },
  '0013-session-addresses': async (db) => {
    await db.schema.alterTable('sessions').addColumn('address', 'text').execute();
  },
  '0014-pages': async (db) => {
    for (const [name, owner] of paged) {
      await db.schema.createIndex(`${name}_page`).ifNotExists().on(name).columns([owner, 'id']).execute();
    }
  },
  '0015-former-identities': async (db) => {
    await table(db, 'former_identities')
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('identity_key', 'text', required)
      .addColumn('removed_at', 'text', required)
      .addUniqueConstraint('former_identities_once', ['network_id', 'identity_key'])
      .execute();
    await db.schema.createIndex('peers_identity_key').on('peers').columns(['network_id', 'identity_key']).execute();
  },
  '0016-suspension': async (db) => {
    for (const column of ['suspended_at', 'expires_at']) {
      await db.schema.alterTable('peers').addColumn(column, 'text').execute();
    }
    await db.schema
      .alterTable('peers')
      .addColumn('expired', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema.createIndex('peers_expires_at').on('peers').column('expires_at').execute();
    await db.schema.alterTable('enrollment_keys').addColumn('peer_hours', 'integer').execute();
  },
  '0017-health': async (db) => {
    await db.schema
      .createTable('network_health')
      .addColumn('network_id', 'integer', (column) => referring('networks')(column).primaryKey())
      .addColumn('revision', 'integer', required)
      .addColumn('nonce', 'text', required)
      .addColumn('routes', 'text', required)
      .execute();
    await db.schema
      .createTable('peer_health')
      .addColumn('peer_id', 'integer', (column) => referring('peers')(column).primaryKey())
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('last_seen', 'text')
      .addColumn('version', 'text')
      .addColumn('platform', 'text')
      .addColumn('address', 'text')
      .addColumn('announced', 'text')
      .addColumn('report', 'text')
      .addColumn('reported_at', 'text')
      .execute();
    await db.schema.createIndex('peer_health_network').on('peer_health').column('network_id').execute();
    await db.schema.createIndex('peer_health_seen').on('peer_health').columns(['announced', 'last_seen']).execute();
    await table(db, 'events')
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('at', 'text', required)
      .addColumn('type', 'text', required)
      .addColumn('peer_id', 'integer')
      .addColumn('peer_name', 'text')
      .addColumn('route', 'text')
      .addColumn('details', 'text', required)
      .execute();
    await db.schema.createIndex('events_page').on('events').columns(['network_id', 'id']).execute();
    await db.schema.createIndex('events_at').on('events').column('at').execute();
    await table(db, 'deliveries')
      .addColumn('event_id', 'integer', required)
      .addColumn('body', 'text', required)
      .addColumn('created_at', 'text', required)
      .addColumn('attempts', 'integer', required)
      .addColumn('next_at', 'text', required)
      .execute();
    await db.schema.createIndex('deliveries_next').on('deliveries').column('next_at').execute();
  },
  '0018-acknowledgements': async (db) => {
    await db.schema.alterTable('peer_health').addColumn('acknowledged_revision', 'integer').execute();
  },
  '0019-instances': async (db) => {
    await db.schema.alterTable('peer_health').addColumn('instances', 'text').execute();
  },
  '0020-map-age': async (db) => {
    await db.schema.alterTable('networks').addColumn('map_max_age_seconds', 'integer').execute();
  },
  '0021-lost-connections': async (db) => {
    await db.schema.alterTable('peer_health').addColumn('lost_at', 'text').execute();
    await table(db, 'peer_messages')
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('peer_id', 'integer', referring('peers'))
      .addColumn('kind', 'text', required)
      .addColumn('data', 'text', required)
      .addColumn('created_at', 'text', required)
      .execute();
    await db.schema.createIndex('peer_messages_network').on('peer_messages').column('network_id').execute();
    await db.schema.createIndex('peer_messages_peer').on('peer_messages').column('peer_id').execute();
  },
  '0022-profiles': async (db) => {
    await db.schema.alterTable('peers').addColumn('profile', 'text').execute();
  },
  '0023-traffic': async (db) => {
    await db.schema
      .createTable('peer_traffic')
      .addColumn('peer_id', 'integer', (column) => referring('peers')(column).primaryKey())
      .addColumn('history', 'text', required)
      .addColumn('updated_at', 'text', required)
      .execute();
    await db.schema.createIndex('peer_traffic_updated').on('peer_traffic').column('updated_at').execute();
  },
  '0024-deletions': async (db) => {
    const withNonces = db as Kysely<{ networks: { id: number; lasting_nonce: string | null } }>;
    await db.schema.alterTable('networks').addColumn('lasting_nonce', 'text').execute();
    for (const { id } of await withNonces.selectFrom('networks').select('id').execute()) {
      const lasting_nonce = makeNonce(randomBytes);
      await withNonces.updateTable('networks').set({ lasting_nonce }).where('id', '=', id).execute();
    }
    await db.schema
      .createTable('deleted_networks')
      .addColumn('network_id', 'integer', (column) => column.primaryKey())
      .addColumn('organization_id', 'integer', referring('organizations'))
      .addColumn('name', 'text', required)
      .addColumn('nonce', 'text', required)
      .addColumn('deleted_at', 'text', required)
      .execute();
    await table(db, 'deleted_peers')
      .addColumn('network_id', 'integer', (column) =>
        column.notNull().references('deleted_networks.network_id').onDelete('cascade'),
      )
      .addColumn('peer_id', 'integer', required)
      .addColumn('name', 'text', required)
      .addColumn('token_hash', 'text', (column) => column.notNull().unique())
      .addColumn('version', 'text')
      .addColumn('last_seen', 'text')
      .addColumn('outcome', 'text')
      .execute();
    await db.schema.createIndex('deleted_peers_network').on('deleted_peers').column('network_id').execute();
  },
  '0025-relays': async (db) => {
    await db.schema.alterTable('networks').addColumn('relay', 'integer').execute();
    for (const table of ['peers', 'peer_health']) {
      await db.schema
        .alterTable(table)
        .addColumn('follows_relay', 'integer', (column) => column.notNull().defaultTo(0))
        .execute();
    }
    await sql`create index peers_connectors on peers (network_id) where peer_type = 'connector'`.execute(db);
  },
  '0026-spread': async (db) => {
    for (const [table, column] of [
      ['networks', 'spread'],
      ['peers', 'masquerades'],
    ] as const) {
      await db.schema
        .alterTable(table)
        .addColumn(column, 'integer', (definition) => definition.notNull().defaultTo(0))
        .execute();
    }
  },
  '0027-rules': async (db) => {
    await db.schema
      .createTable('network_rules')
      .addColumn('network_id', 'integer', (column) => referring('networks')(column).primaryKey())
      .addColumn('mode', 'text', required)
      .addColumn('rules', 'text', required)
      .addColumn('tests', 'text', required)
      .addColumn('require_enforcement', 'integer', required)
      .addColumn('serial', 'integer', required)
      .addColumn('nonce', 'text', required)
      .addColumn('revision', 'integer', required)
      .addColumn('gone', 'text', required)
      .addColumn('confirm_until', 'text')
      .addColumn('earlier', 'text')
      .addColumn('restored_at', 'text')
      .execute();
    for (const table of ['peers', 'enrollment_keys']) {
      await db.schema.alterTable(table).addColumn('tags', 'text').execute();
    }
    for (const table of ['peers', 'peer_health']) {
      await db.schema
        .alterTable(table)
        .addColumn('enforces_rules', 'integer', (column) => column.notNull().defaultTo(0))
        .execute();
    }
  },
  '0028-paths': async (db) => {
    await db.schema
      .createTable('peer_endpoints')
      .addColumn('peer_id', 'integer', referring('peers'))
      .addColumn('source', 'integer', referring('peers'))
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('endpoint', 'text')
      .addColumn('stood', 'integer', (column) => column.notNull().defaultTo(0))
      .addColumn('own', 'text')
      .addColumn('address', 'text')
      .addColumn('at', 'text', required)
      .addPrimaryKeyConstraint('peer_endpoints_key', ['peer_id', 'source'])
      .execute();
    await db.schema
      .createTable('peer_pairs')
      .addColumn('a', 'integer', referring('peers'))
      .addColumn('b', 'integer', referring('peers'))
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('state', 'text', required)
      .addColumn('attempt', 'integer', required)
      .addColumn('tries', 'integer', required)
      .addColumn('data', 'text', required)
      .addColumn('started_at', 'text', required)
      .addColumn('at', 'text', required)
      .addColumn('next_at', 'text', required)
      .addPrimaryKeyConstraint('peer_pairs_key', ['a', 'b'])
      .execute();
    await table(db, 'path_starts')
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('address', 'text', required)
      .addColumn('starts', 'integer', required)
      .addColumn('at', 'text', required)
      .execute();
    for (const [of, column] of [
      ['peer_endpoints', 'source'],
      ['peer_endpoints', 'network_id'],
      ['peer_pairs', 'b'],
      ['peer_pairs', 'network_id'],
      ['path_starts', 'network_id'],
    ] as const)
      await db.schema.createIndex(`${of}_${column}`).on(of).column(column).execute();
  },
  '0029-route-dns': async (db) => {
    await db.schema
      .alterTable('networks')
      .addColumn('route_dns', 'text', (column) => column.notNull().defaultTo('[]'))
      .execute();
  },
  '0030-sessions': async (db) => {
    await db.schema.alterTable('sessions').addColumn('last_used_at', 'text').execute();
    await db.schema
      .createTable('known_prefixes')
      .addColumn('user_id', 'integer', referring('users'))
      .addColumn('prefix', 'text', required)
      .addColumn('last_used_at', 'text', required)
      .addPrimaryKeyConstraint('known_prefixes_key', ['user_id', 'prefix'])
      .execute();
  },
  '0031-audit-chain': async (db) => {
    await db.schema.alterTable('audit_entries').addColumn('chain_seq', 'integer').execute();
    await db.schema.alterTable('audit_entries').addColumn('chain_hash', 'text').execute();
    await sql`create unique index audit_entries_chain on audit_entries (organization_id, chain_seq)`.execute(db);
    await sql`create index audit_entries_unchained on audit_entries (organization_id) where chain_seq is null`.execute(
      db,
    );
    const create = (name: string) =>
      db.schema
        .createTable(name)
        .addColumn('organization_id', 'integer', referring('organizations'))
        .addColumn('seq', 'integer', required);
    await create('audit_chains')
      .addColumn('hash', 'text', required)
      .addPrimaryKeyConstraint('audit_chains_key', ['organization_id'])
      .execute();
    await create('audit_pruned')
      .addColumn('digest', 'text', required)
      .addColumn('hash', 'text', required)
      .addPrimaryKeyConstraint('audit_pruned_key', ['organization_id', 'seq'])
      .execute();
    await create('audit_positions')
      .addColumn('receiver', 'text', required)
      .addPrimaryKeyConstraint('audit_positions_key', ['receiver', 'organization_id'])
      .execute();
    await db.schema
      .createTable('audit_receivers')
      .addColumn('name', 'text', (column) => column.notNull().primaryKey())
      .addColumn('holder', 'text', required)
      .addColumn('held_until', 'text', required)
      .execute();
  },
  '0032-former-labels': async (db) => {
    await table(db, 'former_labels')
      .addColumn('network_id', 'integer', referring('networks'))
      .addColumn('peer_id', 'integer', referring('peers'))
      .addColumn('label', 'text', required)
      .addUniqueConstraint('former_labels_once', ['network_id', 'label'])
      .execute();
    await db.schema.createIndex('former_labels_peer').on('former_labels').column('peer_id').execute();
  },
  '0033-device-codes': async (db) => {
    await db.schema.alterTable('sessions').addColumn('proven_at', 'text').execute();
    await table(db, 'device_codes')
      .addColumn('device_code_hash', 'text', (column) => column.notNull().unique())
      .addColumn('user_code_hash', 'text', (column) => column.notNull().unique())
      .addColumn('name', 'text', required)
      .addColumn('address', 'text', required)
      .addColumn('origin', 'text', required)
      .addColumn('code_challenge', 'text')
      .addColumn('redirect_port', 'integer')
      .addColumn('created_at', 'text', required)
      .addColumn('expires_at', 'text', required)
      .addColumn('outcome', 'text')
      .addColumn('user_id', 'integer', (column) => column.references('users.id').onDelete('cascade'))
      .addColumn('session_id', 'integer')
      .addColumn('proven_at', 'text')
      .addColumn('redirect_code_hash', 'text')
      .execute();
    await db.schema.createIndex('device_codes_user').on('device_codes').column('user_id').execute();
  },
  '0034-oidc': async (db) => {
    await db.schema.alterTable('users').addColumn('reset_at', 'text').execute();
    await db.schema
      .createTable('identities')
      .addColumn('user_id', 'integer', (column) => referring('users')(column).primaryKey())
      .addColumn('issuer', 'text', required)
      .addColumn('subject', 'text', required)
      .addColumn('last_login_at', 'text')
      .addColumn('confirmed_at', 'text')
      .addUniqueConstraint('identities_subject', ['issuer', 'subject'])
      .execute();
    await db.schema
      .createTable('issuer_sessions')
      .addColumn('session_id', 'integer', (column) => referring('sessions')(column).primaryKey())
      .addColumn('issuer_session', 'text')
      .addColumn('refresh_token', 'text')
      .addColumn('next_at', 'text', required)
      .execute();
    await db.schema.createIndex('issuer_sessions_next').on('issuer_sessions').column('next_at').execute();
    await table(db, 'login_attempts')
      .addColumn('state_hash', 'text', (column) => column.notNull().unique())
      .addColumn('browser_hash', 'text', required)
      .addColumn('nonce', 'text', required)
      .addColumn('verifier', 'text', required)
      .addColumn('redirect_uri', 'text', required)
      .addColumn('address', 'text', required)
      .addColumn('created_at', 'text', required)
      .addColumn('user_id', 'integer', (column) => column.references('users.id').onDelete('cascade'))
      .addColumn('subject', 'text')
      .addColumn('refusal', 'text')
      .addColumn('issuer_session', 'text')
      .addColumn('refresh_token', 'text')
      .execute();
    for (const column of ['user_id', 'browser_hash'])
      await db.schema.createIndex(`login_attempts_${column}`).on('login_attempts').column(column).execute();
  },
  '0035-second-factors': async (db) => {
    await table(db, 'second_factors')
      .addColumn('user_id', 'integer', referring('users'))
      .addColumn('kind', 'text', required)
      .addColumn('name', 'text', required)
      .addColumn('data', 'text', required)
      .addColumn('created_at', 'text', required)
      .addColumn('last_used_at', 'text')
      .execute();
    await db.schema
      .createTable('recovery_codes')
      .addColumn('user_id', 'integer', referring('users'))
      .addColumn('code_hash', 'text', required)
      .addPrimaryKeyConstraint('recovery_codes_key', ['user_id', 'code_hash'])
      .execute();
    await table(db, 'factor_challenges')
      .addColumn('user_id', 'integer', referring('users'))
      .addColumn('session_id', 'integer')
      .addColumn('token_hash', 'text', (column) => column.notNull().unique())
      .addColumn('data', 'text', required)
      .addColumn('tries', 'integer', required)
      .addColumn('expires_at', 'text', required)
      .execute();
    for (const name of ['second_factors', 'factor_challenges'])
      await db.schema.createIndex(`${name}_user`).on(name).column('user_id').execute();
  },
  '0036-own-devices': async (db) => {
    await db.schema.alterTable('networks').addColumn('self_enroll', 'text').execute();
    await db.schema.alterTable('enrollment_keys').addColumn('user_id', 'integer').execute();
    await db.schema
      .alterTable('peers')
      .addColumn('user_id', 'integer', (column) => column.references('users.id').onDelete('set null'))
      .execute();
    await db.schema.alterTable('peers').addColumn('user_email', 'text').execute();
    await db.schema
      .alterTable('peers')
      .addColumn('reauth_hours', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    for (const table of ['peers', 'enrollment_keys'])
      await db.schema.createIndex(`${table}_user_id`).on(table).column('user_id').execute();
  },
  '0037-network-limits': async (db) => {
    for (const table of ['users', 'personal_tokens'])
      await db.schema.alterTable(table).addColumn('networks', 'text').execute();
  },
  '0038-approval': async (db) => {
    await db.schema
      .alterTable('networks')
      .addColumn('approval', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema.alterTable('peers').addColumn('awaiting_approval', 'text').execute();
    await sql`create index peers_awaiting on peers (awaiting_approval) where awaiting_approval is not null`.execute(db);
  },
};

/** The tables whose lists are read in pages, with the column of the owner of a list. */
const paged = [
  ['users', 'organization_id'],
  ['networks', 'organization_id'],
  ['enrollment_keys', 'network_id'],
  ['peers', 'network_id'],
] as const;

/** Columns that queries filter by or that a cascade follows, and that no constraint indexes. */
const indexed = [
  ['users', 'organization_id'],
  ['sessions', 'user_id'],
  ['networks', 'organization_id'],
  ['enrollment_keys', 'network_id'],
] as const;

/** Creates a table with an id that is never reused, so that an old id cannot refer to a new row. */
function table(db: Kysely<unknown>, name: string) {
  return db.schema.createTable(name).addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement());
}

function required(column: ColumnDefinitionBuilder): ColumnDefinitionBuilder {
  return column.notNull();
}

function referring(to: string): (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder {
  return (column) => column.notNull().references(`${to}.id`).onDelete('cascade');
}
