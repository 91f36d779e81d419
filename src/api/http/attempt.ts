import { arch, platform } from 'node:process';
import type { Secret } from '../../core/crypto/secret.ts';
import { BadReply, type CpnError, InvalidValue } from '../../core/errors/index.ts';
import { readRetryAfter } from '../../core/util/backoff.ts';
import { version } from '../../core/util/version.ts';
import type { Wait } from '../service.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { discard, header, readJson, readNothing } from './body.ts';
import type { Connection, HttpMessage, ReplyHead, ReplyLimits } from './connection.ts';
import { type RefusedBody, type Remedies, readBriefReason, refusedReply, statusName } from './error-reply.ts';
import { findOtherHost, intercepted } from './interception.ts';
import { sanitizeForMessage } from './sanitize-for-message.ts';

/** A control plane reads the version and platform of its hosts from it. */
export const userAgent = `cpn/${version} (${platform} ${arch})`;

export interface Call {
  /** Its name, as the subject of "was refused". */
  readonly what: string;
  readonly method: HttpMessage['method'];
  /** Relative to the base address. */
  readonly path: string;
  readonly bearer?: Secret;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: object;
  /** A body that replaces `json`. */
  readonly content?: RequestBody;
  /** Reads the reply instead of the JSON decoder. The next attempt may call it again. */
  readonly receive?: (response: ReplyHead, reading: ReplyLimits) => Promise<unknown>;
  /** Receives the unmodified body of a refusal. */
  readonly onRefusal?: (refused: RefusedBody) => void;
  /** How long the service may delay its reply. Extends the deadline of the call. */
  readonly wait?: Wait;
  /** Headers to omit after two gateway failures: a gateway may refuse the replies they request. */
  readonly dispensable?: readonly string[];
  /** The secrets in `headers` and `json`, which messages must never show. */
  readonly secrets?: readonly Secret[];
  /** True if a repeated request has no further effect. */
  readonly repeatable: boolean;
  /** Overrides the client's maximum number of attempts. */
  readonly attempts?: number;
  /** The hint for a request that may have been executed and is not retried. */
  readonly unconfirmed?: string;
  /** True if a 404 means that the requested state already holds. */
  readonly goneIsDone?: boolean;
  /** True for a resource that every service has, so that a 404 in HTML is not from the service. */
  readonly alwaysThere?: boolean;
  /** False if the reply has no content to decode. */
  readonly answered: boolean;
  readonly remedies?: Remedies;
}

/** A body, created again for each attempt. */
export interface RequestBody {
  readonly headers: Readonly<Record<string, string>>;
  open(): HttpMessage['body'];
}

export interface Reply {
  readonly status: number;
  readonly headers: ReplyHead['headers'];
  /** The JSON of the reply, or the result of `receive`; null if no content was expected. */
  readonly body: unknown;
  readonly etag: string | null;
  /** True if the reply has Preference-Applied for `wait`, or was delayed for at least 5 s. */
  readonly waited: boolean;
  /** True if the request was sent without its `dispensable` headers. */
  readonly isReduced?: true;
  /** The address of the replying server in the kernel's form; null if unknown. */
  readonly from: string | null;
  /** The user whose program replied; null if not visible or not checked. */
  readonly listener: number | null;
  readonly reading: ReplyLimits;
}

export interface Attempt {
  readonly message: HttpMessage;
  readonly reading: ReplyLimits;
  /** Milliseconds since 1970 by this host's clock. */
  readonly now: number;
  /** True if an earlier attempt may have been executed. */
  readonly perhapsDone: boolean;
}

/** An overloaded service may set a longer Retry-After than one call waits. A daemon respects it. */
const maxRetryAfterMs = 300_000;

/** Refusals that another attempt may avoid. A 408 comes from a proxy that waited too long. */
const repeatedStatuses: readonly number[] = [408, 429];

/** The request of a call after `elapsedMs`, with the path of the base address as prefix. */
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

/** Sends a call once. @throws AttemptFailed if a retry may help, else an error of the catalogue */
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
  // Nothing to delete counts as done: an attempt whose reply was lost may have deleted it.
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

/** Refuses a 2xx without the whole content: no request has a range, and content is required. */
function partial(response: ReplyHead, { url }: ReplyLimits): CpnError {
  discard(response);
  const status = response.statusCode;
  const remedy = 'check that --api names the control plane and nothing in front of it';
  return new BadReply(url, `is ${status} (${statusName(status)}), which is not a complete reply`, remedy);
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
    'give --api the address to which it redirects',
  );
}

/** Decodes percent escapes, which could hide a secret; empty if they are invalid. */
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
    throw new InvalidValue(
      'access token',
      undefined,
      'is empty or has a character that is not valid in a token',
      'copy it again',
    );
  }
  return value;
}
