import * as z from 'zod';

/** How a network learns of a newer map, and how the last try went. */
export interface Sync {
  readonly mode: 'push' | 'poll';
  /** ISO 8601; null when there was none yet. */
  readonly lastSuccess: string | null;
  readonly error: string | null;
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
}

export const noNotes: Notes = {
  sync: { mode: 'poll', lastSuccess: null, error: null },
  held: null,
  silent: {},
  troubles: [],
};

const schema = z.object({
  sync: z.object({
    mode: z.enum(['push', 'poll']),
    /** Left out where it is the file's own time. */
    lastSuccess: z.iso.datetime().nullable().optional(),
    error: z.string().nullable(),
  }),
  held: z.object({ since: z.number() }).nullable(),
  silent: z.record(z.string(), z.number()),
  troubles: z.array(z.string()),
});

/**
 * The notes as the text of their file. The time of the last success is left out where it can be the file's own, so that a
 * pass that only proves that all is well writes nothing. The same notes always give the same text.
 */
export function formatNotes({ sync, held, silent, troubles }: Notes): string {
  const { mode, lastSuccess, error } = sync;
  const kept = isFileTime(sync) ? { mode, error } : { mode, lastSuccess, error };
  return `${JSON.stringify({ sync: kept, held, silent: Object.fromEntries(Object.entries(silent).sort()), troubles })}\n`;
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
