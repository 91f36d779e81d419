/** What a failure knows beside its sentence; never a secret, because facts are logged. */
export type Facts = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

interface Details {
  readonly facts?: Facts;
  readonly cause?: unknown;
  /** True when the same attempt may succeed later with nothing changed by a person. */
  readonly retry?: boolean;
}

/**
 * The base of every failure this program foresees. The message is for a person: what was wrong, with which value, and
 * what to do next. Exit codes are given in cli/exit-code, HTTP statuses in control-plane/error-reply, nowhere else.
 */
export abstract class CpnError extends Error {
  abstract override readonly name: string;
  readonly facts: Facts;
  readonly retry: boolean;

  constructor(message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.facts = details.facts ?? {};
    this.retry = details.retry ?? false;
  }
}

/** A value as people read it in a message: short, and with nothing a terminal would obey. */
export function quote(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  const shown = printable(text);
  return JSON.stringify(shown.length > 80 ? `${shown.slice(0, 77)}...` : shown);
}

/** `text` without control, C1, bidirectional and zero-width characters: what came over the wire, made safe for a terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}');
}
