import type { Secret } from '../../core/crypto/secret.ts';
import { BadReply, InvalidValue } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import type { Aliases } from '../aliases.ts';
import { sanitizeForMessage } from '../http/sanitize-for-message.ts';

/** A reply's origin, and the secrets that must not be shown. */
export interface Source {
  readonly url: string;
  readonly secrets: readonly Secret[];
  /** The remedy for an unusable value, if it is not the usual one. */
  readonly remedy?: string;
}

const usualRemedy = 'check that --api names the control plane, and that it speaks the contract of private networks';

/**
 * A value of a reply and its path. Each read returns a value of its type or throws BadReply. The
 * error names the field and, if it is missing, the properties that exist. It contains no value.
 */
export class Field {
  readonly value: unknown;
  readonly path: string;
  readonly #source: Source;

  constructor(value: unknown, path: string, source: Source) {
    this.value = value;
    this.path = path;
    this.#source = source;
  }

  /** The resource of a reply: its `data`, or without that envelope the whole body. */
  static ofReply(body: unknown, source: Source): Field {
    const enveloped = isRecord(body) && Object.hasOwn(body, 'data') && typeof body.data === 'object';
    return new Field(enveloped ? body.data : body, '', source);
  }

  /** Returns the result of `read`. `onWrong` gets the reason of a failure, without the path. */
  attempt<T>(read: (field: Field) => T, onWrong: (reason: string) => T): T {
    try {
      return read(this.as(''));
    } catch (error) {
      if (!(error instanceof BadReply)) throw error;
      return onWrong(String(error.facts.problem).replace(/^cannot be used: /, ''));
    }
  }

  /** Renames the field in messages. */
  as(path: string): Field {
    return new Field(this.value, path, this.#source);
  }

  withRemedy(remedy: string): Field {
    return new Field(this.value, this.path, { ...this.#source, remedy });
  }

  /** The first of these properties that is present and not null. */
  find(names: Aliases): Field | null {
    const record = this.#record();
    const name = names.find((one) => Object.hasOwn(record, one) && record[one] !== null);
    return name === undefined ? null : new Field(record[name], this.#below(name), this.#source);
  }

  /** Like {@link find}, for one that must be there. */
  need(names: Aliases): Field {
    const found = this.find(names);
    if (found) return found;
    const received = Object.keys(this.#record());
    const listed = received.slice(0, 20).map((name) => sanitizeForMessage(name, this.#source.secrets, 32));
    const more = received.length > listed.length ? ` and ${received.length - listed.length} more` : '';
    throw this.#bad(`lacks ${this.#below(names[0])} (it has: ${listed.join(', ') || 'nothing'}${more})`);
  }

  /** Reads a property; null if it is missing or unusable: it may mean something else elsewhere. */
  tryFind<T>(names: Aliases, read: (found: Field) => T): T | null {
    return this.attempt<T | null>(
      (at) => {
        const found = at.find(names);
        return found && read(found);
      },
      () => null,
    );
  }

  items(max: number): Field[] {
    if (!Array.isArray(this.value)) throw this.wrong('is not a list');
    if (this.value.length > max) throw this.wrong(`has more than ${max} entries`);
    return this.value.map((item, index) => new Field(item, `${this.path}[${index}]`, this.#source));
  }

  /** A string of at most `max` characters, counted in code points. */
  text(max: number): string {
    if (typeof this.value !== 'string') throw this.wrong('is not a string');
    // A code point has at most two units, so a longer value is not counted.
    if (this.value.length > 2 * max || [...this.value].length > max)
      throw this.wrong(`is longer than ${max} characters`);
    return this.value;
  }

  integer(): number {
    if (!Number.isSafeInteger(this.value) || (this.value as number) < 0) throw this.wrong('is not a whole number');
    return this.value as number;
  }

  /** Returns ISO 8601 in UTC, from a date, or from seconds or milliseconds since 1970. */
  instant(): string {
    const instant = readInstant(typeof this.value === 'number' ? this.value : this.text(64));
    if (instant === null) throw this.wrong('is not a timestamp');
    return instant;
  }

  oneOf<Word extends string>(words: readonly Word[]): Word {
    const word = words.find((each) => each === this.value);
    if (word === undefined) throw this.wrong(`must be one of ${words.join(', ')}`);
    return word;
  }

  boolean(): boolean {
    if (typeof this.value !== 'boolean') throw this.wrong('is neither true nor false');
    return this.value;
  }

  isRecord(): boolean {
    return isRecord(this.value);
  }

  /** An object with any properties. */
  record(): Readonly<Record<string, unknown>> {
    return this.#record();
  }

  /** A string for a parser of core. Its InvalidValue becomes a BadReply without the value. */
  parse<T>(parser: (text: string) => T): T {
    const text = this.text(maxParsed);
    try {
      return parser(text);
    } catch (error) {
      if (error instanceof InvalidValue) throw this.wrong(error.rule);
      throw error;
    }
  }

  wrong(rule: string): BadReply {
    return this.#bad(`cannot be used: ${this.path || 'its resource'} ${rule}`);
  }

  #record(): Record<string, unknown> {
    if (!isRecord(this.value)) throw this.wrong('is not an object');
    return this.value;
  }

  #below(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }

  #bad(problem: string): BadReply {
    return new BadReply(this.#source.url, problem, this.#source.remedy ?? usualRemedy);
  }
}

/** Exceeds any address, key or endpoint. */
const maxParsed = 300;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A number, or a word of at most 255 characters: it is only compared, shown and sent back. */
export function decodeId(field: Field): Id {
  const { value } = field;
  // JSON.parse rounds an unsafe whole number to another one.
  const isExact = Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
  if (typeof value === 'number' && isExact) return value;
  // It becomes a path segment, in which dots would climb.
  if (typeof value === 'string' && /^(?!\.{1,2}$)[\x21-\x7e]{1,255}$/.test(value)) return value;
  throw field.wrong('is neither a number nor a word of at most 255 characters');
}

/** Compares ids, which a service may write in either form. */
export function sameId(one: Id, other: Id | null): boolean {
  return String(one) === String(other);
}

/**
 * Converts an instant to ISO 8601 in UTC; null for none. A date without offset is UTC: it comes
 * from a database, and must not depend on this host's time zone.
 */
export function readInstant(given: string | number): string | null {
  const isSeconds = typeof given === 'number' && Math.abs(given) < mostSeconds;
  const time = typeof given === 'number' ? given * (isSeconds ? 1000 : 1) : Date.parse(withOffset(given.trim()));
  return Number.isNaN(time) || Math.abs(time) > mostMs ? null : new Date(time).toISOString();
}

/** Smaller numbers are seconds, others milliseconds: the limit is the year 5138, or 1973. */
const mostSeconds = 1e11;

/** The range of a Date (ECMA-262, 21.4.1.1). */
const mostMs = 8.64e15;

/** Adds UTC to SQL's and ISO's dates without offset, which Date.parse takes as local time. */
function withOffset(text: string): string {
  const [, day, time] = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)$/i.exec(text) ?? [];
  return day === undefined || time === undefined ? text : `${day}T${time.replace(',', '.')}Z`;
}
