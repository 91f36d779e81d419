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
  /**
   * What the host does where its network was deleted; null where the service does not state
   * deletions.
   */
  readonly deletion?: 'follow' | 'applied' | null;
  readonly wait?: Wait | undefined;
  /** At most; absent for as many as the client makes. */
  readonly attempts?: number;
  readonly remedies: Remedies;
  /** Called with the refusal of a delta, before the whole map is read. */
  readonly onRefused: (refusal: CpnError) => void;
}

/** The headers that ask for changes alone. */
const deltaHeaders: readonly string[] = ['a-im', 'peer-messages'];

/**
 * Requests a map. A gateway may refuse the status 226 of changes: after two failures of a gateway,
 * and after a reply that cannot be read, the request goes without A-IM. If that brings a map, one
 * more request finds out whether changes are refused.
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

/** Requests a map, without a wait. */
export function requestAtOnce(http: HttpClient, request: MapRequest, headers: Call['headers'] = {}): Promise<Reply> {
  const { signal } = request.wait ?? {};
  return send(http, request, { headers, ...(signal && { wait: { seconds: null, signal } }) });
}

async function sendWhole(http: HttpClient, request: MapRequest, headers: Readonly<Record<string, string>>) {
  const kept = Object.entries(headers).filter(([name]) => !deltaHeaders.includes(name));
  return { ...(await requestAtOnce(http, request, Object.fromEntries(kept))), isReduced: true } as const;
}

/**
 * Whether a request for changes fails, right after one for the whole map succeeded: the service
 * itself works.
 */
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
