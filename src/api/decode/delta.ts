import { BadReply } from '../../core/errors/index.ts';
import { applyDelta, deltaManipulation, findInvalid } from '../../core/map/apply-delta.ts';
import type { NetworkMap, PeerId } from '../../core/map/model.ts';
import { aliases } from '../aliases.ts';
import type { Answer } from '../http/attempt.ts';
import { Field } from './field.ts';
import { decodeId, sameId } from './id.ts';
import { decodeRevision } from './map.ts';
import { decodeNetwork, decodePeers, maxPeers } from './network.ts';

/** True of a map to which a delta applies: all of it came from the service, under a strong ETag (RFC 3229, 10.5.2). */
export function isBase(map: NetworkMap): map is NetworkMap & { readonly revision: string } {
  const isExact = map.revision !== null && !map.revision.startsWith('W/');
  return isExact && map.skipped === undefined && !map.peers.some((peer) => peer.given || peer.unlisted);
}

/** A map, and the peers that the service states to be gone from the one before. */
export interface ChangedMap {
  readonly map: NetworkMap;
  readonly removed: readonly PeerId[];
}

/**
 * The map that a 226 makes of the one that the host has (RFC 3229). Changes to any other are refused, and so is what breaks a rule
 * of maps, be it alone or together with what was there before: whole or not at all.
 */
export function decodeDelta(answer: Answer, base: NetworkMap, hasOwnTag = false): ChangedMap {
  const { headers, body, etag, reading } = answer;
  const refuse = (problem: string) => new BadReply(reading.url, problem, 'the whole map is asked for instead');
  if (headers.im !== deltaManipulation) throw refuse('is in a form that was not asked for');
  if (headers['delta-base'] !== base.revision) throw refuse('tells changes to another map than the one that is here');
  const network = Field.ofReply(body, reading).as('network');
  const head = decodeNetwork(network);
  if (!sameId(head.id, base.id)) throw network.need(aliases.network.id).wrong('is not that of the network asked for');
  const { peers, skipped } = decodePeers(network.need(aliases.network.peers), head.cidr);
  if (skipped.length > 0) throw refuse('has a peer that cannot be used');
  const removed = network.need(aliases.network.removed).items(maxPeers).map(decodeId);
  const gone = new Set(removed);
  if (peers.some(({ id }) => gone.has(id)))
    throw network.need(aliases.network.removed).wrong('names a peer that the reply also lists');
  const map = applyDelta(base, { ...head, revision: decodeRevision(network, { etag, hasOwnTag }), peers, removed });
  const flaw = findInvalid(map, maxPeers);
  if (flaw !== null) throw network.wrong(`${flaw} once it is changed so`);
  return { map, removed };
}
