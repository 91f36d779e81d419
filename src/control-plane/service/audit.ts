import { isDeepStrictEqual } from 'node:util';
import type { AuditEntry } from '../../contract/audit.ts';
import type { Caller } from '../domain/caller.ts';
import * as store from '../store/audit.ts';
import { mapPage, type Slice, type StoredPage } from '../store/page.ts';
import type { Db } from '../store/tables.ts';
import type { Context } from './context.ts';

/** Who does something, and from which address. */
export interface Author {
  /** Null where the organization is unknown. */
  readonly organizationId: number | null;
  readonly actor: AuditEntry['actor'];
  readonly address: string | null;
  readonly readTime: Context['readTime'];
}

/** The actor of what the control plane does by itself. */
export const system = { kind: 'system', id: null, name: null } as const;

/** What was done to what. No detail is ever a password, a token or a key that opens anything. */
export interface AuditedAction {
  readonly action: Action;
  readonly target: AuditEntry['target'];
  readonly details?: Readonly<Record<string, unknown>>;
}

type Action =
  | `network.${'create' | 'update' | 'delete'}`
  | `key.${'create' | 'revoke'}`
  | `peer.${'enroll' | 'replace' | 'update' | 'suspend' | 'resume' | 'expire' | 'delete'}`
  | `user.${'create' | 'update' | 'delete'}`
  | `password.${'change' | 'refused' | 'reset'}`
  | 'session.revoke'
  | `token.${'create' | 'revoke'}`
  | 'login'
  | 'login.refused'
  | 'logout';

/** Writes down what is done; in the transaction that does it, so that there is neither without the other. */
export async function record(db: Db, author: Author, { action, target, details = {} }: AuditedAction): Promise<void> {
  const entry = {
    organization_id: author.organizationId,
    at: (await author.readTime(db)).toISOString(),
    actor_kind: author.actor.kind,
    actor_id: author.actor.id,
    actor_name: author.actor.name,
    action,
    target_kind: target.kind,
    target_id: target.id,
    target_name: target.name,
    address: author.address,
    details: JSON.stringify(details),
  };
  // What a peer does but once is written in any case.
  if (author.actor.kind === 'peer' && action !== 'peer.delete') await recordOfPeer(db, entry, details);
  else await store.insertEntry(db, entry);
}

/** Entries that one peer may have in a day (UTC), without those of its keys. The last one records that more were left out. */
const mostOfPeer = 100;

/**
 * A connector whose LAN comes and goes withdraws its routes again and again: that is one entry, as long as it does nothing else. A
 * change of its public key is written in any case: other changes cannot hide it. {@link Context.peerChangeLimit} limits how many there are.
 */
async function recordOfPeer(
  db: Db,
  entry: store.NewEntry,
  details: NonNullable<AuditedAction['details']>,
): Promise<void> {
  if (details[keyField] !== undefined) return store.insertEntry(db, entry);
  const day = entry.at.slice(0, 'YYYY-MM-DD'.length);
  const last = await store.findLastOfActor(db, entry, day);
  const earlier = last && readWithdrawal(last.action, JSON.parse(last.details));
  if (last && earlier && readWithdrawal(entry.action, details)) {
    const merged = { ...details, times: (earlier.times ?? 1) + 1, last_at: entry.at };
    return store.replaceDetails(db, last.id, JSON.stringify(merged));
  }
  const count = await store.countEntriesOfActor(db, entry, day, keyField);
  if (count < mostOfPeer - 1) {
    await store.insertEntry(db, entry);
  } else if (count < mostOfPeer) {
    const left = { left_out: `more that this peer did on ${day}` };
    await store.insertEntry(db, { ...entry, details: JSON.stringify(left) });
  }
}

const keyField = 'public_key';

/** The details of an entry that is about what a connector has out of service, and about nothing else. */
function readWithdrawal(action: string, details: Readonly<Record<string, unknown>>): { times?: number } | null {
  const { network: _, withdrawn, times, last_at: __, ...others } = details;
  if (action !== 'peer.update' || withdrawn === undefined || Object.keys(others).length > 0) return null;
  return typeof times === 'number' ? { times } : {};
}

/** The fields of `after` that differ, with their new values. */
export function changedFields(before: object, after: object): Record<string, unknown> {
  const old = new Map(Object.entries(before));
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => !isDeepStrictEqual(old.get(name), value)));
}

/** What was done in the caller's organization, newest first. */
export async function readAudit(
  { db }: Context,
  caller: Caller,
  filter: store.AuditFilter,
  slice: Slice,
): Promise<StoredPage<AuditEntry>> {
  return mapPage(await store.listEntries(db, caller.organizationId, filter, slice), toAuditEntry);
}

function toAuditEntry(row: store.StoredEntry): AuditEntry {
  return {
    id: row.id,
    at: row.at,
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
    action: row.action,
    target: { kind: row.target_kind, id: row.target_id, name: row.target_name },
    address: row.address,
    details: JSON.parse(row.details),
  };
}
