import { InvalidValue } from '../errors/index.ts';
import { allowedKeys } from './parse.ts';

/** One `[Peer]`, or all `[Interface]`s of a text together. */
export interface ProvidedSection {
  readonly line: number;
  /** The values of each accepted key, in the order of their lines. */
  readonly values: Map<string, ProvidedValue[]>;
}

export interface ProvidedValue {
  readonly text: string;
  readonly line: number;
}

export interface Sections {
  /** Null if the text has no `[Interface]`. */
  readonly own: ProvidedSection | null;
  readonly peers: readonly ProvidedSection[];
  /** Other requested keys of the interface, each with its last value. */
  readonly others: ReadonlyMap<string, ProvidedValue>;
}

/** The keys that wg-quick(8) reads in an `[Interface]`. It passes other lines to wg(8). */
const quickKeys: readonly string[] = ['Address', 'MTU', 'DNS', 'Table'];

/** The accepted keys, in addition to those of our own files. */
const readKeys = { Interface: [...allowedKeys.Interface, 'DNS', 'Table'], Peer: allowedKeys.Peer } as const;

/** Keys whose values add up. For other keys, the last value counts. */
const lists: readonly string[] = ['Address', 'AllowedIPs', 'DNS'];

/** Keys whose values this host sets, so they are not read. */
const ignored: readonly string[] = ['ListenPort', 'FwMark', 'MTU'];

/**
 * Splits a text as wg-quick and wg do (`parse_options` in wg-quick; `config_read_line`,
 * `process_line` in config.c). Ignores case. wg drops all blanks, even in headings and keys,
 * wg-quick only those around a key or value. A second `[Interface]` adds to the first. Drops a byte
 * order mark, which wg refuses.
 *
 * @param otherKeys keys of the interface for `others`; each other unknown key becomes a remark
 */
export function readSections(text: string, remarks: Remarks, otherKeys: readonly string[]): Sections {
  const reader = new SectionReader(remarks, otherKeys);
  for (const [index, raw] of text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .entries()) {
    const [content = ''] = raw.split('#', 1);
    if (dropBlanks(content) !== '') reader.readLine(content, index + 1);
  }
  return reader;
}

type Name = keyof typeof readKeys;

class SectionReader implements Sections {
  own: ProvidedSection | null = null;
  readonly peers: ProvidedSection[] = [];
  readonly others = new Map<string, ProvidedValue>();
  readonly #remarks: Remarks;
  readonly #otherKeys: readonly string[];
  /** Undefined before the first heading. Null in a skipped section. */
  #current: { readonly section: ProvidedSection; readonly name: Name } | null | undefined;
  /** True if wg-quick reads the heading as `[Interface]`. */
  #isForQuick = false;

  constructor(remarks: Remarks, otherKeys: readonly string[]) {
    this.#remarks = remarks;
    this.#otherKeys = otherKeys;
  }

  /** @param raw a line without its comment */
  readLine(raw: string, line: number): void {
    const content = raw.trim();
    const [, heading] = /^\[([A-Za-z]+)\]$/.exec(dropBlanks(raw)) ?? [];
    if (heading === undefined) this.#addValue(raw, content, line);
    else this.#begin(heading.toLowerCase(), content, line);
  }

  #begin(heading: string, content: string, line: number): void {
    const section = { line, values: new Map<string, ProvidedValue[]>() };
    this.#isForQuick = content.toLowerCase() === '[interface]';
    if (heading === 'peer') {
      this.peers.push(section);
      this.#current = { section, name: 'Peer' };
    } else if (heading === 'interface') {
      if (this.own !== null) this.#remarks.add(`line ${line} begins another [Interface], which adds to the first one`);
      this.own ??= section;
      this.#current = { section: this.own, name: 'Interface' };
    } else {
      this.#remarks.add(`line ${line} begins neither [Interface] nor [Peer], and the section is skipped`);
      this.#current = null;
    }
  }

  #addValue(raw: string, content: string, line: number): void {
    // Uses indexOf: a service's text may be long, and a pattern could backtrack over its spaces.
    const at = content.indexOf('=');
    const [spelled, text] = [content.slice(0, Math.max(at, 0)).trim(), content.slice(at + 1).trim()];
    const key = dropBlanks(spelled);
    if (!/^[A-Za-z][A-Za-z0-9_-]{0,31}$/.test(key)) throw wrong(`line ${line}`, notALine);
    if (this.#current === undefined) throw wrong(`line ${line}`, `has ${key} before any section`);
    if (this.#current === null) return;
    const { section, name } = this.#current;
    const allowed = findKey(readKeys[name], key);
    const isQuick = name === 'Interface' && allowed !== undefined && quickKeys.includes(allowed);
    if (isQuick && (!this.#isForQuick || key !== spelled))
      throw wrong(`line ${line}`, blanksRule(key, key !== spelled));
    if (allowed === undefined) this.#addOther(name, key, { text, line });
    else if (isPlain(raw, text, allowed))
      this.#keep(section, allowed, { text: isQuick ? text : dropBlanks(text), line });
    else throw wrong(`line ${line}`, notALine);
  }

  #keep({ values }: ProvidedSection, key: string, value: ProvidedValue): void {
    const before = values.get(key) ?? [];
    if (before.length > 0 && ![...lists, ...ignored].includes(key))
      this.#remarks.add(`line ${value.line} repeats ${key}; the last one counts`);
    before.push(value);
    values.set(key, before);
  }

  #addOther(name: Name, key: string, value: ProvidedValue): void {
    const other = name === 'Interface' ? findKey(this.#otherKeys, key) : undefined;
    if (other !== undefined) this.others.set(other, value);
    else this.#remarks.add(describeUnused(key, value.line));
  }
}

function findKey(keys: readonly string[], key: string): string | undefined {
  return keys.find((each) => each.toLowerCase() === key.toLowerCase());
}

const notALine = 'is neither a section, nor "Key = value"';

function blanksRule(key: string, isInKey: boolean): string {
  return isInKey
    ? `has blanks in ${key}, which wg-quick does not take`
    : `has ${key} below an [Interface] with blanks in its brackets, which wg-quick does not take`;
}

/** Drops the blanks of wg (`char_is_space` in ctype.h), except line feeds. */
function dropBlanks(text: string): string {
  return text.replace(/[\t\v\f\r ]/g, '');
}

/**
 * False for other characters that JavaScript treats as spaces, because wg-quick does not, and for
 * NUL, which its bash drops. The name in an endpoint may have letters of any language.
 */
function isPlain(raw: string, text: string, key: string): boolean {
  const isAscii = /^[\t\v\f\r\x20-\x7e]*$/.test(raw) && /^[\t\x20-\x7e]*$/.test(text);
  return isAscii || (key === 'Endpoint' && /^[\t\x20-\x7e\p{L}\p{M}\p{N}]*$/u.test(raw));
}

function describeUnused(key: string, line: number): string {
  const lower = key.toLowerCase();
  if (hooks.includes(lower))
    return `${key} of line ${line} is a hook, and hooks are never run and not written to the file`;
  if (lower === 'saveconfig') return `${key} of line ${line} is not used: cpn writes the file`;
  return `${key} of line ${line} is not known, and skipped`;
}

const hooks = ['preup', 'postup', 'predown', 'postdown'];

/** Parses all values: one wrong value makes wg refuse the text. The error contains no value. */
export function readAll<T>({ values }: ProvidedSection, key: string, parse: (text: string) => T): T[] {
  return (values.get(key) ?? []).map(({ text, line }) => {
    try {
      return parse(text);
    } catch (error) {
      if (error instanceof InvalidValue) throw wrong(`${key} of line ${line}`, error.rule);
      throw error;
    }
  });
}

/** The last value of a key that is no list. Null if the key is absent. */
export function readLast<T>(section: ProvidedSection, key: string, parse: (text: string) => T): T | null {
  return readAll(section, key, parse).at(-1) ?? null;
}

export function wrong(what: string, rule: string): InvalidValue {
  return new InvalidValue(what, undefined, rule);
}

/** Clauses about unused settings. Beyond the limit, only their number. */
export class Remarks {
  readonly #clauses: string[] = [];
  #more = 0;

  add(clause: string): void {
    if (this.#clauses.length < mostRemarks) this.#clauses.push(clause);
    else this.#more += 1;
  }

  finish(): readonly string[] {
    return this.#more === 0 ? this.#clauses : [...this.#clauses, `${this.#more} more lines are not used`];
  }
}

const mostRemarks = 20;
