import { family, named, type Outcome, type Row, refused, unreachable } from '../malicious-reply.ts';
import { network } from '../true-replies.ts';
import { jsonType, whole } from '../wire.ts';

/** Revisions that no host may send back, or show. */
const tags = [
  'OWNED',
  '"OWNED',
  'W/"OWNED"',
  '"OWNED\u001b[2J"',
  '"OWNED\u009b31m"',
  '"OWNED\tx"',
  '"OWNED x"',
  '"OWNED""',
  `"OWNED${'x'.repeat(129)}"`,
  '"OWNED\u00e9"',
  '*OWNED',
  '"OWNED", "x"',
];

/** Headers that were not requested, and that change nothing. */
const unasked = [
  'Preference-Applied: wait=999999',
  'Preference-Applied: \u001b[2J',
  'Set-Cookie: owned=1',
  'Refresh: 0; url=http://127.0.0.1/',
  'Alt-Svc: h3=":1"',
  'Strict-Transport-Security: max-age=1',
  'Date: owned',
  'Content-Location: file:///etc/shadow',
  'Content-Range: bytes 0-1/2',
  'Trailer: ETag',
  'X-Peer: \u0085',
  'Server: $(touch /tmp/owned)',
  'Location: http://127.0.0.1/',
  'Retry-After: 99999999',
];

/** Headers of changes alone, which a proxy may send with a 200: the body is no whole map then. */
const ofChanges = ['Delta-Base: "11"', 'IM: cpn-delta'];

export const headers = family(
  'a header',
  [...tags.map((tag) => `ETag: ${tag}`), ...unasked, ...ofChanges].map(
    (line): Row => ({
      name: named(line),
      to: 'map',
      outcome: outcomeOf(line),
      make: (request) => whole({ headers: [jsonType, line], body: JSON.stringify({ data: network(request) }) }),
    }),
  ),
);

function outcomeOf(line: string): Outcome {
  // What no header may hold is no HTTP.
  if (line.includes('\u001b')) return unreachable;
  return ofChanges.includes(line) ? refused : { nowhere: ['OWNED', 'owned'] };
}
