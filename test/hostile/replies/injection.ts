import { family, named, type Outcome, type Row, refused, skipped } from '../malicious-reply.ts';
import { payloads } from '../payloads.ts';
import { edge, keyOf, peerToken } from '../true-replies.ts';
import { enrolled, map } from '../wire.ts';

/** A field of the map with a good beginning, and whatever is put behind it. */
const fields: readonly (readonly [string, (text: string) => Row['make'], Outcome?])[] = [
  ['the range', (text) => map({ private_cidr: `10.77.0.0/24${text}` }), refused],
  ['an address', (text) => map({}, { address: `10.77.0.2${text}` })],
  ['an endpoint', (text) => map({}, { endpoint: `203.0.113.12:51820${text}` })],
];

/** Fields of the map that fewer parsers stand behind. */
const plainFields: typeof fields = [
  ['a public key', (text) => map({}, { public_key: `${edge.public_key}${text}` })],
  ['a route', (text) => map({ routes: [`192.168.50.0/24${text}`] }), refused],
  ['the kind of VPN', (text) => map({ vpn_type: `wireguard${text}` }), refused],
  ['the id of the network', (text) => map({ id: `7${text}` }), refused],
  ['the type of a peer', (text) => map({}, { peer_type: `origin${text}` })],
  ['a served route', (text) => map({}, { routes: [`192.168.50.0/24${text}`] })],
  ['a withdrawn route', (text) => map({}, { withdrawn: [`192.168.50.0/24${text}`] })],
  ['an identity', (text) => map({}, { identity_key: `${keyOf('identity')}${text}` })],
  ['a signature', (text) => map({}, { key_proof: { serial: 1, signature: `${'A'.repeat(86)}==${text}` } })],
  ['a tag', (text) => map({}, { network_secret_tag: `0123456789abcdef${text}` })],
  ['an endpoint’s name', (text) => map({}, { endpoint: `gate${text}.example.net:51820` })],
];

/** Every fifth of them, others for each field. */
const some = (turn: number) => payloads.filter((_, index) => index % 5 === turn % 5);

/** What is put behind a token, which may hold all that a header may. */
const unsent = payloads.filter((text) => /[^\x21-\x7e]/.test(text) || text.length > 4096);

/** Words that an id may not hold. */
const unspeakable = payloads.filter((text) => !/^[\x21-\x7e]*$/.test(text) || text.length > 254);

export const injection = family('injection', [
  ...fields.flatMap(([field, make, outcome]) => payloads.map((text) => row(field, text, make, outcome))),
  ...plainFields.flatMap(([field, make, outcome], turn) => some(turn).map((text) => row(field, text, make, outcome))),
  ...unspeakable.map((text) => row('the id of a peer', text, (id) => map({}, { id: `2${id}` }))),
  ...unsent.map(
    (text): Row => ({
      ...row('the token', text, (token) => enrolled({ access_token: `${peerToken}${token}` }), refused),
      to: 'enrolment',
    }),
  ),
]);

/** Names may be anything, for they are printed and never used: nothing may interpret them. */
const called = { to: 'map', outcome: { nowhere: ['OWNED', 'owned'] } } as const;
const short = payloads.filter((text) => text.length < 100);
const obeyedByTerminals = ['\u001b[2J', '\u009b31m', '\u202e'];

export const names = family('a name that is obeyed', [
  ...short.map((text): Row => ({ ...called, name: `peer ${named(text)}`, make: map({}, { name: `OWNED${text}` }) })),
  ...short
    .filter((_, index) => index % 3 === 1)
    .map((text): Row => ({ ...called, name: `network ${named(text)}`, make: map({ name: `OWNED${text}` }) })),
  ...obeyedByTerminals.map((text): Row => {
    const name = `OWNED${text}`;
    return { ...called, to: 'enrolment', name: `a join ${named(text)}`, make: enrolled({}, { name }, { name }) };
  }),
]);

function row(field: string, text: string, make: (text: string) => Row['make'], outcome: Outcome = skipped): Row {
  return { name: `${field} + ${named(text)}`, to: 'map', outcome, make: make(text) };
}
