import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import type { LanRoutes } from '../core/health/lan-routes.ts';
import type { Reachability } from '../core/health/report/compose-report.ts';
import type { ServiceClock } from '../core/map/service-time.ts';
import type { SyncRefusal } from '../core/map/sync-refusal.ts';
import { type DnsFailure, dnsFailures } from '../core/names/split-dns.ts';
import { type Address, type Prefix, parseAddress, restorePrefix } from '../core/net/cidr.ts';
import type { PathRecords } from '../core/paths/path-record.ts';
import { replaceFile, setTime } from './files/atomic-file.ts';
import { instant, parseAs } from './files/file-schema.ts';
import { withRegular } from './files/regular-file.ts';
import { pathRecords } from './path-records.ts';

/** How the daemon receives newer maps of a network, and the result of the last attempt. */
export interface Sync {
  readonly mode: 'push' | 'poll';
  /** ISO 8601. Null before the first success. */
  readonly lastSuccess: string | null;
  readonly error: string | null;
  /** Why the service refuses the network to this host. Lasts until the service sends a map. */
  readonly refused: SyncRefusal | null;
  /** The message of the refusal. `error` may be from a later failure. */
  readonly refusal?: string | undefined;
  /** The address at which the last reply of the service arrived. */
  readonly reached?: Address | undefined;
  /** ISO 8601, by the last reply: since when another host has this identity; absent if none has. */
  readonly clonedSince?: string | undefined;
  /** True if the service replied to the last long polls immediately, without a change. */
  readonly repliesEarly?: true | undefined;
  /** True if a gateway rejects delta requests (A-IM). The host then reads whole maps. */
  readonly refusesDeltas?: true | undefined;
  readonly clock?: ServiceClock | undefined;
}

/** Failed requests of the daemon for the map. */
export interface DaemonFailure {
  readonly error: string;
  /** ISO 8601. The time of the first failure. */
  readonly since: string;
  /** ISO 8601. The last success of this daemon before them. Null if it had none. */
  readonly lastSuccess: string | null;
}

/** For later passes and `cpn status`. Lost at a reboot: no note is the only copy of its data. */
export interface Notes {
  readonly sync: Sync;
  /** The daemon's failures since its last success, or null. Commands do not change it. */
  readonly daemonFailure: DaemonFailure | null;
  /**
   * A map that would empty the tunnel, or a notice of deletion, that awaits a second reply which
   * confirms it. `since` is when it arrived, in seconds since boot.
   */
  readonly held: { readonly since: number; readonly isDeletion?: true | undefined } | null;
  /** Peers that are silent despite a fresh handshake, by key, with the bytes received by then. */
  readonly silent: Readonly<Record<string, number>>;
  /** Problems to report to the operator, such as recurring drift. */
  readonly troubles: readonly string[];
  /** The served routes of this connector behind which no probe target replies. */
  readonly dead: readonly Prefix[];
  /** The failures of DNS servers behind routes, by domain. */
  readonly dnsFailures: Readonly<Record<string, DnsFailure>>;
  /** The address at which another program holds the port of the daemon's name server, or null. */
  readonly namesTaken: Address | null;
  /** The routes of this connector to the LANs that it serves. Null before the first pass. */
  readonly ways: LanRoutes | null;
  /** The error of packet rules that fail to load. Null if they load, or if there are none. */
  readonly unloaded: string | null;
  /** True if foreign packet rules dropped UDP to the listen port in the last observation. */
  readonly inboundDropped: boolean;
  /** The last results for probe targets that are names or could not be probed. */
  readonly probed: Readonly<Record<string, Probed>>;
  /** How many hosts reach this host, from the service's last reply to a report. Null if unknown. */
  readonly reachability: Reachability | null;
  /** Peers whose packets alternate between two endpoints: the endpoints, by public key. */
  readonly alternating: Readonly<Record<string, readonly string[]>>;
  /** The latest attempts and switches of direct paths, by peer. */
  readonly paths: PathRecords;
}

/** Facts of a probe target other than reachability. */
export interface Probed {
  /** Null if the name has no address. */
  readonly address: Address | null;
  /** The reason why it could not be probed. Null if it was probed. */
  readonly trouble: string | null;
}

export const noNotes: Notes = {
  sync: { mode: 'poll', lastSuccess: null, error: null, refused: null },
  daemonFailure: null,
  held: null,
  silent: {},
  troubles: [],
  dead: [],
  dnsFailures: {},
  namesTaken: null,
  ways: null,
  unloaded: null,
  inboundDropped: false,
  probed: {},
  reachability: null,
  alternating: {},
  paths: {},
};

const address = v.pipe(v.string(), v.transform(parseAddress));
const prefix = v.pipe(
  v.string(),
  v.transform((text) => restorePrefix(text)),
);
const dnsFailure = v.picklist(dnsFailures);
const lanRoute = v.object({ isOwn: v.boolean(), links: v.array(v.string()), gone: v.nullable(v.string()) });
const probed = v.object({ address: v.nullable(address), trouble: v.nullable(v.string()) });

const schema = v.object({
  sync: v.object({
    mode: v.picklist(['push', 'poll']),
    /** Absent if it equals the modification time of the file. */
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
  dnsFailures: v.optional(v.record(v.string(), dnsFailure), () => ({})),
  namesTaken: v.optional(v.nullable(address), null),
  ways: v.optional(v.nullable(v.record(v.string(), lanRoute)), null),
  unloaded: v.optional(v.nullable(v.string()), null),
  inboundDropped: v.optional(v.boolean(), false),
  probed: v.optional(v.record(v.string(), probed), () => ({})),
  reachability: v.optional(v.nullable(v.object({ reachableBy: v.number(), witnesses: v.number() })), null),
  alternating: v.optional(v.record(v.string(), v.array(v.string())), () => ({})),
  paths: pathRecords,
});

/**
 * Omits the time of the last success if the file's modification time can represent it: a pass
 * without changes writes nothing. The same notes always give the same text.
 */
export function formatNotes({ sync, silent, probed, ways, reachability, alternating, paths, ...plain }: Notes): string {
  const { lastSuccess, ...others } = sync;
  const kept = isFileTime(sync) ? others : sync;
  const { daemonFailure, held, troubles, dead, dnsFailures, namesTaken, unloaded, inboundDropped } = plain;
  const lists = { silent: sortKeys(silent), troubles, dead, ...(ways !== null && { ways: sortKeys(ways) }) };
  const text = {
    sync: kept,
    ...(daemonFailure && { daemonFailure }),
    held,
    ...lists,
    ...(Object.keys(dnsFailures).length > 0 && { dnsFailures }),
    ...(namesTaken !== null && { namesTaken }),
    unloaded,
    inboundDropped,
    probed: sortKeys(probed),
    ...(reachability && { reachability }),
    ...(Object.keys(alternating).length > 0 && { alternating: sortKeys(alternating) }),
    ...(Object.keys(paths).length > 0 && { paths: sortKeys(paths) }),
  };
  return `${JSON.stringify(text)}\n`;
}

/** Parses the output of {@link formatNotes}. Throws for any other text. */
export function parseNotes(text: string, modified: Date): Notes {
  const notes = parseAs(schema, JSON.parse(text));
  const { lastSuccess = modified.toISOString() } = notes.sync;
  return { ...notes, sync: { ...notes.sync, lastSuccess } };
}

/** True if the file's modification time represents the last success. */
function isFileTime({ lastSuccess, error }: Sync): boolean {
  return lastSuccess !== null && error === null;
}

function sortKeys(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Reads the notes of a file. Empty if it is missing, damaged or unreadable. */
export async function readNotesFile(path: string): Promise<Notes> {
  try {
    const { text, modified } = await readTimed(path);
    return parseNotes(text, modified);
  } catch {
    return noNotes;
  }
}

/**
 * Writes notes to a file if they changed. If only the time of the last success changed, sets only
 * the modification time. Notes need not survive a power cut.
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
