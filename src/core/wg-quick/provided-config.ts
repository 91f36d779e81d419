import { keyPairOf, type PublicKey, parsePeerKey, parseSecretKey } from '../crypto/keys.ts';
import { Secret } from '../crypto/secret.ts';
import { InvalidValue } from '../errors/index.ts';
import { type Address, familyOf, type Prefix, parseAddress, parseRange } from '../net/cidr.ts';
import { type Endpoint, parseEndpoint } from '../net/endpoint.ts';
import type { InterfaceAddress } from '../net/interface-address.ts';
import { allowedKeys } from './parse.ts';

/** What a service's wg-quick text says, as far as it is for this host. */
export interface ProvidedConfig {
  /** Null where it names none. */
  readonly address: InterfaceAddress | null;
  /** Of the private key in it; null where it names none, or a blank to be filled in. */
  readonly publicKey: PublicKey | null;
  readonly peers: readonly ProvidedPeer[];
  /** The `[Peer]`s that cannot be used: their key, where it can be read, and why. */
  readonly skipped: readonly { readonly publicKey: string | null; readonly reason: string }[];
  /** The name servers and search domains that it gives. */
  readonly dns: readonly string[];
  /** It says `Table = off`: nothing leads to what its peers carry, but to their own addresses. */
  readonly isTableOff: boolean;
  /** What else of it is not used, a clause each; never a value that is not ours to repeat. */
  readonly remarks: readonly string[];
}

/** A `[Peer]` of it. The endpoint may be a name, which we resolve. */
export interface ProvidedPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly allowedIps: readonly Prefix[];
  readonly endpoint: Endpoint | null;
  readonly keepalive: number | null;
}

/**
 * Reads a ready wg-quick text of a service: the allowlist of our own files, in any spelling that wg-quick(8) takes. Other keys, the
 * hooks among them, are skipped with a remark, and so is a peer that cannot be used. ListenPort, FwMark and MTU are this host's own
 * and not read. What else breaks a rule is an InvalidValue that names line and key, never a value.
 */
export function parseProvidedConfig(text: string): ProvidedConfig {
  const { sections, remarks } = readSections(text);
  const [own, second] = sections.filter((section) => section.name === 'Interface');
  if (own === undefined) throw wrong('the text', 'has no [Interface]');
  if (second !== undefined) throw wrong(`line ${second.line}`, 'begins a second [Interface]');
  const read = sections.filter((section) => section.name === 'Peer').map(tryPeer);
  return {
    address: readAddress(own, remarks),
    publicKey: readOwnKey(own),
    peers: read.flatMap((peer) => ('reason' in peer ? [] : [peer])),
    skipped: read.flatMap((peer) => ('reason' in peer ? [peer] : [])),
    dns: readDns(own, remarks),
    isTableOff: readTable(own, remarks),
    remarks: remarks.finish(),
  };
}

/** Clauses about what is not used; of many only how many there are. */
class Remarks {
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

/** The keys that are read, in addition to those of our own files. */
const readKeys = { Interface: [...allowedKeys.Interface, 'DNS', 'Table'], Peer: allowedKeys.Peer } as const;

type Name = keyof typeof readKeys;

interface Section {
  /** Null where it is neither; what stands in it is skipped. */
  readonly name: Name | null;
  readonly line: number;
  readonly values: Map<string, { readonly text: string; readonly line: number }>;
}

/** Those that may stand several times, and then add up. */
const lists: readonly string[] = ['Address', 'AllowedIPs', 'DNS'];

function readSections(text: string): { sections: Section[]; remarks: Remarks } {
  const sections: Section[] = [];
  const remarks = new Remarks();
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const [content = ''] = raw.split('#', 1);
    if (content.trim() === '') continue;
    const [, heading] = /^\[([A-Za-z]+)\]$/.exec(content.trim()) ?? [];
    if (heading === undefined) addValue(sections.at(-1), content, line, remarks);
    else sections.push({ name: readName(heading, line, remarks), line, values: new Map() });
  }
  return { sections, remarks };
}

const notALine = 'is neither a section, nor "Key = value"';

function readName(heading: string, line: number, remarks: Remarks): Name | null {
  const name = (['Interface', 'Peer'] as const).find((each) => each.toLowerCase() === heading.toLowerCase());
  if (name === undefined) remarks.add(`line ${line} begins neither [Interface] nor [Peer], and the section is skipped`);
  return name ?? null;
}

/** @param raw a line without its comment */
function addValue(section: Section | undefined, raw: string, line: number, remarks: Remarks): void {
  const content = raw.trim();
  // Cut rather than matched: a text of a service is long, and a pattern could look at its spaces again and again.
  const at = content.indexOf('=');
  const [key, text] = [content.slice(0, Math.max(at, 0)).trim(), content.slice(at + 1).trim()];
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,31}$/.test(key)) throw wrong(`line ${line}`, notALine);
  if (section === undefined) throw wrong(`line ${line}`, `has ${key} before any section`);
  if (section.name === null) return;
  const allowed = readKeys[section.name].find((each) => each.toLowerCase() === key.toLowerCase());
  if (allowed === undefined) {
    remarks.add(describeUnused(key, line));
    return;
  }
  if (!isPlain(raw, text, allowed)) throw wrong(`line ${line}`, notALine);
  // wg drops every blank of a line (config_read_line in config.c).
  const value = section.name === 'Peer' ? text.replace(/[\t ]/g, '') : text;
  const before = section.values.get(allowed);
  if (before && !lists.includes(allowed)) throw wrong(`line ${line}`, `has ${allowed} once more`);
  section.values.set(allowed, before ? { ...before, text: `${before.text},${value}` } : { text: value, line });
}

/**
 * What else JavaScript takes for a space is none for wg-quick; and a NUL, which its bash drops, joins what is around it. The name in an
 * endpoint may have letters of any language.
 */
function isPlain(raw: string, text: string, key: string): boolean {
  const isAscii = /^[\t\v\f\r\x20-\x7e]*$/.test(raw) && /^[\t\x20-\x7e]*$/.test(text);
  return isAscii || (key === 'Endpoint' && /^[\t\x20-\x7e\p{L}\p{M}\p{N}]*$/u.test(raw));
}

function describeUnused(key: string, line: number): string {
  const lower = key.toLowerCase();
  if (hooks.includes(lower))
    return `${key} of line ${line} is a hook, and hooks are never run and not written to the file`;
  if (lower === 'saveconfig') return `${key} of line ${line} is not used: the file holds what the service says`;
  return `${key} of line ${line} is not known, and skipped`;
}

const hooks = ['preup', 'postup', 'predown', 'postdown'];

function tryPeer(section: Section): ProvidedPeer | { readonly publicKey: string | null; readonly reason: string } {
  try {
    return readPeer(section);
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    const key = section.values.get('PublicKey')?.text ?? '';
    return { publicKey: /^[A-Za-z0-9+/]{43}=$/.test(key) ? key : null, reason: error.message };
  }
}

/** The name servers and search domains; what is neither is left out. */
function readDns({ values }: Section, remarks: Remarks): readonly string[] {
  const given = values.get('DNS');
  const names = given === undefined ? [] : splitWords(given.text);
  const usable = names.filter((name) => name.length <= 253 && /^[A-Za-z0-9_.:-]+$/.test(name)).slice(0, mostNames);
  if (given && usable.length < names.length)
    remarks.add(`DNS of line ${given.line} has more than addresses and domains`);
  return usable;
}

const mostNames = 16;

function readTable({ values }: Section, remarks: Remarks): boolean {
  const table = values.get('Table');
  const text = table?.text.toLowerCase() ?? 'auto';
  if (text !== 'auto' && text !== 'off') {
    const shown = /^[a-z0-9]{1,32}$/.test(text) ? ` = ${text}` : '';
    remarks.add(`Table${shown} of line ${table?.line} is not used: routes go to the main table`);
  }
  return text === 'off';
}

function readPeer(section: Section): ProvidedPeer {
  const { values, line } = section;
  if (!values.has('PublicKey')) throw wrong(`line ${line}`, 'begins a [Peer] that has no PublicKey');
  return {
    publicKey: read(section, 'PublicKey', (text) => parsePeerKey(text)) as PublicKey,
    presharedKey: read(section, 'PresharedKey', (text) => parseSecretKey(text)),
    allowedIps: [...new Set(read(section, 'AllowedIPs', (text) => split(text).map(readPrefix)) ?? [])],
    endpoint: read(section, 'Endpoint', (text) => parseEndpoint(spellInAscii(text))),
    keepalive: read(section, 'PersistentKeepalive', readKeepalive),
  };
}

/** The address with the range that it is in. A bare one is alone in its range, as wg-quick has it. */
function readAddress(section: Section, remarks: Remarks): InterfaceAddress | null {
  return read(section, 'Address', (text) => {
    const all = splitWords(text);
    const isIpv4 = (address: string) => !address.includes(':');
    const [first, second] = all.some(isIpv4) ? all.filter(isIpv4) : all;
    if (all.some(isIpv4) && !all.every(isIpv4)) remarks.add('the IPv6 address is not used');
    if (first === undefined) throw wrong('Address', 'is not an address');
    if (second !== undefined) remarks.add('the first of the addresses is used alone');
    const [address = '', length = '32', more] = first.split('/');
    const parsed: Address = parseAddress(address);
    const number = more === undefined && /^(0|[1-9]\d?)$/.test(length) ? Number(length) : Number.NaN;
    if (familyOf(parsed) !== 4 || !(number <= 32)) throw wrong('Address', 'is not an IPv4 address');
    return { address: parsed, length: number };
  });
}

/** A blank such as `YOUR_PRIVATE_KEY` is filled in by us. */
function readOwnKey(section: Section): PublicKey | null {
  const text = section.values.get('PrivateKey')?.text ?? '';
  return /^[A-Za-z0-9+/]{43}=$/.test(text) ? keyPairOf(new Secret(text)).publicKey : null;
}

/** A value by its parser; null where the key is not there. Whatever the parser says, no value is in the error. */
function read<T>({ values }: Section, key: string, parse: (text: string) => T): T | null {
  const value = values.get(key);
  if (value === undefined) return null;
  try {
    return parse(value.text);
  } catch (error) {
    if (error instanceof InvalidValue) throw wrong(`${key} of line ${value.line}`, error.rule);
    throw error;
  }
}

/** An address alone is a prefix too: `wg` takes it for the one that holds nothing else. */
function readPrefix(text: string): Prefix {
  return parseRange(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
}

/** An endpoint whose name has letters of any language, with the name as resolvers take it (IDNA). */
function spellInAscii(endpoint: string): string {
  const port = endpoint.lastIndexOf(':');
  if (port < 0 || /^[\x20-\x7e]*$/.test(endpoint)) return endpoint;
  const name = URL.parse(`http://${endpoint.slice(0, port)}`)?.hostname;
  return name === undefined ? endpoint : `${name}${endpoint.slice(port)}`;
}

/** Seconds; `off` and 0 are none. */
function readKeepalive(text: string): number | null {
  if (text.toLowerCase() === 'off') return null;
  const seconds = /^(0|[1-9][0-9]{0,4})$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds <= 65535)) throw wrong('PersistentKeepalive', 'is not a number of seconds up to 65535');
  return seconds === 0 ? null : seconds;
}

/** wg-quick separates addresses and name servers by commas and blanks. */
function splitWords(text: string): string[] {
  return text.split(/[,\t ]+/).filter((word) => word !== '');
}

/** wg separates by commas alone. */
function split(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function wrong(what: string, rule: string): InvalidValue {
  return new InvalidValue(what, undefined, rule);
}
