import { STATUS_CODES } from 'node:http';
import { Refused } from '../../core/errors/index.ts';
import { type AttemptFailed, useHttps } from './attempt-failed.ts';
import { discard, header, parseJson, readWhole } from './body.ts';
import type { ReplyHead, ReplyLimits } from './connection.ts';
import { hasPageType, intercepted, isPage } from './interception.ts';
import { sanitizeForMessage } from './sanitize-for-message.ts';

/** Hints for the statuses of a refused operation. Some depend on the reason in the reply. */
export type Remedies = Readonly<Partial<Record<number, string | ((reason: string | null) => string)>>>;

const usualRemedies: Readonly<Partial<Record<number, string>>> = {
  401: 'sign in again with "cpn login"',
  403: 'your role does not allow it; ask an owner or an admin',
  404: 'check the id, and that --api names the right control plane',
  409: 'read the present state, and repeat the change if it is still needed',
  413: 'send a smaller request',
  422: 'check the values of the command',
};
const otherRemedy = 'check that --api names the control plane and nothing in front of it';

const maxRefusalBytes = 64 * 1024;

/** The statuses with which a captive portal or a proxy demands a login. */
const loginStatuses: readonly number[] = [401, 403, 407];

export interface FailedRequest {
  readonly what: string;
  readonly remedies?: Remedies;
  /** True if an earlier attempt may have been executed. */
  readonly repeated: boolean;
  readonly onRefusal?: (refused: RefusedBody) => void;
  readonly alwaysThere?: boolean;
}

export interface RefusedBody {
  readonly status: number;
  readonly headers: ReplyHead['headers'];
  readonly bytes: Buffer;
}

/** Converts a 4xx into an error: operation, reason, hint. A login page is an interception. */
export async function refusedReply(
  response: ReplyHead,
  asked: FailedRequest,
  reading: ReplyLimits,
): Promise<Refused | AttemptFailed> {
  const status = response.statusCode;
  const bounded = { ...reading, maxBytes: maxRefusalBytes };
  const bytes = await readWhole(response, bounded).catch(() => null);
  if (bytes !== null) asked.onRefusal?.({ status, headers: response.headers, bytes });
  const wantsLogin = loginStatuses.includes(status) || (status === 404 && asked.alwaysThere === true);
  // A page that is too long or truncated is still a page.
  if (wantsLogin && (bytes === null ? hasPageType(response) : isPage(response, bytes))) {
    return intercepted(`it answered ${status} with HTML`);
  }
  const body = bytes && parseReason(response, bytes, bounded);
  const reason = reasonIn(body, reading);
  const fields = fieldsIn(body, reading);
  const remedy = hasHint(status, reason)
    ? null
    : (givenRemedy(asked, status, reason) ?? usualRemedy(status, reason, fields, reading.url));
  const what = asked.repeated ? `${asked.what}, sent again because the first reply was lost,` : asked.what;
  const circumstances = {
    repeated: asked.repeated,
    reasoned: reason !== null,
    fields,
    deleted: status === 410 ? deletionIn(body) : null,
  };
  return new Refused(status, what, reason ?? statusName(status), remedy, circumstances);
}

function givenRemedy({ remedies }: FailedRequest, status: number, reason: string | null): string | undefined {
  const given = remedies?.[status];
  return typeof given === 'function' ? given(reason) : given;
}

/** True for a 403 of our control plane, which has a hint after a semicolon. */
function hasHint(status: number, reason: string | null): boolean {
  return status === 403 && reason?.includes('; ') === true;
}

function usualRemedy(status: number, reason: string | null, fields: Refused['fields'], url: string): string | null {
  // The rules of our control plane mostly have a hint after a semicolon.
  if (status === 422 && fields.length > 0) {
    return fields.every(({ rule }) => rule.includes('; ')) ? null : 'correct these values';
  }
  // nginx and Go reply like this to plain http on an https port.
  if (status === 400 && reason === null && url.startsWith('http:')) return `http was tried: ${useHttps}`;
  if (status !== 403 || reason === null) return usualRemedies[status] ?? otherRemedy;
  return 'ask an owner or an admin';
}

const maxBriefBytes = 4_096;

/** Returns a service's short JSON reason for being busy, or null: proxies use other formats. */
export async function readBriefReason(response: ReplyHead, reading: ReplyLimits): Promise<string | null> {
  if (!/^application\/json\b/.test(header(response, 'content-type') ?? '')) {
    discard(response);
    return null;
  }
  const brief = { ...reading, maxBytes: maxBriefBytes };
  const body = await readWhole(response, brief)
    .then((bytes) => parseJson(response, bytes, brief))
    .catch(() => null);
  return reasonIn(body, reading);
}

function parseReason(response: ReplyHead, bytes: Buffer, reading: ReplyLimits): unknown {
  try {
    return parseJson(response, bytes, reading);
  } catch {
    return null;
  }
}

/** The standard text of a status, because the server chooses the text of its status line. */
export function statusName(status: number): string {
  return STATUS_CODES[status] ?? 'unknown status';
}

/** Formats `{"message", "errors": {field: [rule]}}` as one line; null for other bodies. */
function reasonIn(body: unknown, reading: ReplyLimits): string | null {
  if (!isRecord(body)) return null;
  const message =
    typeof body.message === 'string' ? sanitizeForMessage(body.message, reading.secrets, 200).replace(/\.$/, '') : '';
  const fields = fieldsIn(body, reading);
  const rules = fields.slice(0, 5).map(({ field, rule }) => `${field}: ${rule}`);
  if (rules.length > 0 && fields.every(({ field }) => message.includes(field))) return rules.join('; ');
  const details = rules.length === 0 ? '' : `(${rules.join('; ')})`;
  return [message, details].filter((part) => part !== '').join(' ') || null;
}

/** Returns the deleted network; null for values in another format. */
function deletionIn(body: unknown): Refused['deleted'] {
  const deleted = isRecord(body) ? body.deleted : undefined;
  if (!isRecord(deleted)) return null;
  const { id, nonce } = deleted;
  const isId = Number.isSafeInteger(id) || (typeof id === 'string' && id.length <= 128);
  return isId && typeof nonce === 'string' && /^[\x21-\x7e]{1,128}$/.test(nonce)
    ? { id: id as number | string, nonce }
    : null;
}

function fieldsIn(body: unknown, { secrets }: ReplyLimits): Refused['fields'] {
  const fields = isRecord(body) && isRecord(body.errors) ? Object.entries(body.errors) : [];
  return fields.slice(0, 20).map(([field, rule]) => {
    const lines = [rule].flat().filter((line) => typeof line === 'string');
    return {
      field: sanitizeForMessage(field, secrets, 40),
      rule: sanitizeForMessage(lines.slice(0, 3).join(', '), secrets, 200),
    };
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
