import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import type { Reachability } from '../core/health/compose-report.ts';
import type { LanRoutes } from '../core/health/lan-routes.ts';
import type { ServiceClock } from '../core/map/service-time.ts';
import type { SyncRefusal } from '../core/map/sync-refusal.ts';
import { type Address, type Prefix, parseAddress, restorePrefix } from '../core/net/cidr.ts';
import { replaceFile, setTime } from './files/atomic-file.ts';
import { instant, parseAs } from './files/file-schema.ts';
import { withRegular } from './files/regular-file.ts';

/** How the daemon receives newer maps of a network, and the result of the last attempt. */
export interface Sync {
  readonly mode: 'push' | 'poll';
  /** ISO 8601; null when there was none yet. */
  readonly lastSuccess: string | null;
  readonly error: string | null;
  /** Why the service refuses this host its network; a refusal stands until the service answers with a map. */
  readonly refused: SyncRefusal | null;
  /** Its message when it refused; `error` may be a later failure. */
  readonly refusal?: string | undefined;
  /** The address at which the service answered last. */
  readonly reached?: Address | undefined;
  /** ISO 8601: since when another host has the identity of this one, by the last answer; absent where none has. */
  readonly clonedSince?: string | undefined;
  /** The last requests that were to wait were answered immediately, without a change. */
  readonly repliesEarly?: true | undefined;
  /** A gateway refuses changes alone (A-IM), and the host reads whole maps. */
  readonly refusesDeltas?: true | undefined;
  /** The clock of the service. */
  readonly clock?: ServiceClock | undefined;
}

/** Failed requests of the daemon for the map. */
export interface DaemonFailure {
  readonly error: string;
  /** ISO 8601: when the first of them failed. */
  readonly since: string;
  /** ISO 8601: the last success of this daemon before them; null for none since it started. */
  readonly lastSuccess: string | null;
}

/** What passes leave to later passes and to `cpn status`. Gone with a reboot; none of it is the only copy. */
export interface Notes {
  readonly sync: Sync;
  /** How the requests of the daemon fail since its last success; null where they do not. Commands leave it as it is. */
  readonly daemonFailure: DaemonFailure | null;
  /**
   * An answer of the control plane that would empty the tunnel, or that states its deletion, and awaits a second one: when it came, in
   * seconds since boot.
   */
  readonly held: { readonly since: number; readonly isDeletion?: true | undefined } | null;
  /** Peers that we send to and that do not answer, though their handshake is fresh: bytes received when that was noticed. */
  readonly silent: Readonly<Record<string, number>>;
  /** Problems to report to the operator, such as recurring drift. */
  readonly troubles: readonly string[];
  /** The routes that this connector serves and behind which no probe target answers. */
  readonly dead: readonly Prefix[];
  /** How this connector reaches the LANs behind its routes; null before the first pass. */
  readonly ways: LanRoutes | null;
  /** Why the packet rules do not load; null where they do, or there are none. */
  readonly unloaded: string | null;
  /** Whether packet rules of another program were last seen to drop UDP to the listen port. */
  readonly inboundDropped: boolean;
  /** The last results for probe targets that are names or could not be probed. */
  readonly probed: Readonly<Record<string, Probed>>;
  /** How other hosts reach this one, as the service last replied to a report; null where that is not known. */
  readonly reachability: Reachability | null;
  /** Peers whose packets come from two endpoints in turn, with these, by their public keys. */
  readonly alternating: Readonly<Record<string, readonly string[]>>;
}

/** Facts of a probe target other than whether it answers. */
export interface Probed {
  /** Null where the name has none. */
  readonly address: Address | null;
  /** Why it could not be probed; null where it could. */
  readonly trouble: string | null;
}

export const noNotes: Notes = {
  sync: { mode: 'poll', lastSuccess: null, error: null, refused: null },
  daemonFailure: null,
  held: null,
  silent: {},
  troubles: [],
  dead: [],
  ways: null,
  unloaded: null,
  inboundDropped: false,
  probed: {},
  reachability: null,
  alternating: {},
};

const address = v.pipe(v.string(), v.transform(parseAddress));
const prefix = v.pipe(
  v.string(),
  v.transform((text) => restorePrefix(text)),
);
const lanRoute = v.object({ isOwn: v.boolean(), links: v.array(v.string()), gone: v.nullable(v.string()) });
const probed = v.object({ address: v.nullable(address), trouble: v.nullable(v.string()) });

const schema = v.object({
  sync: v.object({
    mode: v.picklist(['push', 'poll']),
    /** Left out where it is the file's own time. */
    lastSuccess: v.optional(v.nullable(instant)),
    error: v.nullable(v.string()),
    refused: v.optional(v.nullable(v.picklist(['token', 'forbidden', 'gone'])), null),
    refusal: v.optional(v.string()),
    reached: v.optional(address),
    clonedSince: v.optional(instant),
    repliesEarly: v.optional(v.literal(true)),
    refusesDeltas: v.optional(v.literal(true)),
    clock: v.optional(v.object({ service: v.number(), uptime: v.number() })),
  }),
  daemonFailure: v.optional(
    v.nullable(v.object({ error: v.string(), since: instant, lastSuccess: v.nullable(instant) })),
    null,
  ),
  held: v.nullable(v.object({ since: v.number(), isDeletion: v.optional(v.literal(true)) })),
  silent: v.record(v.string(), v.number()),
  troubles: v.array(v.string()),
  dead: v.optional(v.array(prefix), () => []),
  ways: v.optional(v.nullable(v.record(v.string(), lanRoute)), null),
  unloaded: v.optional(v.nullable(v.string()), null),
  inboundDropped: v.optional(v.boolean(), false),
  probed: v.optional(v.record(v.string(), probed), () => ({})),
  reachability: v.optional(v.nullable(v.object({ reachableBy: v.number(), witnesses: v.number() })), null),
  alternating: v.optional(v.record(v.string(), v.array(v.string())), () => ({})),
});

/**
 * The notes as the text of their file. The time of the last success is left out where it can be the file's own, so that a
 * pass without news writes nothing. The same notes always give the same text.
 */
export function formatNotes({ sync, silent, probed, ways, reachability, alternating, ...plain }: Notes): string {
  const { lastSuccess, ...others } = sync;
  const kept = isFileTime(sync) ? others : sync;
  const { daemonFailure, held, troubles, dead, unloaded, inboundDropped } = plain;
  const lists = { silent: sortKeys(silent), troubles, dead, ...(ways !== null && { ways: sortKeys(ways) }) };
  const text = {
    sync: kept,
    ...(daemonFailure && { daemonFailure }),
    held,
    ...lists,
    unloaded,
    inboundDropped,
    probed: sortKeys(probed),
    ...(reachability && { reachability }),
    ...(Object.keys(alternating).length > 0 && { alternating: sortKeys(alternating) }),
  };
  return `${JSON.stringify(text)}\n`;
}

/** Parses what {@link formatNotes} wrote; throws for anything else. */
export function parseNotes(text: string, modified: Date): Notes {
  const notes = parseAs(schema, JSON.parse(text));
  const { lastSuccess = modified.toISOString() } = notes.sync;
  return { ...notes, sync: { ...notes.sync, lastSuccess } };
}

/** Whether the file's own time stands for the last success. */
function isFileTime({ lastSuccess, error }: Sync): boolean {
  return lastSuccess !== null && error === null;
}

function sortKeys(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Reads the notes in a file; none when it is missing, damaged or not readable. */
export async function readNotesFile(path: string): Promise<Notes> {
  try {
    const { text, modified } = await readTimed(path);
    return parseNotes(text, modified);
  } catch {
    return noNotes;
  }
}

/**
 * Writes notes to a file where they differ; where only the time of the last success differs, only the file's own time. They need
 * not survive a power cut.
 *
 * @throws DiskFailed
 */
export async function writeNotesFile(path: string, notes: Notes): Promise<void> {
  const text = formatNotes(notes);
  const there = await readTimed(path).catch(() => null);
  if (there === null && text === formatNotes(noNotes)) return;
  const modified = isFileTime(notes.sync) ? new Date(notes.sync.lastSuccess ?? 0) : null;
  if (there?.text !== text) return replaceFile(path, text, { durable: false, modified });
  if (modified !== null && modified.getTime() !== there.modified.getTime()) await setTime(path, modified);
}

async function readTimed(path: string): Promise<{ text: string; modified: Date }> {
  return withRegular(path, (file, { mtime }) => ({ text: readFileSync(file, 'utf8'), modified: mtime }));
}
