import * as z from 'zod';
import { type Address, type Prefix, parseAddress, parsePrefix } from '../core/cidr.ts';
import type { SyncRefusal } from '../core/sync-refusal.ts';

/** How a network learns of a newer map, and how the last try went. */
export interface Sync {
  readonly mode: 'push' | 'poll';
  /** ISO 8601; null when there was none yet. */
  readonly lastSuccess: string | null;
  readonly error: string | null;
  /** Why the service refuses this host its network; a refusal stands until the service answers with a map. */
  readonly refused: SyncRefusal | null;
}

/** What passes tell each other and `cpn status`. Gone with a reboot, and nobody's only copy. */
export interface Notes {
  readonly sync: Sync;
  /** An answer of the control plane that would empty the tunnel, and awaits a second one: when it came, in seconds since boot. */
  readonly held: { readonly since: number } | null;
  /** Peers that we send to and that do not answer, though their handshake is fresh: bytes received when that was noticed. */
  readonly silent: Readonly<Record<string, number>>;
  /** What a person should know, such as drift that keeps coming back. */
  readonly troubles: readonly string[];
  /** The routes that this connector serves and behind which no probe target answers. */
  readonly dead: readonly Prefix[];
  /** Why the packet rules do not load; null where they do, or there are none. */
  readonly unloaded: string | null;
  /** Of the probe targets that are names or could not be asked: what the last rounds showed. */
  readonly probed: Readonly<Record<string, Probed>>;
}

/** What is to be known of a probe target beside whether it answers. */
export interface Probed {
  /** Null where the name has none. */
  readonly address: Address | null;
  /** Why it could not be asked; null where it could. */
  readonly trouble: string | null;
}

export const noNotes: Notes = {
  sync: { mode: 'poll', lastSuccess: null, error: null, refused: null },
  held: null,
  silent: {},
  troubles: [],
  dead: [],
  unloaded: null,
  probed: {},
};

const address = z.string().transform((text) => parseAddress(text));

const schema = z.object({
  sync: z.object({
    mode: z.enum(['push', 'poll']),
    /** Left out where it is the file's own time. */
    lastSuccess: z.iso.datetime().nullable().optional(),
    error: z.string().nullable(),
    refused: z.enum(['token', 'forbidden', 'gone']).nullable().default(null),
  }),
  held: z.object({ since: z.number() }).nullable(),
  silent: z.record(z.string(), z.number()),
  troubles: z.array(z.string()),
  dead: z.array(z.string().transform((text) => parsePrefix(text))).default([]),
  unloaded: z.string().nullable().default(null),
  probed: z.record(z.string(), z.object({ address: address.nullable(), trouble: z.string().nullable() })).default({}),
});

/**
 * The notes as the text of their file. The time of the last success is left out where it can be the file's own, so that a
 * pass that only proves that all is well writes nothing. The same notes always give the same text.
 */
export function formatNotes({ sync, held, silent, troubles, dead, unloaded, probed }: Notes): string {
  const { lastSuccess, ...others } = sync;
  const kept = isFileTime(sync) ? others : sync;
  const text = { sync: kept, held, silent: sortKeys(silent), troubles, dead, unloaded, probed: sortKeys(probed) };
  return `${JSON.stringify(text)}\n`;
}

/** Reads what {@link formatNotes} wrote; throws whatever is wrong with it. */
export function parseNotes(text: string, modified: Date): Notes {
  const notes = schema.parse(JSON.parse(text));
  const { lastSuccess = modified.toISOString() } = notes.sync;
  return { ...notes, sync: { ...notes.sync, lastSuccess } };
}

/** Whether the file's own time stands for the last success. */
export function isFileTime({ lastSuccess, error }: Sync): boolean {
  return lastSuccess !== null && error === null;
}

function sortKeys(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1)));
}
