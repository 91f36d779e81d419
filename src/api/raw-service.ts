import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Secret } from '../core/crypto/secret.ts';
import { BadReply } from '../core/errors/index.ts';
import { baseOf, type ServiceAddress } from '../core/net/service-address.ts';
import type { Call } from './http/attempt.ts';
import { AttemptFailed } from './http/attempt-failed.ts';
import { header, isJson, readWhole } from './http/body.ts';
import { HttpClient } from './http/client.ts';
import type { ClientOptions } from './http/client-options.ts';
import type { HttpMessage, ReplyHead, ReplyLimits } from './http/connection.ts';
import { openContent, type RawBody } from './http/raw-body.ts';
import { resolvePath } from './http/target.ts';
import { readPages } from './pages.ts';

/** Any operation, as a user wrote it. */
export interface RawRequest {
  readonly method: HttpMessage['method'];
  /** Below the base address, perhaps with a query. */
  readonly path: string;
  /** Added to the query. */
  readonly query: readonly [string, string][];
  /** By name in lower case. They override ours. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RawBody | null;
  /** Not to be shown if the service repeats it. */
  readonly secrets: readonly Secret[];
  /** Receives the body of a 2xx unbuffered; called again for each further attempt. */
  readonly sink?: (body: AsyncIterable<Uint8Array>) => Promise<void>;
  /** Receives the body of a 4xx, before the Refused. */
  readonly onRefusal?: (reply: RawReply) => void;
  /** Receives the number of sent bytes of the body. */
  readonly onSent?: (bytes: number) => void;
}

export interface RawReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly json: boolean;
  /** Unmodified except for gzip; empty if a sink received it. */
  readonly bytes: Uint8Array;
}

export interface RawService {
  /** Only GET and HEAD are repeated if they may have been executed. */
  send(request: RawRequest): Promise<RawReply>;
  /**
   * The unmodified pages of a list, while the service names a next one at its own address.
   *
   * @throws BadReply for a next page elsewhere, and for a list without an end
   */
  pages(request: Omit<RawRequest, 'sink'>): AsyncIterable<RawReply>;
}

/**
 * The service at `address`, which alone gets the token, if any. Throws InvalidValue for an address
 * that must receive no request.
 */
export function connectRawService(
  address: ServiceAddress,
  token: Secret | null,
  options: ClientOptions = {},
): RawService {
  const base = baseOf(address);
  const http = new HttpClient(address, options);
  const service: RawService = {
    async send({ method, path, query, headers, body, secrets, sink, onRefusal, onSent }) {
      const below = resolvePath(base, path);
      const content = body && (await openContent(body));
      const call: Call = {
        what: `${method} ${below.replace(/\?.*$/, '')}`,
        method,
        path: addQuery(below, query),
        ...(token && { bearer: token }),
        headers: sink ? { 'accept-encoding': 'identity', ...headers } : headers,
        ...(content && { content }),
        secrets,
        repeatable: method === 'GET' || method === 'HEAD',
        answered: true,
        receive: sink ? (response, reading) => pass(response, reading, sink) : readWhole,
        onRefusal: (refused) => onRefusal?.(present(refused)),
        remedies,
      };
      const answer = await counting(onSent, () => http.call(call));
      return present({ ...answer, bytes: answer.body instanceof Uint8Array ? answer.body : none });
    },
    async *pages(request) {
      const lister = { base, secrets: [...request.secrets, ...(token ? [token] : [])] };
      const first = addQuery(resolvePath(base, request.path), request.query);
      const read = async (path: string) => {
        const reply = await service.send({ ...request, path, query: [] });
        return { reply, body: parsed(reply), headers: reply.headers, size: reply.bytes.length };
      };
      for await (const { reply } of readPages(lister, first, read)) yield reply;
    },
  };
  return service;
}

function parsed({ json, bytes }: RawReply): unknown {
  if (!json) return null;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}

const none = new Uint8Array();
const noOperation = 'check method and path; the service describes its operations at /docs/api/openapi.json';
const remedies = { 404: noOperation, 405: noOperation };

function present({ status, headers, bytes }: { status: number; headers: ReplyHead['headers']; bytes: Uint8Array }) {
  const present = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const type = [headers['content-type']].flat()[0]?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return { status, headers: Object.fromEntries(present), json: isJson(type), bytes };
}

function addQuery(path: string, query: RawRequest['query']): string {
  if (query.length === 0) return path;
  return `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams([...query])}`;
}

async function pass(response: ReplyHead, { url }: ReplyLimits, sink: NonNullable<RawRequest['sink']>): Promise<null> {
  const coding = header(response, 'content-encoding') ?? 'identity';
  if (coding !== 'identity') throw new BadReply(url, 'has an encoding, which was not requested', 'leave out --output');
  await sink(chunks(response));
  return null;
}

async function* chunks({ body }: ReplyHead): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw AttemptFailed.from(error, false);
  }
}

/** undici reports sent bytes on a diagnostics channel; only one request is sent at a time. */
async function counting<T>(onSent: RawRequest['onSent'], work: () => Promise<T>): Promise<T> {
  const count = (message: unknown) => onSent?.((message as { chunk: Uint8Array }).chunk.length);
  subscribe(sent, count);
  try {
    return await work();
  } finally {
    unsubscribe(sent, count);
  }
}

const sent = 'undici:request:bodyChunkSent';
