import { BlockList } from 'node:net';
import type { PeerType } from '../../contract/peer.ts';
import { parsePeerKey } from '../../core/crypto/keys.ts';
import {
  type Id,
  type NetworkMap,
  type Peer,
  peerTypes,
  type RouteDns,
  type SkippedPeer,
} from '../../core/map/model.ts';
import { parseDomain } from '../../core/names/domain.ts';
import {
  type Address,
  addressOf,
  covers,
  familyOf,
  lengthOf,
  type Prefix,
  parseAddress,
  parsePrefix,
  parseRange,
} from '../../core/net/cidr.ts';
import { parseEndpoint } from '../../core/net/endpoint.ts';
import { aliases } from '../aliases.ts';
import { decodeId, type Field } from './field.ts';
import { decodePeerFields } from './peer-fields.ts';
import { decodeRules } from './rules.ts';

const names = aliases.network;
export const maxName = 120;
export const maxPeers = 16_384;
/** Five times the contract's limit. */
export const maxRoutes = 256;

/**
 * A network without its peers. The range must be canonical; routes may be absent, and lose their
 * host bits. `base`: see {@link decodeRules}.
 */
export function decodeNetwork(
  network: Field,
  base?: NetworkMap,
): Pick<NetworkMap, 'name' | 'cidr' | 'routes' | Extension> & { readonly id: Id } {
  refuseOtherTunnels(network);
  return {
    id: decodeId(network.need(names.id)),
    name: network.need(names.name).text(maxName),
    cidr: decodeRange(network.need(names.cidr)),
    routes: decodeNetworkRoutes(network),
    ...decodeExtensions(network, base),
  };
}

type Extension = 'maxAge' | 'relay' | 'rules' | 'spread' | 'nonce' | 'routeDns';

/** The fields of a network that only some services have. `base`: see {@link decodeRules}. */
export function decodeExtensions(network: Field, base?: NetworkMap): Pick<NetworkMap, Extension> {
  const spread = network.tryFind(names.spread, ({ value }) => value === true) === true;
  return {
    ...{ ...decodeMaxAge(network), ...decodeRelay(network), ...decodeRules(network, base), ...decodeNonce(network) },
    ...(spread && { spread }),
    ...decodeRouteDns(network),
  };
}

/** Five times the contract's limits. */
const maxEntries = 80;
const maxServers = 15;
const maxDomains = 80;

/** Leaves out entries, servers and domains that are unusable: names are worth no tunnel. */
function decodeRouteDns(network: Field): Pick<NetworkMap, 'routeDns'> {
  const listed = network.tryFind(names.routeDns, (found) => found.items(maxEntries)) ?? [];
  const entries = listed.flatMap((entry) => entry.attempt<RouteDns[]>(decodeRouteDnsEntry, () => []));
  // An entry that repeats a route, or a domain, is ambiguous: the first counts.
  const seen = new Set<string>();
  const isFirst = (name: string) => !seen.has(name) && seen.add(name);
  const routeDns = entries
    .filter(({ route }) => isFirst(route))
    .map(({ domains, ...entry }) => ({ ...entry, domains: domains.filter(isFirst) }))
    .filter(({ domains }) => domains.length > 0);
  return routeDns.length === 0 ? {} : { routeDns };
}

function decodeRouteDnsEntry(entry: Field): RouteDns[] {
  const { route: prefix, servers: addresses, domains: listed } = aliases.routeDns;
  const route = entry.need(prefix).parse((text) => parseRange(text));
  const servers = entry
    .need(addresses)
    .items(maxServers)
    .flatMap((each) =>
      each.attempt<Address[]>(
        (at) => [at.parse((text) => parseAddress(text))],
        () => [],
      ),
    )
    .filter((server) => familyOf(server) === 4 && covers(route, server));
  const domains = entry
    .need(listed)
    .items(maxDomains)
    .flatMap((each) =>
      each.attempt<string[]>(
        (at) => [at.parse((text) => parseDomain(text))],
        () => [],
      ),
    );
  return servers.length === 0 ? [] : [{ route, servers: [...new Set(servers)], domains }];
}

/** Ignores other values: another service may use the word differently. */
function decodeNonce(network: Field): Pick<NetworkMap, 'nonce'> {
  const nonce = network.tryFind(names.nonce, (found) => found.text(128));
  return nonce !== null && /^[\x21-\x7e]+$/.test(nonce) ? { nonce } : {};
}

/** Ten years; a longer age is no limit. */
const longestAge = 315_360_000;

/** Ignores values with another meaning, and those beyond all bounds. */
function decodeMaxAge(network: Field): Pick<NetworkMap, 'maxAge'> {
  const seconds = network.tryFind(names.maxAge, (age) => age.integer());
  return seconds === null || seconds === 0 || seconds > longestAge ? {} : { maxAge: seconds };
}

/** Ignores values with another meaning. An id of no connector has no effect. */
function decodeRelay(network: Field): Pick<NetworkMap, 'relay'> {
  const relay = network.tryFind(names.relay, decodeId);
  return relay === null ? {} : { relay };
}

export function decodeNetworkRoutes(network: Field): Prefix[] {
  const routes = network.find(names.routes);
  return routes ? decodeRoutes(routes) : [];
}

/** Throws if the service states another kind of tunnel than WireGuard. */
export function refuseOtherTunnels(network: Field): void {
  const vpn = network.find(names.vpnType);
  if (vpn && vpn.value !== 'wireguard') throw vpn.wrong('is not wireguard');
}

/** The peers of a list with their fields, and the entries that are none. */
export interface PeerList {
  readonly peers: Peer[];
  readonly fields: Field[];
  readonly skipped: SkippedPeer[];
}

/**
 * The peers of a network. Skips unusable peers, peers outside the range, and all that share an
 * address, a key or an id, because it is unclear which is meant. A range of one address is no range
 * of a network.
 */
export function decodePeers(list: Field, cidr: Prefix): PeerList {
  const range = new BlockList();
  range.addSubnet(addressOf(cidr), lengthOf(cidr));
  const read = list.items(maxPeers).map((field) =>
    field.attempt<{ field: Field; peer?: Peer; reason?: string }>(
      (at) => {
        const peer = decodePeer(at);
        if (lengthOf(cidr) < 32 && !range.check(peer.address)) throw outside(at.need(aliases.peer.address));
        return { field, peer };
      },
      (reason) => ({ field, reason }),
    ),
  );
  const clashes = findClashes(read.flatMap(({ peer }) => peer ?? []));
  const skipped: SkippedPeer[] = [];
  const good: { readonly field: Field; readonly peer: Peer }[] = [];
  for (const { field, peer, reason } of read) {
    const clash = peer && clashes.get(peer);
    if (peer && clash === undefined) good.push({ field, peer });
    else skipped.push(describeSkipped(field, clash ?? reason ?? ''));
  }
  return { peers: good.map(({ peer }) => peer), fields: good.map(({ field }) => field), skipped };
}

/** Why peers exclude each other, for each of them. */
function findClashes(peers: readonly Peer[]): ReadonlyMap<Peer, string> {
  const clashes = new Map<Peer, string>();
  const note = (what: string, of: (peer: Peer) => string) => {
    const first = new Map<string, Peer>();
    for (const peer of peers) {
      const other = first.get(of(peer));
      if (other === undefined) first.set(of(peer), peer);
      else for (const each of [other, peer]) clashes.set(each, `another peer has the same ${what}`);
    }
  };
  note('id', ({ id }) => `${id}`);
  note('public key', ({ publicKey }) => publicKey);
  note('address', ({ address }) => address);
  return clashes;
}

/** The readable parts of an entry that is no peer. */
function describeSkipped(field: Field, reason: string): SkippedPeer {
  return {
    id: field.tryFind(aliases.peer.id, decodeId),
    name: field.tryFind(aliases.peer.name, (name) => name.text(maxName)),
    publicKey: field.tryFind(aliases.peer.publicKey, (key) => key.parse((text) => parsePeerKey(text))),
    address: field.tryFind(aliases.peer.address, decodeAddress),
    reason,
  };
}

export function withSkipped(skipped: readonly SkippedPeer[]): Pick<NetworkMap, 'skipped'> {
  return skipped.length === 0 ? {} : { skipped };
}

/** An IPv4 address, alone or as its host prefix. */
function decodeAddress(field: Field): Address {
  const { address, range } = decodePlace(field);
  if (range !== null) throw field.wrong('is a range of addresses');
  return address;
}

/** An IPv4 address, and the range that it is written with. */
export function decodePlace(field: Field): { readonly address: Address; readonly range: Prefix | null } {
  const range = field.parse((text) => (/\/(?!32$)/.test(text) ? parseRange(text) : null));
  const address = field.parse((text) => parseAddress(text.replace(/\/\d+$/, '')));
  if (familyOf(address) !== 4) throw field.wrong('is not an IPv4 address');
  return { address, range };
}

export function outside(address: Field) {
  return address.wrong('is outside the range of the network');
}

/**
 * One peer of any network. Only key and address are required: the id defaults to the key, the name
 * to the address, and the type to connector if there are routes.
 */
export function decodePeer(field: Field): Peer {
  const id = field.find(aliases.peer.id);
  const type = field.find(aliases.peer.type);
  const served = field.find(aliases.peer.routes);
  const withdrawn = field.find(aliases.peer.withdrawn);
  const publicKey = field.need(aliases.peer.publicKey).parse((text) => parsePeerKey(text));
  const address = decodeAddress(field.need(aliases.peer.address));
  const routes = served && decodeRoutes(served);
  return {
    id: id ? decodeId(id) : publicKey,
    name: field.find(aliases.peer.name)?.text(maxName) ?? address,
    type: type ? decodeType(type) : routes?.length ? 'connector' : 'origin',
    publicKey,
    address,
    endpoint: field.find(aliases.peer.endpoint)?.parse((text) => parseEndpoint(text)) ?? null,
    routes,
    withdrawn: withdrawn ? decodeRoutes(withdrawn) : [],
    ...decodePeerFields(field),
  };
}

function decodeType(field: Field): PeerType {
  const known = peerTypes.find((type) => type === field.value);
  if (known === undefined) throw field.wrong(`must be one of ${peerTypes.join(', ')}`);
  return known;
}

/** The range of a network, without host bits. */
export function decodeRange(field: Field): Prefix {
  const range = field.parse((text) => parsePrefix(text));
  if (familyOf(range) !== 4) throw field.wrong('is not an IPv4 range');
  return range;
}

function decodeRoutes(field: Field): Prefix[] {
  return [...new Set(field.items(maxRoutes).map((route) => route.parse((text) => parseRange(text))))];
}
