import type { PeerMessageKind } from '../contract/network.ts';
import type { Secret } from '../core/crypto/secret.ts';
import { BadReply, type CpnError, Intercepted, Unreachable } from '../core/errors/index.ts';
import type { Id, NetworkMap } from '../core/map/model.ts';
import type { Call, Reply } from './http/attempt.ts';
import type { HttpClient } from './http/client.ts';
import type { Remedies } from './http/error-reply.ts';
import type { MapReading, Wait } from './service.ts';

export interface MapRequest {
  readonly network: Id;
  readonly token: Secret;
  /** The host's map, or only its revision; null for neither. */
  readonly known: NetworkMap | string | null;
  /** True if the service supports deltas. */
  readonly changes: boolean;
  /** True if whole maps list removed peers. */
  readonly listsRemoved: boolean;
  /** True if the ETag is in the body too. */
  readonly hasOwnTag: boolean;
  /** The id of this daemon start; null for a command, or if the service takes none. */
  readonly instance?: string | null;
  /** The kinds of messages that the host takes and the service sends; empty for none. */
  readonly messageKinds: readonly PeerMessageKind[];
  /** The receipt of the messages in the last reply; null for none. */
  readonly receipt?: string | null;
  /** The host's reaction to a deletion; null if the service does not state deletions. */
  readonly deletion?: 'follow' | 'applied' | null;
  readonly wait?: Wait | undefined;
  /** By default, the client's maximum. */
  readonly attempts?: number;
  readonly remedies: Remedies;
  /** Called if a delta is refused, before the whole map is read. */
  readonly onRefused: (refusal: CpnError) => void;
}

/** The headers that request only changes. */
const deltaHeaders: readonly string[] = ['a-im', 'peer-messages'];

/**
 * Requests a map. A gateway may refuse status 226: after two gateway failures, or an unreadable
 * reply, the request omits A-IM. If that yields a map, one more request shows if changes are
 * refused.
 */
export async function requestMap(
  http: HttpClient,
  request: MapRequest,
  headers: Readonly<Record<string, string>>,
): Promise<{ readonly answer: Reply } & Pick<MapReading, 'refusesDeltas'>> {
  if (headers['a-im'] === undefined) return { answer: await send(http, request, { headers, ...waitOf(request) }) };
  const first = { headers, dispensable: deltaHeaders, ...waitOf(request) };
  const answer = await send(http, request, first).catch((error: unknown) => {
    if (!(error instanceof BadReply) && !(error instanceof Intercepted)) throw error;
    request.onRefused(error);
    return sendWhole(http, request, headers);
  });
  if (answer.isReduced !== true || answer.status !== 200) return { answer };
  return { answer, ...((await isRefused(http, request, headers)) && { refusesDeltas: true }) };
}

/** Without a wait. */
export function requestAtOnce(http: HttpClient, request: MapRequest, headers: Call['headers'] = {}): Promise<Reply> {
  const { signal } = request.wait ?? {};
  return send(http, request, { headers, ...(signal && { wait: { seconds: null, signal } }) });
}

async function sendWhole(http: HttpClient, request: MapRequest, headers: Readonly<Record<string, string>>) {
  const kept = Object.entries(headers).filter(([name]) => !deltaHeaders.includes(name));
  return { ...(await requestAtOnce(http, request, Object.fromEntries(kept))), isReduced: true } as const;
}

/** True if a request for changes fails just after one for the whole map, so the service works. */
async function isRefused(http: HttpClient, request: MapRequest, headers: Call['headers']): Promise<boolean> {
  try {
    await requestAtOnce(http, { ...request, attempts: 1 }, headers);
    return false;
  } catch (error) {
    if (error instanceof BadReply) return true;
    if (error instanceof Unreachable) return error.delivered;
    throw error;
  }
}

function waitOf({ wait }: MapRequest): Pick<Call, 'wait'> {
  return wait === undefined ? {} : { wait };
}

function send(
  http: HttpClient,
  { network, token, remedies, attempts, deletion = null }: MapRequest,
  { headers, ...part }: Pick<Call, 'headers' | 'dispensable' | 'wait'>,
): Promise<Reply> {
  return http.call({
    what: `reading network ${network}`,
    method: 'GET',
    path: `/api/networks/${encodeURIComponent(network)}`,
    bearer: token,
    headers: { ...headers, ...(deletion !== null && { 'network-deletion': deletion }) },
    ...part,
    ...(attempts !== undefined && { attempts }),
    repeatable: true,
    answered: true,
    alwaysThere: true,
    remedies,
  });
}
