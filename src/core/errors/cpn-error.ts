import { printable } from './printable.ts';

/** Facts of a failure beyond its message. Facts are logged, so they contain no secret. */
export type Facts = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

interface Details {
  readonly facts?: Facts;
  readonly cause?: unknown;
  /** True if a retry may succeed without an action by a user. */
  readonly isRetryable?: boolean;
}

/**
 * An expected failure. The message has three parts: what failed with which value, the rule, the
 * hint. Exit codes are in cli/exit-code, HTTP statuses in control-plane/error-reply.
 */
export abstract class CpnError extends Error {
  abstract override readonly name: string;
  readonly facts: Facts;
  readonly isRetryable: boolean;

  constructor(message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.facts = details.facts ?? {};
    this.isRetryable = details.isRetryable ?? false;
  }
}

/** Returns an expected failure. Throws any other error. */
export function expectCpnError(error: unknown): CpnError {
  if (!(error instanceof CpnError)) throw error;
  return error;
}

/** Formats a value for a message: short, and without control characters. */
export function quote(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  const shown = printable(text);
  return JSON.stringify(shown.length > 80 ? `${shown.slice(0, 77)}...` : shown);
}
