import type { Secret } from '../../core/crypto/secret.ts';
import { BadReply, type CpnError, InvalidValue } from '../../core/errors/index.ts';
import { readRetryAfter } from '../../core/util/backoff.ts';
import type { Wait } from '../service.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { discard, header, readJson, readNothing } from './body.ts';
import type { Connection, HttpMessage, ReplyHead, ReplyLimits } from './connection.ts';
import { type RefusedBody, type Remedies, readBriefReason, refusedReply, statusName } from './error-reply.ts';
import { findOtherHost, intercepted } from './interception.ts';
import { sanitizeForMessage } from './sanitize-for-message.ts';
import { userAgent } from './user-agent.ts';

/** One operation of the service. */
export interface Call {
  /** What it is, as the subject of "was refused". */
  readonly what: string;
  readonly method: HttpMessage['method'];
  /** Below the base address. */
  readonly path: string;
  readonly bearer?: Secret;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: object;
  /** A body that is not our JSON, in its place. */
  readonly content?: RequestBody;
  /** Takes the body of an answer in place of the JSON decoder; may be called again by the next attempt. */
  readonly receive?: (response: ReplyHead, reading: ReplyLimits) => Promise<unknown>;
  /** Is shown the body of a refusal, as it came. */
  readonly onRefusal?: (refused: RefusedBody) => void;
  /** How long the service may hold its answer back; it adds to the deadline of the call. */
  readonly wait?: Wait;
  /** Headers that are left out after two failures of a gateway: it may refuse the kind of reply that they ask for. */
  readonly dispensable?: readonly string[];
  /** What `headers` and `json` carry that must never be shown. */
  readonly secrets?: readonly Secret[];
  /** True when the same request twice does no more than once. */
  readonly repeatable: boolean;
  /** Attempts at most, where it is not for the client to say. */
  readonly attempts?: number;
  /** The hint for a request that may have been carried out, and is not retried. */
  readonly unconfirmed?: string;
  /** True when a 404 means that what was asked for is the case already. */
  readonly goneIsDone?: boolean;
  /** True of a resource that each service has, so that a 404 in HTML is not from the service. */
  readonly alwaysThere?: boolean;
  /** False when there is nothing in the answer to decode. */
  readonly answered: boolean;
  readonly remedies?: Remedies;
}

/** A body, made again for each attempt. */
export interface RequestBody {
  readonly headers: Readonly<Record<string, string>>;
  open(): HttpMessage['body'];
}

export interface Reply {
  readonly status: number;
  readonly headers: ReplyHead['headers'];
  /** The JSON that came, or what `receive` made of it; null where nothing was to come. */
  readonly body: unknown;
  readonly etag: string | null;
  /** The reply has Preference-Applied for `wait`, or was held for 5 s or longer. */
  readonly waited: boolean;
  /** The request went without its `dispensable` headers. */
  readonly isReduced?: true;
  /** The address that answered, as the kernel writes it; null where it is not known. */
  readonly from: string | null;
  /** The user whose program answered; null where that is not visible or not checked. */
  readonly listener: number | null;
  readonly reading: ReplyLimits;
}

/** The state of an attempt, in addition to its call. */
export interface Attempt {
  readonly message: HttpMessage;
  readonly reading: ReplyLimits;
  /** Milliseconds since the epoch by this host's clock. */
  readonly now: number;
  /** An earlier attempt may have been carried out. */
  readonly perhapsDone: boolean;
}

/** An overloaded service may set a longer Retry-After than one call waits; a daemon follows it. */
const maxRetryAfterMs = 300_000;

/** Refusals that another attempt may not get. A 408 is a proxy's that waited too long. */
const repeatedStatuses: readonly number[] = [408, 429];

/** The request that a call becomes after so long, with the base address's path in front. */
export function compose(call: Call, basePath: string, elapsedMs: number): HttpMessage {
  const authorization = call.bearer ? { authorization: `Bearer ${credential(call.bearer)}` } : {};
  const seconds = call.wait?.seconds ?? null;
  const left = seconds === null ? null : Math.max(0, Math.ceil(seconds - elapsedMs / 1000));
  const prefer = left === null ? {} : { prefer: `wait=${left}` };
  const type = call.json ? { 'content-type': 'application/json' } : call.content?.headers;
  return {
    method: call.method,
    path: `${basePath}${call.path}`,
    headers: {
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': userAgent,
      ...type,
      ...authorization,
      ...prefer,
      ...call.headers,
    },
    body: call.json ? JSON.stringify(call.json) : (call.content?.open() ?? null),
  };
}

/** Sends a call once. A failure that a retry may fix is an AttemptFailed, any other an error of the catalogue. */
export async function attempt(connection: Connection, call: Call, circumstances: Attempt): Promise<Reply> {
  const { message, reading, now, perhapsDone } = circumstances;
  const response = await connection.send(message);
  const status = response.statusCode;
  const waited = /^\s*wait\s*=/i.test(header(response, 'preference-applied') ?? '');
  const { headers } = response;
  const { peer: from, listener } = connection;
  const etag = header(response, 'etag');
  const answer = (body: unknown) => ({ status, headers, body, etag, waited, from, listener, reading });

  if (status === 511) {
    discard(response);
    throw intercepted(`it answered 511 (${statusName(511)})`);
  }
  if (call.answered && (status === 205 || status === 206)) throw partial(response, reading);
  if (status >= 200 && status < 300 && call.answered)
    return answer(await (call.receive ?? readJson)(response, reading));
  // A deletion is done when there is nothing to delete, if not by this attempt then by one whose reply was lost.
  const isGone = status === 404 && call.method === 'DELETE' && (call.goneIsDone === true || perhapsDone);
  if (status >= 400 && status < 500 && !repeatedStatuses.includes(status) && !isGone) {
    throw await refusedReply(response, { ...call, repeated: perhapsDone }, reading);
  }
  if (repeatedStatuses.includes(status) || status >= 500)
    throw busy(response, now, await readBriefReason(response, reading));
  if (status >= 200 && status < 300) await readNothing(response, reading);
  discard(response);
  const unchanged = status === 304 && call.headers?.['if-none-match'] !== undefined;
  if (status >= 300 && status < 400 && !unchanged) throw redirect(response, reading);
  return answer(null);
}

function busy(response: ReplyHead, now: number, reason: string | null): AttemptFailed {
  const status = response.statusCode;
  // Relative to the Date of the reply, so that a wrong clock on this host makes no difference.
  const servedAt = Date.parse(header(response, 'date') ?? '');
  const from = Number.isNaN(servedAt) ? now : servedAt;
  const retryAfterMs = readRetryAfter(header(response, 'retry-after'), from, maxRetryAfterMs);
  const limited = status === 429;
  // cpn's control plane repeats Retry-After at the end of its message.
  const cause = reason?.replace(/; try again in \d{1,3} s$/, '') ?? null;
  const saysWhy = status === 503 && cause !== null;
  const name = limited && cause !== null ? '' : ` (${statusName(status)})`;
  const isWhole = retryAfterMs !== null && retryAfterMs < maxRetryAfterMs;
  const when = limited && isWhole ? `in ${Math.ceil(retryAfterMs / 1000)} s` : 'later';
  const answered = `it answered ${status}${name}${cause === null ? '' : `: ${cause}`}`;
  return new AttemptFailed(saysWhy ? cause : answered, {
    retry: true,
    limited,
    busy: saysWhy,
    sent: true,
    perhapsDone: status !== 429 && status !== 503,
    heard: true,
    status,
    remedy: limited || cause !== null ? `try again ${when}` : 'its log says why; try again later',
    retryAfterMs,
  });
}

/** A 2xx without the whole content: no request names a range, and a reply without content is no answer. */
function partial(response: ReplyHead, { url }: ReplyLimits): CpnError {
  discard(response);
  const status = response.statusCode;
  const remedy = 'check that --api names the control plane and nothing in front of it';
  return new BadReply(url, `is ${status} (${statusName(status)}), which is no whole answer`, remedy);
}

function redirect(response: ReplyHead, reading: ReplyLimits): CpnError | AttemptFailed {
  const { url, secrets } = reading;
  const host = findOtherHost(response, reading);
  if (host !== null) return intercepted(`it redirects to ${host}`);
  const location = header(response, 'location');
  const target = location === null ? null : URL.parse(location, url);
  const where = target ? ` to ${sanitizeForMessage(`${target.origin}${readable(target.pathname)}`, secrets, 100)}` : '';
  return new BadReply(
    url,
    `is a redirect (${response.statusCode})${where}, and redirects are not followed`,
    'give --api the address that answers itself',
  );
}

/** A path without its percent signs, behind which a secret would not be known. */
function readable(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return '';
  }
}

function credential(bearer: Secret): string {
  const value = bearer.reveal();
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new InvalidValue('access token', undefined, 'is empty or has a character that no token has', 'copy it again');
  }
  return value;
}
