import fc from 'fast-check';
import { expect } from 'vitest';
import { entityTag } from '../../src/api/decode/map.ts';
import { parseJson } from '../../src/api/http/body.ts';
import { refusedReply } from '../../src/api/http/error-reply.ts';
import { resolvePath } from '../../src/api/http/target.ts';
import { accepts, baseOf, matches, readWait } from '../../src/control-plane/http/conditional-requests.ts';
import { formatETag } from '../../src/control-plane/push/to-contract.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply, InvalidValue, Refused } from '../../src/core/errors/index.ts';
import { deltaManipulation } from '../../src/core/map/apply-delta.ts';
import { readRetryAfter } from '../../src/core/util/backoff.ts';
import { source } from '../api/samples.ts';
import { fuzz } from './fuzz.ts';
import { hostile, mutated, pumped } from './hostile-texts.ts';
import { bounded, unlessRefused } from './time-bound.ts';

const secret = new Secret('cpn_canary');
const reading = { url: source.url, maxBytes: 1 << 20, secrets: [secret] };

fuzz(
  'any refusal is reported without a secret, and without control characters',
  500,
  [
    fc.constantFrom(401, 404, 422, 499),
    fc.oneof(hostile, fc.constant('application/json')),
    mutated(
      fc.constant(
        JSON.stringify({ message: 'no cpn_canary', errors: { name: ['is \u001b[2J bad', secret.reveal()] } }),
      ),
    ),
  ],
  async (statusCode, type, text) => {
    const body = (async function* () {
      yield Buffer.from(text);
    })();
    const response = { statusCode, headers: { 'content-type': type }, body } as never;
    const refused = await refusedReply(response, { what: 'it', repeated: false }, reading);
    expect(refused).toBeInstanceOf(Refused);
    expect(refused.message).not.toContain(secret.reveal());
    expect(refused.message).not.toMatch(/[\p{Cc}\u202e]/u);
    bounded(() => unlessRefused([BadReply], () => parseJson(response, Buffer.from(text, 'latin1'), reading)));
  },
);

fuzz(
  'Retry-After is a time within bounds, or nothing',
  500,
  [mutated(fc.constantFrom('7', 'Sun, 01 Mar 2026 12:00:00 GMT')), fc.date({ noInvalidDate: true })],
  (header, now) => {
    const wait = bounded(() => readRetryAfter(header, now.getTime(), 300_000));
    if (wait !== null) expect(wait >= 0 && wait <= 300_000).toBe(true);
  },
);

fuzz(
  'an ETag is recognized, and Prefer and A-IM are parsed',
  500,
  [
    fc.nat(),
    mutated(fc.constantFrom('wait=7', 'respond-async, wait="60"; x', 'foo="a\\"b", WAIT = 3')),
    mutated(fc.constantFrom('cpn-delta', 'x;q=1, CPN-DELTA;q=0.5')),
  ],
  (revision, prefer, manipulation) => {
    const base = { revision, nonce: Buffer.from(String(revision)).toString('base64url') };
    const etag = formatETag(base);
    expect(entityTag(etag)).toBe(etag);
    expect(baseOf(etag)).toEqual(base);
    expect(baseOf(etag.replace('"', '"0'))).toBe(null);
    for (const header of [etag, `W/${etag}`, etag.replace(/"$/, '-gzip"'), `"x" , ${etag}`, '*'])
      expect(matches(header, etag)).toBe(true);
    for (const other of [
      { ...base, revision: revision + 1 },
      { ...base, nonce: 'other' },
    ])
      expect(matches(formatETag(other), etag)).toBe(false);
    bounded(() => matches(prefer, etag));
    const seconds = bounded(() => readWait(prefer));
    if (seconds !== null) expect(Number.isInteger(seconds) && seconds >= 0 && seconds <= 45).toBe(true);
    bounded(() => accepts(manipulation, deltaManipulation));
    const named = bounded(() => baseOf(manipulation));
    if (named !== null) expect(Number.isSafeInteger(named.revision)).toBe(true);
  },
);

fuzz(
  'a path stays below the address of the service',
  600,
  [mutated(fc.constantFrom('/api/networks', 'api/../api/x?y=%2e%2e', '/a//b/./c'))],
  (given) => {
    const service = new URL('https://cp.example.net/base');
    const path = bounded(() => unlessRefused([InvalidValue], () => resolvePath(service, given)));
    if (path === null) return;
    const url = new URL(`/base${path}`, service);
    expect(url.origin).toBe(service.origin);
    expect(url.pathname.startsWith('/base/')).toBe(true);
    expect(/[\s\p{Cc}]/u.test(path)).toBe(false);
  },
);

const words = [',', '"', '\\', ';', 'wait', '=', ' ', 'q=0', '.', '0', 'W/', '*', '/', '..', '%2e', '#', ':', '?'];

fuzz('no header and no path is long enough to hang on', 60, [pumped(words)], (text) => {
  for (const read of [readWait, baseOf, entityTag]) bounded(() => read(text));
  bounded(() => matches(text, '"1"'));
  bounded(() => accepts(text, 'x'));
  bounded(() => readRetryAfter(text, 0, 1));
  bounded(() => unlessRefused([InvalidValue], () => resolvePath(new URL('https://cp.example.net'), text)));
});
