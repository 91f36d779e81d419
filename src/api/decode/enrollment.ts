import type { KeyPair } from '../../core/crypto/keys.ts';
import type { NetworkMap, Peer } from '../../core/map/model.ts';
import { findOwnSkipped } from '../../core/map/skipped-peers.ts';
import { covers, hostPrefix, type Prefix } from '../../core/net/cidr.ts';
import { settlePeers } from '../../core/wg-quick/settle-peers.ts';
import { aliases } from '../aliases.ts';
import type { Enrolled, EnrollmentRequest } from '../service.ts';
import {
  type DecodedConfig,
  decodeConfig,
  type OwnAddress,
  rangeOfConfig,
  readGivenPeers,
  readRemarks,
} from './config.ts';
import { decodeId, Field, type Source } from './field.ts';
import { decodeToken, entityTag } from './map.ts';
import {
  decodeExtensions,
  decodeNetworkRoutes,
  decodePeers,
  decodePlace,
  decodeRange,
  maxName,
  outside,
  refuseOtherTunnels,
  withSkipped,
} from './network.ts';

const names = aliases.enrollment;

/** The request, by which the reply is read. */
type RequestedPeer = Pick<EnrollmentRequest, 'publicKey' | 'name' | 'type' | 'endpoint'>;

/**
 * The reply to an enrolment. Required: this host's address, and the network's peers or a wg-quick
 * text. The request supplies the rest, or it is unknown. Peer and network may be fields or the
 * reply itself; peers and text may be in the network or next to it. A foreign or outside address,
 * or another key than the one sent, is a BadReply.
 */
export function decodeEnrollment(body: unknown, source: Source, asked: RequestedPeer): Enrolled {
  const reply = Field.ofReply(body, source);
  const parts = findParts(reply, asked);
  const { network, config } = parts;
  refuseOtherTunnels(network);
  const { own, place } = findPlace(parts);
  const listed = parts.list && { ...decodePeers(parts.list, place.cidr), routes: [] };
  const settled = config && settlePeers(config.text, { publicKey: asked.publicKey, address: place.address });
  const given = config && settled && readGivenPeers(config.field, settled, place);
  const { peers, routes, skipped } = listed ?? given ?? { peers: [], routes: [], skipped: [] };
  const advertised = decodeNetworkRoutes(network);
  const isFlat = network.value === reply.value && (own === null || own.value === reply.value);
  const named = network.find(isFlat ? aliases.network.flatId : aliases.network.id);
  const id = named && decodeId(named);
  const name = network.find(isFlat ? aliases.network.flatName : aliases.network.name)?.text(maxName);
  const revision = network.find(aliases.network.revision)?.integer();
  const etag = reply.find(names.etag)?.value;
  const map: NetworkMap = {
    id,
    name: name ?? (id === null ? 'network' : `network-${id}`),
    cidr: place.cidr,
    routes: [...new Set([...advertised, ...routes])],
    // With this ETag, the first read can request a delta. Older services only have the number.
    revision: entityTag(typeof etag === 'string' ? etag : null) ?? (revision === undefined ? null : `"${revision}"`),
    ...decodeExtensions(network),
    peers,
    ...withSkipped(skipped),
  };
  const peer = decodeOwnPeer(own ?? config?.field ?? reply, own, peers, place, asked);
  refuseOwnSkipped(map, peer, asked, own ?? reply);
  const token = reply.find(names.accessToken);
  const served = config && asked.type === 'connector' ? advertised.filter((route) => !routes.includes(route)) : null;
  const text = settled && readRemarks(settled);
  const hasRemarks = text !== null && text.dns.length + text.remarks.length > 0;
  return {
    ...{ peer, map: withSelf(map, peer, asked, served), accessToken: token && decodeToken(token) },
    ...(hasRemarks && { text }),
  };
}

interface Parts {
  readonly reply: Field;
  readonly network: Field;
  /** Null without a peer; a text may then have the address. */
  readonly peer: Field | null;
  /** Null if peers are listed, or nothing is. */
  readonly list: Field | null;
  readonly config: DecodedConfig | null;
}

function findParts(reply: Field, { publicKey }: RequestedPeer): Parts {
  const peer = reply.find(names.peer) ?? (reply.find(aliases.peer.address) && reply.as(names.peer[0]));
  const nested = reply.find(names.network);
  const places = [reply, ...(nested ? [nested] : []), ...(reply.find(names.peer) && peer ? [peer] : [])];
  const text = places.map((place) => place.find(names.config)).find((found) => found !== null) ?? null;
  const list = (nested ?? reply).find(aliases.network.peers) ?? reply.find(aliases.network.peers);
  const isListed = list !== null && !(text !== null && Array.isArray(list.value) && list.value.length === 0);
  const isNetwork = isListed || text !== null || reply.find(aliases.network.cidr) !== null;
  const network = nested ?? (isNetwork ? reply.as(names.network[0]) : reply.need(names.network));
  if (!isListed && text === null) network.need(aliases.network.peers);
  if (peer === null && text === null) reply.need(names.peer);
  const config = isListed || text === null ? null : decodeConfig(text, publicKey);
  return { reply, network, peer, list: isListed ? list : null, config };
}

function findPlace({ network, peer, config }: Parts): { own: Field | null; place: OwnAddress } {
  const field = peer && (config?.text.address ? peer.find(aliases.peer.address) : peer.need(aliases.peer.address));
  const decoded = field && decodePlace(field);
  const given = config?.text.address ?? null;
  const address = decoded?.address ?? given?.address;
  if (address === undefined)
    throw config?.field.wrong('has no Address in its [Interface]') ?? network.wrong('has no address');
  if (field && given && given.address !== address)
    throw field.wrong('is not the Address of the wg-quick text in the reply');
  const range = network.find(aliases.network.cidr);
  const cidr = range
    ? decodeRange(range)
    : (config && rangeOfConfig(config.text)) || decoded?.range || hostPrefix(address);
  if (!covers(cidr, address)) throw outside(field ?? config?.field ?? network);
  return { own: peer, place: { address, cidr } };
}

function decodeOwnPeer(at: Field, own: Field | null, peers: readonly Peer[], place: OwnAddress, asked: RequestedPeer) {
  const key = own?.find(aliases.peer.publicKey);
  if (key && key.value !== asked.publicKey) throw key.wrong('is not the key that was sent');
  const listed = peers.find((one) => one.publicKey === asked.publicKey);
  const given = own?.find(aliases.peer.id);
  const id = given ? decodeId(given) : (listed?.id ?? asked.publicKey);
  const where = own?.find(aliases.peer.address) ?? at;
  // Without an id, it is listed by its key.
  const isOther = listed !== undefined && listed.id !== id && listed.id !== listed.publicKey;
  if (listed && (listed.address !== place.address || isOther)) {
    throw where.wrong('or its id is not what the network lists for this key');
  }
  if (!listed && peers.some((one) => one.address === place.address || one.id === id)) {
    throw where.wrong("or its id is another peer's");
  }
  return { id, name: own?.find(aliases.peer.name)?.text(maxName) ?? asked.name, address: place.address };
}

/** A list entry of this host must be as valid as the host's own. */
function refuseOwnSkipped(map: NetworkMap, peer: Enrolled['peer'], { publicKey }: RequestedPeer, at: Field): void {
  const keyPair = { publicKey } as KeyPair;
  const bad = findOwnSkipped(map, { keyPair, rotation: null, membership: { peer } });
  if (bad) throw at.wrong(`is in a network whose entry for this host cannot be used: ${bad.reason}`);
}

/** Adds this host, which a service may leave out of its list. */
function withSelf(map: NetworkMap, own: Enrolled['peer'], asked: RequestedPeer, routes: Prefix[] | null): NetworkMap {
  const { publicKey, type, endpoint } = asked;
  if (map.peers.some((peer) => peer.publicKey === publicKey)) return map;
  const self: Peer = { ...own, type, publicKey, endpoint, routes, withdrawn: [], unlisted: true };
  return { ...map, peers: [...map.peers, self] };
}
