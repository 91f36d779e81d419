import type { PublicKey } from '../../core/crypto/keys.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import type { Peer, ProvidedRemarks, SkippedPeer } from '../../core/map/model.ts';
import {
  type Address,
  addressAt,
  covers,
  formatInterfaceAddress,
  hostPrefix,
  isDefaultRoute,
  lengthOf,
  maskPrefix,
  type Prefix,
  rangeOf,
} from '../../core/net/cidr.ts';
import { type ProvidedConfig, parseProvidedConfig } from '../../core/wg-quick/provided-config.ts';
import type { ProvidedPeer } from '../../core/wg-quick/provided-peer.ts';
import type { Field } from './field.ts';
import { maxPeers, maxRoutes } from './network.ts';

/** Longer than a text with every peer that a network may have. */
const maxText = 8 * 1024 * 1024;

/** The address names the right service, where its text is wrong. */
const remedy = 'have the operator of the service correct the text';

/** A ready wg-quick text, read; and its field, for what else is wrong with it. */
export interface DecodedConfig {
  readonly field: Field;
  readonly text: ProvidedConfig;
}

/**
 * Reads a ready wg-quick text; what is wrong with it is a BadReply that names line and key, never a
 * value.
 */
export function decodeConfig(given: Field, publicKey: PublicKey): DecodedConfig {
  const text = given.text(maxText);
  const field = given.withRemedy(remedy);
  try {
    const config = parseProvidedConfig(text);
    if (config.publicKey !== null && config.publicKey !== publicKey)
      throw field.wrong("has a PrivateKey that is not this host's: its peers expect another host");
    return { field, text: config };
  } catch (error) {
    if (error instanceof InvalidValue) throw field.wrong(`cannot be used: ${error.message}`);
    throw error;
  }
}

/** Where the text puts this host. */
export interface OwnAddress {
  readonly address: Address;
  /** The range of the network; the address alone where the text has no range. */
  readonly cidr: Prefix;
}

/**
 * The peers of a text, named by their addresses, and the routes that they carry: what they are
 * given beyond the network's range.
 */
export function readGivenPeers(
  field: Field,
  config: ProvidedConfig,
  place: OwnAddress,
): { peers: Peer[]; routes: Prefix[]; skipped: SkippedPeer[] } {
  const peers = config.peers.filter(hasAddress);
  if (peers.length > maxPeers) throw field.wrong(`has more than ${maxPeers} peers`);
  const given = peers.flatMap((peer) => peer.allowedIps);
  if (given.length > maxPeers + maxRoutes) throw field.wrong(`has more than ${maxPeers + maxRoutes} AllowedIPs`);
  const taken = new Set<Address>([place.address]);
  const withOwn = peers.map((peer) => ({ peer, own: ownAddress(peer, place) }));
  for (const { own } of withOwn) if (own !== null) taken.add(own);
  const read = withOwn.map(({ peer, own }) => {
    const address = own ?? presumeAddress(field, peer, place, taken);
    taken.add(address);
    const beyond = peer.allowedIps.filter((prefix) => prefix !== hostPrefix(address) && !covers(place.cidr, prefix));
    const name = own === null && peer.allowedIps.some(isDefaultRoute) ? (peer.endpoint?.host ?? address) : address;
    if (!config.isTableOff) return { routes: beyond, peer: toPeer({ ...peer, name }, address, beyond) };
    const allowedIps = peer.allowedIps.filter((prefix) => !beyond.includes(prefix));
    return { routes: [], peer: toPeer({ ...peer, name, allowedIps }, address, []) };
  });
  const routes = read.flatMap((each) => each.routes);
  if (routes.length > maxRoutes) throw field.wrong(`has more than ${maxRoutes} routes`);
  return { peers: read.map(({ peer }) => peer), routes, skipped: skippedOf(config) };
}

/** A peer is identified by its address. */
function hasAddress({ allowedIps }: ProvidedPeer): boolean {
  return allowedIps.some((prefix) => !prefix.includes(':'));
}

function skippedOf({ peers, skipped }: ProvidedConfig): SkippedPeer[] {
  const without = peers
    .filter((peer) => !hasAddress(peer))
    .map(({ publicKey }) => ({ publicKey, reason: 'it has no IPv4 address in its AllowedIPs' }));
  return [...without, ...skipped].map((peer) => ({ id: null, name: null, address: null, ...peer }));
}

/** What of a text is kept as data or not used, for this host's own reports. */
export function readRemarks({ dns, isTableOff, remarks }: ProvidedConfig): ProvidedRemarks {
  const table = 'Table = off: only routes to the addresses of the network are used';
  return { dns, remarks: [...(isTableOff ? [table] : []), ...remarks] };
}

/** The range of the interface's address in the text, for a service that states no range. */
export function rangeOfConfig({ address }: ProvidedConfig): Prefix | null {
  return address === null || address.length === 32 ? null : maskPrefix(formatInterfaceAddress(address));
}

function toPeer(
  { name, publicKey, endpoint, allowedIps, presharedKey, keepalive }: ProvidedPeer & { readonly name: string },
  address: Address,
  routes: Prefix[],
): Peer {
  return {
    id: publicKey,
    name,
    // Who carries routes is what others call a connector.
    type: routes.length > 0 ? 'connector' : 'origin',
    publicKey,
    address,
    endpoint,
    routes,
    withdrawn: [],
    given: { allowedIps, presharedKey, keepalive },
  };
}

/** The first single address that a peer is given, in the network's range where that is known. */
function ownAddress({ allowedIps }: ProvidedPeer, { cidr }: OwnAddress): Address | null {
  const single = allowedIps.find(
    (prefix) => /\.\d+\/32$/.test(prefix) && (lengthOf(cidr) === 32 || covers(cidr, prefix)),
  );
  return single === undefined ? null : (single.slice(0, -'/32'.length) as Address);
}

/**
 * The address of a gateway that has ranges and no address of its own: the first of its range that
 * no other peer has, as is customary. It only names the gateway; no packet goes to it that its
 * AllowedIPs would not carry.
 */
function presumeAddress(
  field: Field,
  { allowedIps }: ProvidedPeer,
  { cidr }: OwnAddress,
  taken: ReadonlySet<Address>,
): Address {
  const range = allowedIps.find((prefix) => !prefix.includes(':'));
  if (range === undefined) throw field.wrong('has a peer without an IPv4 address in its AllowedIPs');
  // Of a range that covers the network's, the gateway is in the network.
  const within = covers(range, cidr) && lengthOf(cidr) < 32 ? cidr : range;
  const { first, last } = rangeOf(within);
  for (
    let number = first === last ? first : first + 1n;
    number <= last && number < first + BigInt(taken.size + 2);
    number += 1n
  ) {
    const address = addressAt(number);
    if (!taken.has(address)) return address;
  }
  throw field.wrong('has a peer whose AllowedIPs are all given to others');
}
