import { STATUS_CODES } from 'node:http';
import { denied, family, named, type Row, refused, unreachable } from '../malicious-reply.ts';
import { payloads } from '../payloads.ts';
import { network } from '../true-replies.ts';
import { jsonType, whole } from '../wire.ts';

const targets = [
  '/api/networks/7?again',
  '/',
  '',
  '//203.0.113.1/api',
  '///',
  'http://203.0.113.1:8787/api/networks/7',
  'https://203.0.113.1/api/networks/7',
  'http://127.0.0.1:9/',
  'http://169.254.169.254/latest/meta-data/',
  'file:///etc/shadow',
  'javascript:owned',
  'data:text/html,owned',
  'ftp://203.0.113.1/',
  'http://user:pw@203.0.113.1/',
  'http://[::1]/',
  'http://0x7f.1/',
  'http://203.0.113.1:99999/',
  '\u001b[2J',
  '/\u009b31m',
  '/%1b%5b2J',
  '?',
  '#',
  'x'.repeat(10_000),
  '/%00',
  '/$(touch /tmp/owned)',
];

const refusals = [
  400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424, 428,
  431, 451, 499,
];
const failures = [429, 500, 501, 502, 503, 504, 505, 507, 508, 511, 520, 599, 600, 999];

/** Values of Retry-After that a parser may take for a number or a date: the host waits for none of them. */
const waits = ['99999999999999999999', '7200', '3600', 'Fri, 31 Dec 9999 23:59:59 GMT', '1000000'];

const body = (text: string) => JSON.stringify({ message: text, errors: { [text]: [text], other: { [text]: text } } });

export const redirects = family('a redirect', [
  ...[301, 302, 303, 307, 308].flatMap((status, index) =>
    targets.filter((_, at) => at % 5 === index).map((target) => redirect(status, target)),
  ),
  ...[300, 304, 305, 306, 310, 399].map((status) => redirect(status, 'http://203.0.113.1:8787/other', 'enrolment')),
  ...[301, 302, 303, 307, 308].map((status) => redirect(status, 'http://203.0.113.2:8787/other', 'enrolment')),
  ...[301, 302, 303, 307, 308].map((status) => redirect(status, 'http://203.0.113.2:8787/another')),
  {
    name: '307 to two places',
    to: 'map',
    outcome: refused,
    make: () => whole({ status: '307 x', headers: ['Location: /one', 'Location: /other'] }),
  },
]);

export const refusalsOf = family('a refusal', [
  ...refusals.map((status) => refusal(status, 'no', 'map')),
  ...[400, 401, 403, 404, 409, 413, 422].map((status) => refusal(status, 'no', 'enrolment')),
  ...payloads.filter((_, index) => index % 2 === 0).map((text) => refusal(422, `OWNED${text}`, 'map')),
  ...payloads.filter((_, index) => index % 4 === 1).map((text) => refusal(403, `OWNED${text}`, 'enrolment')),
  echo('its token', 'map', (secret) => `${secret} ${secret}`),
  echo('its token in quotes', 'map', (secret) => `"${secret}"`),
  echo('its enrolment key', 'enrolment', (secret) => `no key ${secret}`),
  echo('its enrolment key in a field', 'enrolment', (secret) => `x${secret}x`),
]);

export const failuresOf = family('a failure', [
  ...failures.map((status) => failure(status, '86400', 'map')),
  ...[429, 500, 503].map((status) => failure(status, '86400', 'enrolment')),
  ...waits.map((wait) => failure(503, wait, 'map', ' to be asked again after')),
  ...['-1', '0x10', '1e3', 'never', '1, 2', ''].map(
    (wait): Row => ({ ...failure(429, wait, 'map', ' to be asked again after'), slow: true }),
  ),
]);

/** Success codes that do not fit a request for the whole map. */
export const successes = family('a success', [
  ...[204, 205].flatMap((status) => [success(status, true), success(status, false)]),
  success(206, true),
  success(226, true),
]);

function redirect(status: number, target: string, to: Row['to'] = 'map'): Row {
  const headers = [jsonType, `Location: ${target}`];
  const make: Row['make'] = (request) =>
    whole({
      status: `${status} x`,
      headers,
      body: status === 304 ? '' : JSON.stringify({ data: network(request) }),
      measured: status !== 304,
    });
  // What no header may hold is no HTTP, and what redirects to another host is not the control plane.
  const outcome = target.includes('\u001b') || isOther(target) ? unreachable : refused;
  return { name: `${status} of ${to} to ${named(target)}`, to, outcome, make: make };
}

/** True of an address on another host than that of the malicious server, as a client reads it. */
function isOther(target: string): boolean {
  const { protocol, hostname } = URL.parse(target, 'http://203.0.113.1') ?? {};
  return /^https?:$/.test(protocol ?? '') && hostname !== '203.0.113.1';
}

function refusal(status: number, text: string, to: Row['to']): Row {
  const phrase = STATUS_CODES[status] ?? 'x';
  const make = () => whole({ status: `${status} ${phrase}`, body: body(text) });
  return { name: `${status} to ${to} that says ${named(text)}`, to, outcome: denied, make: make };
}

function echo(what: string, to: Row['to'], say: (secret: string) => string): Row {
  return {
    name: `that sends ${to} ${what}`,
    to,
    outcome: denied,
    make: ({ secret }) => whole({ status: '403 x', body: body(say(secret)) }),
  };
}

function failure(status: number, wait: string, to: Row['to'], how = ' until'): Row {
  const make = () => whole({ status: `${status} x`, headers: [jsonType, `Retry-After: ${wait}`], body: body('no') });
  return { name: `${status} to ${to}${how} ${named(wait)}`, to, outcome: unreachable, make: make };
}

function success(status: number, isFull: boolean): Row {
  const make: Row['make'] = (request) =>
    whole({ status: `${status} OK`, body: isFull ? JSON.stringify({ data: network(request) }) : '' });
  return { name: `${status} with ${isFull ? 'a map' : 'nothing'}`, to: 'map', outcome: refused, make: make };
}
