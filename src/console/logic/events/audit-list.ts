import type { AuditEntry } from '../../../contract/audit.ts';

/**
 * A gapless part of the audit log, newest first. `isComplete` is true if no older entries exist.
 */
export interface AuditList {
  readonly entries: readonly AuditEntry[];
  readonly isComplete: boolean;
}

type ReadEntries = (limit: number, before?: number) => Promise<readonly AuditEntry[]>;

/** Entries per request that fills the page. */
const pageSize = 200;
/** Entries per request that runs every few seconds. */
const fewEntries = 20;

/** Reads the newest entries back to the first of the list, or a page if there are more. */
export async function readNewer({ entries }: AuditList, read: ReadEntries): Promise<readonly AuditEntry[]> {
  const [known] = entries;
  if (known === undefined) return read(pageSize);
  const few = await read(fewEntries);
  return few.some(({ id }) => id === known.id) ? few : read(pageSize);
}

/** The list starts again if entries in between are missing, or after a restore of the database. */
export function addNewer(list: AuditList, came: readonly AuditEntry[]): AuditList {
  const at = came.findIndex(({ id }) => id === list.entries[0]?.id);
  if (at === -1) return { entries: came, isComplete: came.length < pageSize };
  return at === 0 ? list : { ...list, entries: [...came.slice(0, at), ...list.entries] };
}

export const readOlder = ({ entries }: AuditList, read: ReadEntries): Promise<readonly AuditEntry[]> =>
  read(pageSize, entries.at(-1)?.id);

/** Adds entries that {@link readOlder} read after `asked`, unless the list started again since. */
export function addOlder(list: AuditList, asked: AuditList, came: readonly AuditEntry[]): AuditList {
  if (list.entries.at(-1)?.id !== asked.entries.at(-1)?.id) return list;
  return { entries: [...list.entries, ...came], isComplete: came.length < pageSize };
}
