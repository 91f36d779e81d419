import { STATUS_CODES } from 'node:http';
import { Refused } from '../core/errors.ts';
import { discard, header, parseJson, type Reading, readWhole } from './body.ts';
import type { Response } from './connection.ts';
import { shown } from './shown.ts';

/** What a person does about each status that an operation is refused with. */
export type Remedies = Readonly<Partial<Record<number, string>>>;

const usualRemedies: Remedies = {
  401: 'sign in again with "cpn login"',
  403: 'your role does not allow it; ask an owner or an admin',
  404: 'check the id, and that --api names the right control plane',
  413: 'send less',
  422: 'correct what it names',
};
const otherRemedy = 'check that --api names the control plane and nothing in front of it';

const maxRefusalBytes = 64 * 1024;

/** What was asked, and whether it was asked before. */
export interface Asked {
  readonly what: string;
  readonly remedies?: Remedies;
  /** An earlier attempt may have been carried out. */
  readonly repeated: boolean;
  readonly onRefusal?: (refused: RefusedBody) => void;
}

/** The body that a refusal came with. */
export interface RefusedBody {
  readonly status: number;
  readonly headers: Response['headers'];
  readonly bytes: Buffer;
}

/** Turns a 4xx into an error that says what was refused, why in the server's words, and what to do about it. */
export async function refusal(response: Response, asked: Asked, reading: Reading): Promise<Refused> {
  const status = response.statusCode;
  const body = await readReason(response, asked, { ...reading, maxBytes: maxRefusalBytes }).catch(() => null);
  const reason = reasonIn(body, reading);
  const remedy = asked.remedies?.[status] ?? usualRemedy(status, reason);
  const what = asked.repeated ? `${asked.what}, sent again because the first reply was lost,` : asked.what;
  return new Refused(status, what, reason ?? statusName(status), remedy, asked.repeated);
}

/** Our own control plane ends a 403 with what to do, after a semicolon; another service names its reason at the most. */
function usualRemedy(status: number, reason: string | null): string | null {
  if (status !== 403 || reason === null) return usualRemedies[status] ?? otherRemedy;
  return reason.includes('; ') ? null : 'ask an owner or an admin';
}

const maxBriefBytes = 4_096;

/**
 * Why a service is busy, in its own words; null where it does not say so in a few bytes. What stands in
 * front of a service, such as a balancer, says it in other forms.
 */
export async function readBriefReason(response: Response, reading: Reading): Promise<string | null> {
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

async function readReason(response: Response, { onRefusal }: Asked, reading: Reading): Promise<unknown> {
  const bytes = await readWhole(response, reading);
  onRefusal?.({ status: response.statusCode, headers: response.headers, bytes });
  return parseJson(response, bytes, reading);
}

/** `422 (Unprocessable Entity)` without the number; the words of the reply's status line are the server's to choose. */
export function statusName(status: number): string {
  return STATUS_CODES[status] ?? 'unknown status';
}

/** `{"message", "errors": {field: [rule]}}` as one line, or null where a reply has nothing of the kind. */
function reasonIn(body: unknown, { secrets }: Reading): string | null {
  if (!isRecord(body)) return null;
  const message = typeof body.message === 'string' ? shown(body.message, secrets, 200).replace(/\.$/, '') : '';
  const fields = isRecord(body.errors) ? Object.entries(body.errors) : [];
  const rules = fields.slice(0, 5).map(([field, rule]) => {
    const lines = [rule].flat().filter((line) => typeof line === 'string');
    return `${shown(field, secrets, 40)}: ${shown(lines.slice(0, 3).join(', '), secrets, 200)}`;
  });
  if (rules.length > 0 && fields.every(([field]) => message.includes(field))) return rules.join('; ');
  const details = rules.length === 0 ? '' : `(${rules.join('; ')})`;
  return [message, details].filter((part) => part !== '').join(' ') || null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
