import { BlockList } from 'node:net';
import { PeerType } from '../contract/peer.ts';
import {
  type Address,
  addressOf,
  familyOf,
  lengthOf,
  maskPrefix,
  type Prefix,
  parseAddress,
  parsePrefix,
} from '../core/cidr.ts';
import { parseEndpoint } from '../core/endpoint.ts';
import { parsePublicKey } from '../core/keys.ts';
import type { NetworkMap, Peer, PeerId } from '../core/model.ts';
import { aliases } from './aliases.ts';
import type { Field } from './field.ts';

const names = aliases.network;
export const maxName = 120;
const maxPeers = 16_384;
/** Five times what the contract lets anybody advertise. */
const maxRoutes = 256;

/** What a network is apart from its peers. The range must be canonical; routes have their host bits cleared. */
export function decodeNetwork(network: Field): Pick<NetworkMap, 'id' | 'name' | 'cidr' | 'routes'> {
  const vpn = network.find(names.vpnType);
  if (vpn && vpn.value !== 'wireguard') throw vpn.wrong('is not wireguard');
  return {
    id: network.need(names.id).integer(),
    name: network.need(names.name).text(maxName),
    cidr: decodeRange(network.need(names.cidr)),
    routes: decodeRoutes(network.need(names.routes)),
  };
}

/**
 * All peers of a network or none: a bad peer, two that share an address, a key or an id, or one outside the range reject
 * the whole list, because a map with holes would take peers away that nobody removed.
 */
export function decodePeers(list: Field, cidr: Prefix): Peer[] {
  const range = new BlockList();
  range.addSubnet(addressOf(cidr), lengthOf(cidr));
  const claimed = new Map<string, Field>();
  return list.items(maxPeers).map((field) => {
    const peer = decodePeer(field);
    if (!range.check(peer.address)) throw outside(field.need(aliases.peer.address));
    claim(claimed, `id ${peer.id}`, field.need(aliases.peer.id));
    claim(claimed, `key ${peer.publicKey}`, field.need(aliases.peer.publicKey));
    claim(claimed, `address ${peer.address}`, field.need(aliases.peer.address));
    return peer;
  });
}

/** A number, or a word of at most 64 characters. */
export function decodePeerId(field: Field): PeerId {
  if (typeof field.value === 'number') return field.integer();
  // It becomes a segment of a path, where dots would climb.
  if (typeof field.value === 'string' && /^(?!\.{1,2}$)[\x21-\x7e]{1,64}$/.test(field.value)) return field.value;
  throw field.wrong('is neither a whole number nor a word of at most 64 characters');
}

/** An IPv4 address, alone or as the prefix that holds nothing else. */
export function decodeAddress(field: Field): Address {
  const address = field.parse((text) => parseAddress(text.replace(/\/32$/, '')));
  if (familyOf(address) !== 4) throw field.wrong('is not an IPv4 address');
  return address;
}

/** The error that an address is none of the network's. */
export function outside(address: Field) {
  return address.wrong('is outside the range of the network');
}

function decodePeer(field: Field): Peer {
  const routes = field.find(aliases.peer.routes);
  return {
    id: decodePeerId(field.need(aliases.peer.id)),
    name: field.need(aliases.peer.name).text(maxName),
    type: decodeType(field.need(aliases.peer.type)),
    publicKey: field.need(aliases.peer.publicKey).parse((text) => parsePublicKey(text)),
    address: decodeAddress(field.need(aliases.peer.address)),
    endpoint: field.find(aliases.peer.endpoint)?.parse((text) => parseEndpoint(text)) ?? null,
    routes: routes && decodeRoutes(routes),
  };
}

function decodeType(field: Field): PeerType {
  const known = PeerType.safeParse(field.value);
  if (!known.success) throw field.wrong(`is none of ${PeerType.options.join(', ')}`);
  return known.data;
}

function decodeRange(field: Field): Prefix {
  const range = field.parse((text) => parsePrefix(text));
  if (familyOf(range) !== 4) throw field.wrong('is not an IPv4 range');
  return range;
}

function decodeRoutes(field: Field): Prefix[] {
  return [...new Set(field.items(maxRoutes).map((route) => route.parse((text) => maskPrefix(text))))];
}

function claim(claimed: Map<string, Field>, what: string, field: Field): void {
  const other = claimed.get(what);
  if (other) throw field.wrong(`is also ${other.path}`);
  claimed.set(what, field);
}
