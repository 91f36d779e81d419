import { isDeepStrictEqual } from 'node:util';
import type { AuditAction, AuditEntry } from '../../contract/audit.ts';
import type { Caller } from '../domain/caller.ts';
import * as store from '../store/audit.ts';
import { mapPage, type Slice, type StoredPage } from '../store/page.ts';
import type { Db } from '../store/tables.ts';
import type { Context } from './context.ts';

export interface Author {
  /** Null if the organization is unknown. */
  readonly organizationId: number | null;
  readonly actor: AuditEntry['actor'];
  readonly address: string | null;
  readonly readTime: Context['readTime'];
}

/** The actor of actions that the control plane initiates. */
export const system = { kind: 'system', id: null, name: null } as const;

/** An action and its target. The details never contain a password, a token or a usable key. */
export interface AuditedAction {
  readonly action: AuditAction;
  readonly target: AuditEntry['target'];
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Must run in the action's transaction, so that both commit or neither. */
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
  // A peer can delete itself only once, so this entry needs no limit.
  if (author.actor.kind === 'peer' && action !== 'peer.delete') await recordOfPeer(db, entry, details);
  else await store.insertEntry(db, entry);
}

/**
 * A peer's entries per day (UTC) that withdraw or restore routes, and of the others, without key
 * changes. The last one of each records the omission.
 */
const mostOfPeer = 100;

/**
 * Limits a peer's entries. A LAN that comes and goes must not hide other changes, so withdrawals
 * count by themselves. A key change is always recorded: {@link Context.peerChangeLimit} limits it.
 */
async function recordOfPeer(
  db: Db,
  entry: store.NewEntry,
  details: NonNullable<AuditedAction['details']>,
): Promise<void> {
  if (details[keyField] !== undefined) return store.insertEntry(db, entry);
  const day = entry.at.slice(0, 'YYYY-MM-DD'.length);
  const isWithdrawal = details[withdrawalField] !== undefined;
  const fields = isWithdrawal ? { with: withdrawalField } : { without: [keyField, withdrawalField] };
  const count = await store.countEntriesOfActor(db, entry, day, fields);
  if (count >= mostOfPeer) return;
  if (count < mostOfPeer - 1) return store.insertEntry(db, entry);
  const omission = `more that this peer did on ${day}`;
  const left = isWithdrawal ? { [withdrawalField]: null, left_out: omission } : { left_out: omission };
  await store.insertEntry(db, { ...entry, details: JSON.stringify(left) });
}

const keyField = 'public_key';
const withdrawalField = 'withdrawn';

export function changedFields(before: object, after: object): Record<string, unknown> {
  const old = new Map(Object.entries(before));
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => !isDeepStrictEqual(old.get(name), value)));
}

/** The audit entries of the caller's organization, newest first. */
export async function readAudit(
  { db }: Context,
  caller: Caller,
  filter: store.AuditFilter,
  slice: Slice,
): Promise<StoredPage<AuditEntry>> {
  return mapPage(await store.listEntries(db, caller.organizationId, filter, slice), toAuditEntry);
}

export function toAuditEntry(row: store.StoredEntry): AuditEntry {
  return {
    id: row.id,
    at: row.at,
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name },
    action: row.action,
    target: { kind: row.target_kind, id: row.target_id, name: row.target_name },
    address: row.address,
    details: JSON.parse(row.details),
    chain: row.chain_seq === null || row.chain_hash === null ? null : { seq: row.chain_seq, hash: row.chain_hash },
  };
}
