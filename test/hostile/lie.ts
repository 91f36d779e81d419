/** What was asked, as far as a lie is made for whoever asked. */
export interface Question {
  /** The public key of the host that asks. */
  readonly self: string;
  /** Its bearer token, or its enrolment key. */
  readonly secret: string;
  /** Its If-None-Match; null where it knows no map. */
  readonly revision: string | null;
}

/** What goes over the wire, byte for byte. */
export interface Telling {
  readonly bytes: Iterable<Buffer>;
  /** What follows the last byte: the end of the connection, a reset, nothing at all, or a byte every 200 ms for ever. */
  readonly ending: 'end' | 'reset' | 'hang' | 'drip';
}

/** What becomes of a lie. */
export type Outcome = Denied | Skipped | Contained;

/** Not a word of it is taken: the host is as before, and the command ends with this exit code. */
export interface Denied {
  readonly refused: 1 | 4 | 5;
  /** What had been begun of the join is undone too. */
  readonly undone?: true;
}

/** The peer that it is about is skipped and named; the next true map makes everything as before. */
export interface Skipped {
  readonly skipped: true;
}

/** It is taken as far as it may be: what it was told for is nowhere on the host, and the next true map makes everything as before. */
export interface Contained {
  /** Texts that must be nowhere in what tools tell of the interface, in the wg-quick file and in the hosts file. */
  readonly nowhere: readonly string[];
  /** A route that the status must call refused. */
  readonly route?: string;
}

/** A reply that a control plane in its right mind would never give. */
export interface Lie {
  readonly family: string;
  /** No two have the same. */
  readonly name: string;
  /** What it is the answer to. */
  readonly to: 'map' | 'enrolment';
  readonly outcome: Outcome;
  /** Answered only when every attempt has failed: it takes seconds, and goes first. */
  readonly slow?: true;
  tell(question: Question): Telling;
}

/** A lie without what its family says of all. */
export type Row = Omit<Lie, 'family'>;

export const refused = { refused: 1 } as const;
export const undone = { refused: 1, undone: true } as const;
export const skipped = { skipped: true } as const;
export const denied = { refused: 4 } as const;
export const unreachable = { refused: 5 } as const;

/** The lies of a family. */
export function family(name: string, rows: readonly Row[]): Lie[] {
  return rows.map((row) => ({ family: name, ...row, name: `${name}: ${row.name}` }));
}

/** How a text shows in the name of a lie: short, and with nothing in it that a terminal would obey. */
export function named(text: unknown, most = 60): string {
  const whole = (JSON.stringify(text) ?? String(text)).replace(/[^\x20-\x7e]/gu, (each) => `\\u{${codeOf(each)}}`);
  return whole.length > most ? `${whole.slice(0, most - 10)}… (${whole.length})` : whole;
}

function codeOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16);
}
