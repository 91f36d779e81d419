/** A request, as far as a malicious reply depends on it. */
export interface HostRequest {
  /** The public key of the host. */
  readonly self: string;
  /** Its bearer token, or its enrolment key. */
  readonly secret: string;
  /** Its If-None-Match; null where it has no map. */
  readonly revision: string | null;
}

/** What goes over the wire, byte for byte. */
export interface WireReply {
  readonly bytes: Iterable<Buffer>;
  /** What follows the last byte: the end of the connection, a reset, nothing at all, or a byte every 200 ms for ever. */
  readonly ending: 'end' | 'reset' | 'hang' | 'drip';
}

/** What a host must do with a malicious reply. */
export type Outcome = Denied | Skipped | Contained;

/** Nothing of it is applied: the host is as before, and the command ends with this exit code. */
export interface Denied {
  readonly refused: 1 | 4 | 5;
  /** What had been begun of the join is undone too. */
  readonly undone?: true;
}

/** The peer concerned is skipped and named; the next true map makes everything as before. */
export interface Skipped {
  readonly skipped: true;
  /** No other peer is left: the join is made, and ends with exit code 1. */
  readonly isLast?: true;
}

/** The valid part is applied: the malicious part is nowhere on the host, and the next true map makes everything as before. */
export interface Contained {
  /** Texts that must be nowhere in the tools' output for the interface, in the wg-quick file and in the hosts file. */
  readonly nowhere: readonly string[];
  /** A route that must be refused in the status. */
  readonly route?: string;
}

/** A reply that a correct control plane never sends. */
export interface MaliciousReply {
  readonly family: string;
  /** No two have the same. */
  readonly name: string;
  /** The kind of request. */
  readonly to: 'map' | 'enrolment';
  readonly outcome: Outcome;
  /** The command ends only when every attempt has failed: it takes seconds. */
  readonly slow?: true;
  make(request: HostRequest): WireReply;
}

/** A malicious reply without its family. */
export type Row = Omit<MaliciousReply, 'family'>;

export const refused = { refused: 1 } as const;
export const undone = { refused: 1, undone: true } as const;
export const skipped = { skipped: true } as const;
export const allSkipped = { skipped: true, isLast: true } as const;
export const denied = { refused: 4 } as const;
export const unreachable = { refused: 5 } as const;

/** The replies of a family. */
export function family(name: string, rows: readonly Row[]): MaliciousReply[] {
  return rows.map((row) => ({ family: name, ...row, name: `${name}: ${row.name}` }));
}

/** A text for the name of a reply: short, and without control characters. */
export function named(text: unknown, most = 60): string {
  const whole = (JSON.stringify(text) ?? String(text)).replace(/[^\x20-\x7e]/gu, (each) => `\\u{${codeOf(each)}}`);
  return whole.length > most ? `${whole.slice(0, most - 10)}… (${whole.length})` : whole;
}

function codeOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16);
}
