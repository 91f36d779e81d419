import { isDeepStrictEqual } from 'node:util';
import type { Secret } from '../core/crypto/secret.ts';
import { BadReply } from '../core/errors/index.ts';
import { deltaManipulation } from '../core/map/apply-delta.ts';
import type { Id, NetworkMap } from '../core/map/model.ts';
import { messageKinds } from '../core/map/peer-message.ts';
import { tryParseAddress } from '../core/net/cidr.ts';
import { decodeDelta, describePartial, isBase, isDelta, isPerhapsDelta } from './decode/delta.ts';
import { decodeMap, decodeRemoved } from './decode/map.ts';
import { decodeMessages } from './decode/messages.ts';
import type { Answer } from './http/attempt.ts';
import type { HttpClient } from './http/client.ts';
import type { Remedies } from './http/error-reply.ts';
import type { MapReading, Wait } from './service.ts';

export interface MapRequest {
  readonly network: Id;
  readonly token: Secret;
  /** The map that the host has, or only the revision of one; null for neither. */
  readonly known: NetworkMap | string | null;
  /** The service supports deltas. */
  readonly changes: boolean;
  /** The service lists in whole maps which peers are gone since a revision. */
  readonly listsRemoved: boolean;
  /** The service has the ETag in the body too. */
  readonly hasOwnTag: boolean;
  /** The id of this start of the daemon; null for a command, and where the service takes none. */
  readonly instance?: string | null;
  /** The host takes messages, and the service sends them. */
  readonly takesMessages: boolean;
  readonly wait?: Wait | undefined;
  readonly remedies: Remedies;
  /** Called with the refusal of a delta, before the whole map is read. */
  readonly onRefused: (refusal: BadReply) => void;
}

/** Reads a map: by a delta where the service sends a usable one, else whole. */
export async function readMap(http: HttpClient, request: MapRequest): Promise<MapReading> {
  const { known, wait } = request;
  const base = request.changes && known !== null && typeof known !== 'string' && isBase(known) ? known : null;
  const revision = typeof known === 'string' ? known : (known?.revision ?? null);
  const answer = await ask(http, request, wait, {
    ...(revision !== null && { 'if-none-match': revision }),
    ...(base && { 'a-im': deltaManipulation }),
    ...(base && request.takesMessages && { 'peer-messages': messageKinds.join(', ') }),
    ...(request.instance != null && { 'peer-instance': request.instance }),
  });
  const rest = { waited: answer.waited, ...readFrom(answer), ...readCloned(answer) };
  if (answer.status === 304) return { map: null, ...rest };
  const readWhole = async (refusal: BadReply) => {
    request.onRefused(refusal);
    const atOnce = wait?.signal && { seconds: null, signal: wait.signal };
    return { map: decodeWhole(await ask(http, request, atOnce, {}), request), ...rest };
  };
  if (base === null || !isDelta(answer)) {
    const map = decodeWhole(answer, request);
    if (base !== null && isPerhapsDelta(answer, map, base)) return readWhole(describePartial(answer));
    const isRepeated = revision !== null && isSameMap(map, known, revision);
    // Without a revision in the request the list would be about any other map.
    const isStated = request.listsRemoved && revision !== null;
    return {
      map,
      ...(isRepeated && { isRepeated }),
      ...(isStated && { removed: decodeRemoved(answer.body, answer.reading, map) }),
      ...rest,
    };
  }
  try {
    const messages = request.takesMessages ? decodeMessages(answer) : [];
    if (messages.length > 0) return { map: null, messages, ...rest };
    return { ...decodeDelta(answer, base, request.hasOwnTag), ...rest };
  } catch (error) {
    if (!(error instanceof BadReply)) throw error;
    return readWhole(error);
  }
}

/** When, which user's program, and the address that answered; IPv4 in IPv6 clothing (RFC 4291, section 2.5.5.2) is read as what it stands for. */
function readFrom({ from, headers, listener }: Answer): Pick<MapReading, 'from' | 'listener' | 'servedAt'> {
  const address = tryParseAddress(from?.replace(/^::ffff:(?=[\d.]+$)|%.*$/g, '') ?? '');
  const servedAt = Date.parse([headers.date].flat().join());
  return {
    ...(address !== null && { from: address }),
    ...(listener !== null && { listener }),
    ...(Number.isSafeInteger(servedAt) && { servedAt }),
  };
}

/** A header that is not a time is ignored. */
function readCloned({ headers }: Answer): Pick<MapReading, 'clonedSince'> {
  const at = Date.parse([headers['peer-cloned-since']].flat()[0] ?? '');
  return Number.isNaN(at) ? {} : { clonedSince: new Date(at).toISOString() };
}

function ask(
  http: HttpClient,
  { network, token, remedies }: MapRequest,
  wait: Wait | undefined,
  headers: Record<string, string>,
): Promise<Answer> {
  return http.call({
    what: `reading network ${network}`,
    method: 'GET',
    path: `/api/networks/${encodeURIComponent(network)}`,
    bearer: token,
    headers,
    ...(wait && { wait }),
    repeatable: true,
    answered: true,
    alwaysThere: true,
    remedies,
  });
}

/** True of a map that the request named, which would be a 304 if the ETag had come through. */
function isSameMap(map: NetworkMap, known: MapRequest['known'], revision: string): boolean {
  if (map.revision === revision) return true;
  if (known === null || typeof known === 'string') return false;
  return isDeepStrictEqual({ ...map, revision: null }, { ...known, revision: null });
}

function decodeWhole(answer: Answer, { network, hasOwnTag }: MapRequest): NetworkMap {
  const { body, etag, reading } = answer;
  // Taken for a map it would take away every peer that did not change.
  if (isDelta(answer)) throw new BadReply(reading.url, 'tells changes alone, which was not asked for', wrongService);
  return decodeMap(body, reading, { network, etag, hasOwnTag });
}

const wrongService = 'check that --api names the control plane itself';
