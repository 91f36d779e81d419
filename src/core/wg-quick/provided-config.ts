import { keyPairOf, type PublicKey } from '../crypto/keys.ts';
import { Secret } from '../crypto/secret.ts';
import { familyOf, tryParseAddress } from '../net/cidr.ts';
import type { InterfaceAddress } from '../net/interface-address.ts';
import { amneziaKeys, checkAmnezia } from './amnezia.ts';
import { type ProvidedPeer, type SkippedSection, tryPeer } from './provided-peer.ts';
import { type ProvidedSection, readSections, wrong } from './provided-sections.ts';
import { Remarks } from './remarks.ts';

/** What a service's wg-quick text says, as far as it is for this host. */
export interface ProvidedConfig {
  /** Null where it names none. */
  readonly address: InterfaceAddress | null;
  /** Of the private key in it; null where it names none, or a blank to be filled in. */
  readonly publicKey: PublicKey | null;
  readonly peers: readonly ProvidedPeer[];
  /** The `[Peer]`s that cannot be used. */
  readonly skipped: readonly SkippedSection[];
  /** The name servers and search domains that it gives. */
  readonly dns: readonly string[];
  /** It says `Table = off`: nothing leads to what its peers carry, but to their own addresses. */
  readonly isTableOff: boolean;
  /** What else of it is not used, a clause each; never a value that is not ours to repeat. */
  readonly remarks: readonly string[];
}

/**
 * Reads a ready wg-quick text of a service: the allowlist of our own files, in any spelling that wg-quick(8) takes. Other keys, the
 * hooks among them, are skipped with a remark, and so is a peer that cannot be used. ListenPort, FwMark and MTU are this host's own
 * and not read. What else breaks a rule is an InvalidValue that names line and key, never a value.
 */
export function parseProvidedConfig(text: string): ProvidedConfig {
  const remarks = new Remarks();
  const { own, peers, others } = readSections(text, remarks, amneziaKeys);
  if (own === null) throw wrong('the text', 'has no [Interface]');
  checkAmnezia(others, remarks);
  const read = peers.map(tryPeer);
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

/** The name servers and search domains; what is neither is left out. */
function readDns({ values }: ProvidedSection, remarks: Remarks): readonly string[] {
  const given = values.get('DNS') ?? [];
  const names = given.flatMap(({ text }) => splitWords(text));
  const usable = names.filter((name) => name.length <= 253 && /^[A-Za-z0-9_.:-]+$/.test(name)).slice(0, mostNames);
  if (usable.length < names.length) remarks.add(`DNS of line ${given[0]?.line} has more than addresses and domains`);
  return usable;
}

const mostNames = 16;

function readTable({ values }: ProvidedSection, remarks: Remarks): boolean {
  const table = values.get('Table')?.at(-1);
  const text = table?.text.toLowerCase() ?? 'auto';
  if (text !== 'auto' && text !== 'off') {
    const shown = /^[a-z0-9]{1,32}$/.test(text) ? ` = ${text}` : '';
    remarks.add(`Table${shown} of line ${table?.line} is not used: routes go to the main table`);
  }
  return text === 'off';
}

/** The address with the range that it is in. A bare one is alone in its range, as wg-quick has it. */
function readAddress({ values }: ProvidedSection, remarks: Remarks): InterfaceAddress | null {
  const given = values.get('Address') ?? [];
  const all = given.flatMap(({ text, line }) => splitWords(text).map((address) => ({ text: address, line })));
  const ipv4 = all.filter(({ text }) => !text.includes(':'));
  const [first, second] = ipv4.length > 0 ? ipv4 : all;
  if (ipv4.length > 0 && ipv4.length < all.length) remarks.add('the IPv6 address is not used');
  if (first === undefined) {
    if (given[0] !== undefined) throw wrong(`Address of line ${given[0].line}`, 'is not an address');
    return null;
  }
  if (second !== undefined) remarks.add('the first of the addresses is used alone');
  const [address = '', length = '32', more] = first.text.split('/');
  const parsed = tryParseAddress(address);
  const number = more === undefined && /^(0|[1-9]\d?)$/.test(length) ? Number(length) : Number.NaN;
  if (parsed === null || familyOf(parsed) !== 4 || !(number <= 32))
    throw wrong(`Address of line ${first.line}`, 'is not an IPv4 address');
  return { address: parsed, length: number };
}

/** A blank such as `YOUR_PRIVATE_KEY` is filled in by us. */
function readOwnKey({ values }: ProvidedSection): PublicKey | null {
  const text = values.get('PrivateKey')?.at(-1)?.text ?? '';
  return /^[A-Za-z0-9+/]{43}=$/.test(text) ? keyPairOf(new Secret(text)).publicKey : null;
}

/** wg-quick separates addresses and name servers by commas and blanks. */
function splitWords(text: string): string[] {
  return text.split(/[,\t ]+/).filter((word) => word !== '');
}
