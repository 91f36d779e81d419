import { keyPairOf, type PublicKey } from '../crypto/keys.ts';
import { Secret } from '../crypto/secret.ts';
import { familyOf, type InterfaceAddress, tryParseAddress } from '../net/cidr.ts';
import { amneziaKeys, checkAmnezia } from './amnezia.ts';
import { type ProvidedPeer, type SkippedSection, tryPeer } from './provided-peer.ts';
import { type ProvidedSection, Remarks, readSections, wrong } from './provided-sections.ts';

/** The usable content of a service's wg-quick text. */
export interface ProvidedConfig {
  /** Null if the text has none. */
  readonly address: InterfaceAddress | null;
  /** The public key of its private key. Null if it has none, or only a placeholder. */
  readonly publicKey: PublicKey | null;
  readonly peers: readonly ProvidedPeer[];
  /** The unusable `[Peer]`s. */
  readonly skipped: readonly SkippedSection[];
  /** Its name servers and search domains. */
  readonly dns: readonly string[];
  /** True for `Table = off`: only the addresses of its peers get routes. */
  readonly isTableOff: boolean;
  /** Clauses about other unused content. They never quote a value that cpn does not own. */
  readonly remarks: readonly string[];
}

/**
 * Parses a service's wg-quick text: the keys of our files, in any format of wg-quick(8). Skips
 * other keys, such as hooks, and unusable peers with a remark. Ignores ListenPort, FwMark and MTU,
 * which this host sets. Other violations throw an InvalidValue with line and key, never a value.
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

/** The name servers and search domains. Leaves out other values. */
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

/** The address with its subnet. Without a length it is a /32, as in wg-quick. */
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

/** Null for a placeholder such as `YOUR_PRIVATE_KEY`. */
function readOwnKey({ values }: ProvidedSection): PublicKey | null {
  const text = values.get('PrivateKey')?.at(-1)?.text ?? '';
  return /^[A-Za-z0-9+/]{43}=$/.test(text) ? keyPairOf(new Secret(text)).publicKey : null;
}

/** wg-quick separates addresses and name servers by commas and blanks. */
function splitWords(text: string): string[] {
  return text.split(/[,\t ]+/).filter((word) => word !== '');
}
