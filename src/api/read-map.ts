import { isDeepStrictEqual } from 'node:util';
import { BadReply } from '../core/errors/index.ts';
import { deltaManipulation } from '../core/map/apply-delta.ts';
import type { NetworkMap } from '../core/map/model.ts';
import { tryParseAddress } from '../core/net/cidr.ts';
import { decodeDelta, describePartial, isBase, isDelta, isPerhapsDelta } from './decode/delta.ts';
import { decodeMap, decodeRemoved } from './decode/map.ts';
import { decodeMessages, isUnchanged } from './decode/messages.ts';
import type { Reply } from './http/attempt.ts';
import type { HttpClient } from './http/client.ts';
import { type MapRequest, requestAtOnce, requestMap } from './request-map.ts';
import type { MapReading } from './service.ts';

/** Reads a map by a delta if the service sends a usable one, else whole. */
export async function readMap(http: HttpClient, request: MapRequest): Promise<MapReading> {
  const { known } = request;
  const base = request.changes && known !== null && typeof known !== 'string' && isBase(known) ? known : null;
  const revision = typeof known === 'string' ? known : (known?.revision ?? null);
  // With a receipt also for a whole map: the host has these messages.
  const takesMessages = request.messageKinds.length > 0 && (base !== null || request.receipt != null);
  const headers = {
    ...(revision !== null && { 'if-none-match': revision }),
    ...(base && { 'a-im': deltaManipulation }),
    ...(base && request.messageKinds.length > 0 && { 'peer-messages': request.messageKinds.join(', ') }),
    ...(takesMessages && { 'peer-messages-receipt': request.receipt ?? 'none' }),
    ...(request.instance != null && { 'peer-instance': request.instance }),
  };
  const { answer, ...refusal } = await requestMap(http, request, headers);
  const rest = { waited: answer.waited, ...refusal, ...readFrom(answer), ...readCloned(answer) };
  if (answer.status === 304) return { map: null, ...rest };
  const readWhole = async (refusal: BadReply) => {
    request.onRefused(refusal);
    return { map: decodeWhole(await requestAtOnce(http, request, {}), request), ...rest };
  };
  if (base === null || !isDelta(answer)) {
    const map = decodeWhole(answer, request);
    if (base !== null && isPerhapsDelta(answer, map, base)) return readWhole(describePartial(answer));
    const isRepeated = revision !== null && isSameMap(map, known, revision);
    // Without a revision in the request, the list refers to an unknown map.
    const isStated = request.listsRemoved && revision !== null;
    return {
      map,
      ...(isRepeated && { isRepeated }),
      ...(isStated && { removed: decodeRemoved(answer.body, answer.reading, map) }),
      ...rest,
    };
  }
  try {
    const batch = request.messageKinds.length > 0 ? decodeMessages(answer) : null;
    if (batch !== null && isUnchanged(answer)) return { map: null, batch, ...rest };
    return { ...decodeDelta(answer, base, request.hasOwnTag), ...(batch && { batch }), ...rest };
  } catch (error) {
    if (!(error instanceof BadReply)) throw error;
    return readWhole(error);
  }
}

/** The time, user and address of a reply, with IPv4-mapped IPv6 as IPv4 (RFC 4291, 2.5.5.2). */
function readFrom({ from, headers, listener }: Reply): Pick<MapReading, 'from' | 'listener' | 'servedAt'> {
  const address = tryParseAddress(from?.replace(/^::ffff:(?=[\d.]+$)|%.*$/g, '') ?? '');
  const servedAt = Date.parse([headers.date].flat().join());
  return {
    ...(address !== null && { from: address }),
    ...(listener !== null && { listener }),
    ...(Number.isSafeInteger(servedAt) && { servedAt }),
  };
}

/** Ignores a header that is no time. */
function readCloned({ headers }: Reply): Pick<MapReading, 'clonedSince'> {
  const at = Date.parse([headers['peer-cloned-since']].flat()[0] ?? '');
  return Number.isNaN(at) ? {} : { clonedSince: new Date(at).toISOString() };
}

/** True for the named map, which would be a 304 if the ETag had got through. */
function isSameMap(map: NetworkMap, known: MapRequest['known'], revision: string): boolean {
  if (map.revision === revision) return true;
  if (known === null || typeof known === 'string') return false;
  return isDeepStrictEqual({ ...map, revision: null }, { ...known, revision: null });
}

function decodeWhole(answer: Reply, { network, hasOwnTag }: MapRequest): NetworkMap {
  const { body, etag, reading } = answer;
  // As a map, it would remove every unchanged peer.
  if (isDelta(answer)) throw new BadReply(reading.url, 'has only changes, which were not requested', wrongService);
  return decodeMap(body, reading, { network, etag, hasOwnTag });
}

const wrongService = 'check that --api names the control plane itself';
