import { readRetryAfter } from '../core/backoff.ts';
import { BadReply, type CpnError, InvalidValue } from '../core/errors.ts';
import type { Secret } from '../core/secret.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { discard, header, type Reading, readJson } from './body.ts';
import type { Connection, Message, Response } from './connection.ts';
import { type RefusedBody, type Remedies, readBriefReason, refusal, statusName } from './refusal.ts';
import type { Wait } from './service.ts';
import { shown } from './shown.ts';

/** One operation of the service. */
export interface Call {
  /** What it is, as the subject of "was refused". */
  readonly what: string;
  readonly method: Message['method'];
  /** Below the base address. */
  readonly path: string;
  readonly bearer?: Secret;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: object;
  /** A body that is not our JSON, in its place. */
  readonly content?: Content;
  /** Takes the body of an answer in place of the JSON decoder; may be called again by the next attempt. */
  readonly receive?: (response: Response, reading: Reading) => Promise<unknown>;
  /** Is shown the body of a refusal, as it came. */
  readonly onRefusal?: (refused: RefusedBody) => void;
  /** How long the service may hold its answer back; it adds to the deadline of the call. */
  readonly wait?: Wait;
  /** What `headers` and `json` carry that must never be shown. */
  readonly secrets?: readonly Secret[];
  /** True when asking twice does no more than asking once. */
  readonly repeatable: boolean;
  /** What to say besides where it may have been carried out and is not sent again. */
  readonly doubt?: string;
  /** True when a 404 means that what was asked for is the case already. */
  readonly goneIsDone?: boolean;
  /** False when there is nothing in the answer to decode. */
  readonly answered: boolean;
  readonly remedies?: Remedies;
}

/** A body that is made anew for each attempt. */
export interface Content {
  readonly headers: Readonly<Record<string, string>>;
  open(): Message['body'];
}

export interface Answer {
  readonly status: number;
  readonly headers: Response['headers'];
  /** The JSON that came, or what `receive` made of it; null where nothing was to come. */
  readonly body: unknown;
  readonly etag: string | null;
  /** The service says that it heeded `wait`. */
  readonly waited: boolean;
  readonly reading: Reading;
}

/** What an attempt needs to know beside its call. */
export interface Attempt {
  readonly message: Message;
  readonly reading: Reading;
  /** Milliseconds since the epoch by this host's clock. */
  readonly now: number;
  /** An earlier attempt may have been carried out. */
  readonly perhapsDone: boolean;
}

/** A service that is overloaded may ask for more than one call waits; a daemon can heed it. */
const maxRetryAfterMs = 300_000;

/** The request that a call becomes after so long, with the base address's path in front. */
export function compose(call: Call, basePath: string, elapsedMs: number): Message {
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
      'user-agent': 'cpn',
      ...type,
      ...authorization,
      ...prefer,
      ...call.headers,
    },
    body: call.json ? JSON.stringify(call.json) : (call.content?.open() ?? null),
  };
}

/** Sends a call once. What another attempt could mend is an AttemptFailed, everything else an error of the catalogue. */
export async function attempt(connection: Connection, call: Call, circumstances: Attempt): Promise<Answer> {
  const { message, reading, now, perhapsDone } = circumstances;
  const response = await connection.send(message);
  const status = response.statusCode;
  const waited = /^\s*wait\s*=/i.test(header(response, 'preference-applied') ?? '');
  const { headers } = response;
  const answer = (body: unknown) => ({ status, headers, body, etag: header(response, 'etag'), waited, reading });

  if (call.answered && (status === 205 || status === 206)) throw partial(response, reading);
  if (status >= 200 && status < 300 && call.answered)
    return answer(await (call.receive ?? readJson)(response, reading));
  if (status >= 400 && status < 500 && status !== 429 && !isGone(call, status, perhapsDone)) {
    throw await refusal(response, { ...call, repeated: perhapsDone }, reading);
  }
  if (status === 429 || status >= 500) throw busy(response, now, await readBriefReason(response, reading));
  discard(response);
  const unchanged = status === 304 && call.headers?.['if-none-match'] !== undefined;
  if (status >= 300 && status < 400 && !unchanged) throw redirect(response, reading);
  return answer(null);
}

/** A deletion is done when there is nothing to delete, if not by this attempt then by one whose reply was lost. */
function isGone(call: Call, status: number, perhapsDone: boolean): boolean {
  return status === 404 && call.method === 'DELETE' && (call.goneIsDone === true || perhapsDone);
}

function busy(response: Response, now: number, reason: string | null): AttemptFailed {
  const status = response.statusCode;
  // Counted from the server's own clock where it tells it, so that a wrong clock here makes no difference.
  const servedAt = Date.parse(header(response, 'date') ?? '');
  const from = Number.isNaN(servedAt) ? now : servedAt;
  const retryAfterMs = readRetryAfter(header(response, 'retry-after'), from, maxRetryAfterMs);
  const limited = status === 429;
  // Our own control plane ends its reason with what Retry-After says.
  const told = reason?.replace(/; try again in \d{1,3} s$/, '') ?? null;
  const saysWhy = status === 503 && told !== null;
  const name = limited && told !== null ? '' : ` (${statusName(status)})`;
  const isWhole = retryAfterMs !== null && retryAfterMs < maxRetryAfterMs;
  const later = limited && isWhole ? `in ${Math.ceil(retryAfterMs / 1000)} s` : 'later';
  const answered = `it answered ${status}${name}${told === null ? '' : `: ${told}`}`;
  return new AttemptFailed(saysWhy ? told : answered, {
    retry: true,
    limited,
    busy: saysWhy,
    sent: true,
    perhapsDone: status !== 429 && status !== 503,
    heard: true,
    remedy: limited || told !== null ? `try again ${later}` : 'its log says why; try again later',
    retryAfterMs,
  });
}

/** Whatever comes with it, nobody asked for a part, and where there is nothing to read there is no answer. */
function partial(response: Response, { url }: Reading): CpnError {
  discard(response);
  const status = response.statusCode;
  const remedy = 'check that --api names the control plane and nothing in front of it';
  return new BadReply(url, `is ${status} (${statusName(status)}), which is no whole answer`, remedy);
}

function redirect(response: Response, { url, secrets }: Reading): CpnError {
  const location = header(response, 'location');
  const target = location === null ? null : URL.parse(location, url);
  const where = target ? ` to ${shown(`${target.origin}${readable(target.pathname)}`, secrets, 100)}` : '';
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
