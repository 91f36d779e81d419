import { Secret } from '../../core/crypto/secret.ts';
import type { Id, NetworkMap, PeerId } from '../../core/map/model.ts';
import { aliases } from '../aliases.ts';
import { decodeId, Field, type Source, sameId } from './field.ts';
import { decodeNetwork, decodePeers, maxPeers, withSkipped } from './network.ts';

export interface MapDecoding {
  readonly network: Id;
  /** The ETag header. */
  readonly etag: string | null;
  /** True if the service describes `etag` in the body, which no proxy changes. */
  readonly hasOwnTag?: boolean;
}

/** The requested network's map, under its ETag. Unusable peers are skipped. */
export function decodeMap(body: unknown, source: Source, asked: MapDecoding): NetworkMap {
  const network = Field.ofReply(body, source).as('network');
  const head = decodeNetwork(network);
  if (!sameId(head.id, asked.network))
    throw network.need(aliases.network.id).wrong('is not that of the requested network');
  const { peers, skipped } = decodePeers(network.need(aliases.network.peers), head.cidr);
  return { ...head, revision: decodeRevision(network, asked), peers, ...withSkipped(skipped) };
}

/**
 * The peers that a whole map states as removed since the request's revision. Ignores a field with
 * another meaning, and peers that the map lists.
 */
export function decodeRemoved(body: unknown, source: Source, { peers }: NetworkMap): readonly PeerId[] {
  const network = Field.ofReply(body, source).as('network');
  const removed = network.tryFind(aliases.network.removed, (found) => found.items(maxPeers).map(decodeId)) ?? [];
  const listed = new Set(peers.map(({ id }) => id));
  return removed.filter((id) => !listed.has(id));
}

/** A bearer token, as an Authorization header can carry it. */
export function decodeToken(field: Field): Secret {
  const token = field.text(4096);
  if (!/^[\x21-\x7e]+$/.test(token)) throw field.wrong('is not a token');
  return new Secret(token);
}

/** The map's ETag: from its body if the service has one there, else from the header. */
export function decodeRevision(network: Field, { etag, hasOwnTag }: Omit<MapDecoding, 'network'>): string | null {
  const own = hasOwnTag ? network.tryFind(aliases.network.etag, (found) => entityTag(found.text(140))) : null;
  return own ?? entityTag(etag);
}

/**
 * An entity tag (RFC 9110, 8.8.3) of at most 128 characters. Proxies that compress make tags weak,
 * and If-None-Match takes weak ones.
 */
export function entityTag(etag: string | null): string | null {
  return etag !== null && /^(?:W\/)?"[\x21\x23-\x7e]{0,128}"$/.test(etag) ? etag : null;
}
