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

/** Exceeds a text with the most peers of a network. */
const maxText = 8 * 1024 * 1024;

/** The service is the right one, but its text is wrong. */
const remedy = 'have the operator of the service correct the text';

/** A parsed wg-quick text, and its field for further errors. */
export interface DecodedConfig {
  readonly field: Field;
  readonly text: ProvidedConfig;
}

/** Reads a wg-quick text. A BadReply for a wrong one names line and key, never a value. */
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

/** This host's address in the text. */
export interface OwnAddress {
  readonly address: Address;
  /** The network's range; the address alone without one. */
  readonly cidr: Prefix;
}

/** A text's peers, named by address, and their routes: prefixes outside the network's range. */
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

/** The parts of a text that are kept as data or not used, for this host's reports. */
export function readRemarks({ dns, isTableOff, remarks }: ProvidedConfig): ProvidedRemarks {
  const table = 'Table = off: only routes to the addresses of the network are used';
  return { dns, remarks: [...(isTableOff ? [table] : []), ...remarks] };
}

/** The range of the interface's address, for a service that states none. */
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
    // Other services call a peer with routes a connector.
    type: routes.length > 0 ? 'connector' : 'origin',
    publicKey,
    address,
    endpoint,
    routes,
    withdrawn: [],
    given: { allowedIps, presharedKey, keepalive },
  };
}

/** A peer's first single address, in the network's range if known. */
function ownAddress({ allowedIps }: ProvidedPeer, { cidr }: OwnAddress): Address | null {
  const single = allowedIps.find(
    (prefix) => /\.\d+\/32$/.test(prefix) && (lengthOf(cidr) === 32 || covers(cidr, prefix)),
  );
  return single === undefined ? null : (single.slice(0, -'/32'.length) as Address);
}

/**
 * The address of a gateway that has only ranges: by custom, the first free one of its range. It
 * only names the gateway, and carries no packet beyond its AllowedIPs.
 */
function presumeAddress(
  field: Field,
  { allowedIps }: ProvidedPeer,
  { cidr }: OwnAddress,
  taken: ReadonlySet<Address>,
): Address {
  const range = allowedIps.find((prefix) => !prefix.includes(':'));
  if (range === undefined) throw field.wrong('has a peer without an IPv4 address in its AllowedIPs');
  // A gateway whose range covers the network's is inside the network.
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
