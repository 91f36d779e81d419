import { deltaManipulation } from '../contract/network.ts';
import { BadReply } from '../core/errors.ts';
import type { Id, NetworkMap } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';
import type { Answer } from './attempt.ts';
import { decodeMap } from './decode.ts';
import { decodeDelta, isBase } from './decode-delta.ts';
import type { HttpClient } from './http.ts';
import type { Remedies } from './refusal.ts';
import type { MapReading, Wait } from './service.ts';

export interface MapRequest {
  readonly network: Id;
  readonly token: Secret;
  /** The map that the host has, or only the revision of one; null for neither. */
  readonly known: NetworkMap | string | null;
  /** The service can tell changes alone. */
  readonly changes: boolean;
  readonly wait?: Wait | undefined;
  readonly remedies: Remedies;
  /** Told of changes that were refused, before the whole map is read. */
  readonly onRefused: (refusal: BadReply) => void;
}

/** Reads a map, by its changes alone where the service tells them and they can be used, else whole. */
export async function readMap(http: HttpClient, request: MapRequest): Promise<MapReading> {
  const { network, known, wait } = request;
  const base = request.changes && known !== null && typeof known !== 'string' && isBase(known) ? known : null;
  const revision = typeof known === 'string' ? known : (known?.revision ?? null);
  const answer = await ask(http, request, wait, {
    ...(revision !== null && { 'if-none-match': revision }),
    ...(base && { 'a-im': deltaManipulation }),
  });
  const { status, waited } = answer;
  if (status === 304) return { map: null, waited };
  if (base === null || status !== 226) return { map: decodeWhole(answer, network), waited };
  try {
    return { map: decodeDelta(answer, base), waited };
  } catch (error) {
    if (!(error instanceof BadReply)) throw error;
    request.onRefused(error);
    const atOnce = wait?.signal && { seconds: null, signal: wait.signal };
    return { map: decodeWhole(await ask(http, request, atOnce, {}), network), waited };
  }
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
    remedies,
  });
}

function decodeWhole({ status, body, etag, reading }: Answer, network: Id): NetworkMap {
  // Taken for a map it would take away every peer that did not change.
  if (status === 226) throw new BadReply(reading.url, 'tells changes alone, which was not asked for', wrongService);
  return decodeMap(body, reading, { network, etag });
}

const wrongService = 'check that --api names the control plane itself';
