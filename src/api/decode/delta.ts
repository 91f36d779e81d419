import { BadReply } from '../../core/errors/index.ts';
import { applyDelta, deltaManipulation, findInvalid } from '../../core/map/apply-delta.ts';
import type { NetworkMap, PeerId } from '../../core/map/model.ts';
import { aliases } from '../aliases.ts';
import type { Reply } from '../http/attempt.ts';
import { decodeId, Field, sameId } from './field.ts';
import { decodeRevision, entityTag } from './map.ts';
import { decodeNetwork, decodePeers, maxPeers } from './network.ts';

/** A delta applies if the map is all from the service, with a strong ETag (RFC 3229, 10.5.2). */
export function isBase(map: NetworkMap): map is NetworkMap & { readonly revision: string } {
  const isExact = map.revision !== null && !map.revision.startsWith('W/');
  return isExact && map.skipped === undefined && !map.peers.some((peer) => peer.given || peer.unlisted);
}

/** True for a delta: a proxy may turn 226 into 200 without headers, but only deltas have `base`. */
export function isDelta(answer: Reply): boolean {
  const { status, headers } = answer;
  const isMarked = [headers.im, headers['delta-base']].some((header) => header !== undefined);
  return status === 226 || isMarked || readBase(answer) !== null;
}

/** The ETag to which a delta applies; null if absent, as from an earlier version. */
function readBase({ body, reading }: Reply): string | null {
  const network = Field.ofReply(body, reading).as('network');
  return network.tryFind(aliases.network.base, (found) => entityTag(found.text(140))) ?? null;
}

/**
 * True if a reply to A-IM may be a delta of an earlier version behind a proxy that hides that. Such
 * a delta lists removed peers; a whole map that does so lists all others of the base.
 *
 * @param map the reply, read as a whole map
 */
export function isPerhapsDelta({ body, reading }: Reply, map: NetworkMap, base: NetworkMap): boolean {
  const network = Field.ofReply(body, reading).as('network');
  const removed = network.tryFind(aliases.network.removed, (found) => found.items(maxPeers).map(decodeId));
  if (removed === null) return false;
  const stated = new Set([...removed, ...map.peers.map(({ id }) => id), ...(map.skipped ?? []).map(({ id }) => id)]);
  return !base.peers.every(({ id }) => stated.has(id));
}

export function describePartial({ reading }: Reply): BadReply {
  return refuseDelta(reading, 'leaves out peers that it does not list as removed');
}

const refuseDelta = ({ url }: Reply['reading'], problem: string) =>
  new BadReply(url, problem, 'cpn requests the whole map instead');

/** A map, and the peers that the service states as removed. */
export interface ChangedMap {
  readonly map: NetworkMap;
  readonly removed: readonly PeerId[];
}

/**
 * Applies a delta (RFC 3229) to the host's map, completely or not at all. Refuses a delta to
 * another map, and one that breaks a rule of maps, alone or with the map.
 */
export function decodeDelta(answer: Reply, base: NetworkMap, hasOwnTag = false): ChangedMap {
  const { headers, body, etag, reading } = answer;
  const refuse = (problem: string) => refuseDelta(reading, problem);
  const ownBase = readBase(answer);
  const isKnownForm = headers.im === deltaManipulation || (headers.im === undefined && ownBase !== null);
  if (!isKnownForm) throw refuse('is in a form that was not requested');
  // The header has the request's ETag, perhaps with a proxy's suffix.
  if (![ownBase, headers['delta-base']].includes(base.revision))
    throw refuse('has changes to a map other than the stored one');
  const network = Field.ofReply(body, reading).as('network');
  const head = decodeNetwork(network, base);
  if (!sameId(head.id, base.id)) throw network.need(aliases.network.id).wrong('is not that of the requested network');
  const { peers, skipped } = decodePeers(network.need(aliases.network.peers), head.cidr);
  if (skipped.length > 0) throw refuse('has a peer that cannot be used');
  const removed = network.need(aliases.network.removed).items(maxPeers).map(decodeId);
  const gone = new Set(removed);
  if (peers.some(({ id }) => gone.has(id)))
    throw network.need(aliases.network.removed).wrong('names a peer that the reply also lists');
  const map = applyDelta(base, { ...head, revision: decodeRevision(network, { etag, hasOwnTag }), peers, removed });
  const flaw = findInvalid(map, maxPeers);
  if (flaw !== null) throw network.wrong(`${flaw} after this change`);
  return { map, removed };
}
