export interface SessionLimits {
  /** How long a session may be unused. */
  readonly idleMs: number;
  /** How long after its login a session ends in any case. */
  readonly maxMs: number;
}

const hourMs = 3600 * 1000;

export const usualSessionLimits: SessionLimits = { idleMs: 24 * hourMs, maxMs: 7 * 24 * hourMs };

/** The minimum time between writes of a session's last use: most requests must not write. */
const useGrainMs = 5 * 60 * 1000;

/** What a session must fulfil to be valid, as instants. */
export interface SessionBounds {
  /** It expires after this. */
  readonly now: string;
  /** It was opened after this. It may have been opened before a restart with shorter limits. */
  readonly openedAfter: string;
  /** Its last use is after this. */
  readonly usedAfter: string;
}

/** A last use may be later than the stored one by the grain, so a session ends that much later. */
export function boundSessions({ idleMs, maxMs }: SessionLimits, now: Date): SessionBounds {
  const before = (ms: number) => new Date(now.getTime() - ms).toISOString();
  return { now: before(0), openedAfter: before(maxMs), usedAfter: before(idleMs + useGrainMs) };
}

/** A use at `now` is stored unless one since this instant is. */
export function storesUseSince(now: Date): string {
  return new Date(now.getTime() - useGrainMs).toISOString();
}
