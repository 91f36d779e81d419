import type { Selectable } from 'kysely';
import type { ChangedMapRules, MapRules } from '../../contract/rules.ts';
import type { RuleSet } from '../domain/rules/rule-set.ts';
import type { Revision } from './changes.ts';
import { requireVersion } from './database.ts';
import type { Db, Tables } from './tables.ts';

export interface StoredRules extends RuleSet {
  /** The number of the last change. `revision` names it like a revision of the network. */
  readonly change: Revision;
  /** The last names of removed peers that selectors name, by id. */
  readonly gone: Readonly<Record<string, string>>;
  readonly confirmUntil: string | null;
  /** The rules that return unless these are confirmed. */
  readonly earlier: RuleSet | null;
  readonly restoredAt: string | null;
}

/** The rules of a network whose rules were never set. */
const noRules: StoredRules = {
  ...{ mode: 'open', rules: [], tests: [], require_enforcement: false },
  ...{ change: { revision: 0, nonce: 'none' }, gone: {}, confirmUntil: null, earlier: null, restoredAt: null },
};

export async function readRules(db: Db, network: number): Promise<StoredRules> {
  const query = db.selectFrom('network_rules').selectAll().where('network_id', '=', network);
  const row = await query.executeTakeFirst();
  return row === undefined ? noRules : toRules(row);
}

/** Comes after the revision of the network in which the map gets the rules. */
export async function saveRules(
  db: Db,
  network: number,
  revision: number,
  { change, rules, tests, gone, earlier, ...fields }: StoredRules,
): Promise<void> {
  const columns = {
    mode: fields.mode,
    rules: JSON.stringify(rules),
    tests: JSON.stringify(tests),
    require_enforcement: fields.require_enforcement ? 1 : 0,
    serial: change.revision,
    nonce: change.nonce,
    revision,
    gone: JSON.stringify(gone),
    confirm_until: fields.confirmUntil,
    earlier: earlier && JSON.stringify(earlier),
    restored_at: fields.restoredAt,
  };
  await db
    .insertInto('network_rules')
    .values({ network_id: network, ...columns })
    .onConflict((conflict) => conflict.column('network_id').doUpdateSet(columns))
    .execute();
  await requireRulesVersion(db);
}

/** The migration with which a version has rules. */
const rulesMigration = '0027-rules';

/**
 * Lets no version without rules start on the database while a network is closed: to hosts, its maps
 * would be those of open networks.
 */
async function requireRulesVersion(db: Db): Promise<void> {
  const closed = db.selectFrom('network_rules').select('network_id').where('mode', '=', 'closed').limit(1);
  await requireVersion(db, rulesMigration, (await closed.executeTakeFirst()) !== undefined);
}

/** Sets when the rules must be confirmed. Null confirms them, and forgets the earlier ones. */
export async function saveConfirmation(db: Db, network: number, until: string | null): Promise<void> {
  await db
    .updateTable('network_rules')
    .set({ confirm_until: until, ...(until === null && { earlier: null }) })
    .where('network_id', '=', network)
    .execute();
}

/** Keeps the name of a removed peer if rules name it. */
export async function keepGoneName(db: Db, network: number, { id, name }: { id: number; name: string }): Promise<void> {
  const named = `%"peer:${id}"%`;
  const row = await db
    .selectFrom('network_rules')
    .select('gone')
    .where('network_id', '=', network)
    .where((eb) =>
      eb.or([eb('rules', 'like', named), eb('tests', 'like', named), eb('earlier', 'like', `%peer:${id}%`)]),
    )
    .executeTakeFirst();
  if (row === undefined) return;
  const gone = JSON.stringify({ ...JSON.parse(row.gone), [id]: name });
  await db.updateTable('network_rules').set({ gone }).where('network_id', '=', network).execute();
}

export async function readMode(db: Db, network: number): Promise<StoredRules['mode']> {
  const query = db.selectFrom('network_rules').select('mode').where('network_id', '=', network);
  return (await query.executeTakeFirst())?.mode ?? 'open';
}

/** The rules in the map of a network; undefined if it is open. */
export async function readMapRules(db: Db, network: number): Promise<MapRules | undefined> {
  const query = db.selectFrom('network_rules').where('network_id', '=', network);
  const row = await query.select(['mode', 'require_enforcement', 'rules']).executeTakeFirst();
  return row === undefined || row.mode === 'open' ? undefined : { ...modeOf(row), rules: JSON.parse(row.rules) };
}

/** Like {@link readMapRules}, but without the list if the revision `since` has it already. */
export async function readChangedMapRules(
  db: Db,
  network: number,
  since: Revision,
): Promise<ChangedMapRules | undefined> {
  const query = db.selectFrom('network_rules').where('network_id', '=', network);
  const row = await query.select(['mode', 'require_enforcement', 'revision']).executeTakeFirst();
  if (row === undefined || row.mode === 'open') return undefined;
  return row.revision <= since.revision ? modeOf(row) : readMapRules(db, network);
}

function modeOf({ require_enforcement }: Pick<Tables['network_rules'], 'require_enforcement'>) {
  return { mode: 'closed' as const, ...(require_enforcement === 1 && { require_enforcement: true as const }) };
}

/** Lists the networks whose earlier rules are due to return. */
export async function listUnconfirmed(db: Db, now: string): Promise<number[]> {
  const rows = await db.selectFrom('network_rules').select('network_id').where('confirm_until', '<=', now).execute();
  return rows.map(({ network_id }) => network_id);
}

/** Returns when the next earlier rules return; null for none. */
export async function findNextReturn(db: Db): Promise<string | null> {
  const row = await db
    .selectFrom('network_rules')
    .select(({ fn }) => fn.min('confirm_until').as('next'))
    .executeTakeFirst();
  return row?.next ?? null;
}

function toRules(row: Selectable<Tables['network_rules']>): StoredRules {
  return {
    mode: row.mode,
    rules: JSON.parse(row.rules),
    tests: JSON.parse(row.tests),
    require_enforcement: row.require_enforcement === 1,
    change: { revision: row.serial, nonce: row.nonce },
    gone: JSON.parse(row.gone),
    confirmUntil: row.confirm_until,
    earlier: row.earlier === null ? null : JSON.parse(row.earlier),
    restoredAt: row.restored_at,
  };
}
