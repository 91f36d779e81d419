import { type Address, familyOf, maskPrefix, type Prefix, parseAddress } from '../cidr.ts';
import { type Endpoint, parseEndpoint } from '../endpoint.ts';
import { InvalidValue } from '../errors.ts';
import { keyPairOf, type PublicKey, parsePeerKey, parseSecretKey } from '../keys.ts';
import type { InterfaceAddress } from '../model.ts';
import { Secret } from '../secret.ts';
import { allowedKeys } from './parse.ts';

/** What somebody else's wg-quick text says, as far as it is for this host. */
export interface GivenConfig {
  /** Null where it names none. */
  readonly address: InterfaceAddress | null;
  /** Of the private key in it; null where it names none, or a blank to be filled in. */
  readonly publicKey: PublicKey | null;
  readonly peers: readonly GivenPeer[];
}

/** A `[Peer]` of it. The endpoint may be a name, which we resolve. */
export interface GivenPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly allowedIps: readonly Prefix[];
  readonly endpoint: Endpoint | null;
  readonly keepalive: number | null;
}

/**
 * Reads a ready wg-quick text of somebody else: the allowlist of our own files, in any spelling that wg-quick(8) takes. Hooks and keys
 * that are not on the list are refused. ListenPort, FwMark and MTU are this host's own affair and not heeded. What breaks a rule
 * is an InvalidValue that names line and key, never a value.
 */
export function parseGiven(text: string): GivenConfig {
  const sections = readSections(text);
  const [own, second] = sections.filter((section) => section.name === 'Interface');
  if (own === undefined) throw wrong('the text', 'has no [Interface]');
  if (second !== undefined) throw wrong(`line ${second.line}`, 'begins a second [Interface]');
  return {
    address: readAddress(own),
    publicKey: readOwnKey(own),
    peers: sections.filter((section) => section.name === 'Peer').map(readPeer),
  };
}

type Name = keyof typeof allowedKeys;

interface Section {
  readonly name: Name;
  readonly line: number;
  readonly values: Map<string, { readonly text: string; readonly line: number }>;
}

/** Those that may stand several times, and then add up. */
const lists: readonly string[] = ['Address', 'AllowedIPs'];

function readSections(text: string): Section[] {
  const sections: Section[] = [];
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const stripped = cutComment(raw);
    // What else JavaScript takes for a space is none for wg-quick; and a NUL, which its bash drops, joins what is around it.
    if (!/^[\t\v\f\r\x20-\x7e]*$/.test(stripped)) throw wrong(`line ${line}`, notALine);
    const content = stripped.trim();
    if (content === '') continue;
    const [, heading] = /^\[([A-Za-z]+)\]$/.exec(content) ?? [];
    if (heading === undefined) addValue(sections.at(-1), content, line);
    else sections.push({ name: readName(heading, line), line, values: new Map() });
  }
  return sections;
}

const notALine = 'is neither a section, nor "Key = value"';

function cutComment(line: string): string {
  const at = line.indexOf('#');
  return at < 0 ? line : line.slice(0, at);
}

function readName(heading: string, line: number): Name {
  const name = (['Interface', 'Peer'] as const).find((each) => each.toLowerCase() === heading.toLowerCase());
  if (name === undefined) throw wrong(`line ${line}`, 'begins neither [Interface] nor [Peer]');
  return name;
}

function addValue(section: Section | undefined, content: string, line: number): void {
  // Cut rather than matched: a text of a service is long, and a pattern could look at its spaces again and again.
  const at = content.indexOf('=');
  const [key, text] = [content.slice(0, Math.max(at, 0)).trim(), content.slice(at + 1).trim()];
  if (!/^[A-Za-z]{1,32}$/.test(key) || !/^[\x20-\x7e]*$/.test(text)) throw wrong(`line ${line}`, notALine);
  if (section === undefined) throw wrong(`line ${line}`, `has ${key} before any section`);
  const allowed = allowedKeys[section.name].find((each) => each.toLowerCase() === key.toLowerCase());
  if (allowed === undefined) throw wrong(`line ${line}`, `has ${key}, which is not taken in [${section.name}]`);
  const before = section.values.get(allowed);
  if (before && !lists.includes(allowed)) throw wrong(`line ${line}`, `has ${allowed} once more`);
  section.values.set(allowed, before ? { ...before, text: `${before.text},${text}` } : { text, line });
}

function readPeer(section: Section): GivenPeer {
  const { values, line } = section;
  if (!values.has('PublicKey')) throw wrong(`line ${line}`, 'begins a [Peer] that has no PublicKey');
  return {
    publicKey: read(section, 'PublicKey', (text) => parsePeerKey(text)) as PublicKey,
    presharedKey: read(section, 'PresharedKey', (text) => parseSecretKey(text)),
    allowedIps: [...new Set(read(section, 'AllowedIPs', (text) => split(text).map(readPrefix)) ?? [])],
    endpoint: read(section, 'Endpoint', (text) => parseEndpoint(text)),
    keepalive: read(section, 'PersistentKeepalive', readKeepalive),
  };
}

/** The address with the range that it is in. A bare one is alone in its range, as wg-quick has it. */
function readAddress(section: Section): InterfaceAddress | null {
  return read(section, 'Address', (text) => {
    const [first, second] = split(text);
    if (first === undefined || second !== undefined) throw wrong('Address', 'is not one address');
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
  return maskPrefix(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
}

/** Seconds; `off` and 0 are none. */
function readKeepalive(text: string): number | null {
  if (text === 'off') return null;
  const seconds = /^(0|[1-9][0-9]{0,4})$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds <= 65535)) throw wrong('PersistentKeepalive', 'is not a number of seconds up to 65535');
  return seconds === 0 ? null : seconds;
}

function split(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function wrong(what: string, rule: string): InvalidValue {
  return new InvalidValue(what, undefined, rule);
}
