import fc from 'fast-check';
import { expect } from 'vitest';
import * as admin from '../../src/api/decode/admin.ts';
import { decodeDelta } from '../../src/api/decode/delta.ts';
import { decodeEnrollment } from '../../src/api/decode/enrollment.ts';
import * as extensions from '../../src/api/decode/extensions.ts';
import { decodeMap } from '../../src/api/decode/map.ts';
import { isProven, makeIdentity, parseIdentityKey, proveKey } from '../../src/core/crypto/identity.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { BadReply } from '../../src/core/errors/index.ts';
import { applyDelta, deltaManipulation, findInvalid } from '../../src/core/map/apply-delta.ts';
import type { NetworkMap } from '../../src/core/map/model.ts';
import { covers, parseAddress, parsePrefix } from '../../src/core/net/cidr.ts';
import { enrollmentBody, enrollmentRequest, keyOf, networkBody, peerBody, source } from '../api/samples.ts';
import { givenTexts } from './config-texts.ts';
import { fuzz } from './fuzz.ts';
import { mutatedJson } from './hostile-json.ts';
import { hostile, mutated, pumped } from './hostile-texts.ts';
import { bounded, unlessRefused } from './time-bound.ts';

const survive = <Result>(decode: () => Result) => bounded(() => unlessRefused([BadReply], decode));

const identity = makeIdentity(new Uint8Array(32).fill(5));
const proven = {
  identity_key: identity.key,
  key_proof: proveKey(identity, parsePublicKey(keyOf(1)), new Date(9)),
  network_secret_tag: '0123456789abcdef',
};
const network = networkBody({
  peers: [
    peerBody(1, proven),
    peerBody(2, { withdrawn: ['192.168.10.0/24'] }),
    peerBody(3, { peer_type: 'connector' }),
  ],
});
const names = [
  ...Object.keys(network),
  ...Object.keys(peerBody(1, proven)),
  'config',
  'network',
  'peer',
  'removed',
  'expires_at',
  'serial',
];
const around = (body: unknown) => mutatedJson(fc.constantFrom(body, { data: body }), names);

fuzz('any map keeps the rules of maps, or is refused', 600, [around(network), fc.option(hostile)], (body, etag) => {
  const map = survive(() => decodeMap(body, source, { network: 7, etag }));
  if (map) expectKept(map);
});

fuzz(
  'any enrolment keeps the rules of maps, or is refused',
  600,
  [
    fc.oneof(
      around(enrollmentBody({ network })),
      fc.record({ config: givenTexts, network: around({ id: 7, name: 'x' }) }),
    ),
  ],
  (body) => {
    const enrolled = survive(() => decodeEnrollment(body, source, enrollmentRequest()));
    if (!enrolled) return;
    expectKept(enrolled.map);
    expect(enrolled.map.peers.filter(({ publicKey }) => publicKey === keyOf(1))).toHaveLength(1);
  },
);

const base = decodeMap(network, source, { network: 7, etag: '"12"' });
const delta = { ...network, peers: [peerBody(2, { name: 'new' }), peerBody(9)], removed: [3] };

fuzz(
  'any change makes a map that keeps the rules of maps, or is refused',
  600,
  [around(delta), fc.constantFrom('"12"', '"12"', '"13"', 'W/"12"')],
  (body, deltaBase) => {
    const headers = { im: deltaManipulation, 'delta-base': deltaBase };
    const answer = {
      status: 226,
      headers,
      body,
      etag: '"13"',
      waited: true,
      from: null,
      listener: null,
      reading: { ...source, maxBytes: 1 },
    };
    const changed = survive(() => decodeDelta(answer, base));
    if (changed) expectKept(changed.map);
    else expect(applyDelta(base, { ...base, peers: [], removed: [] })).toEqual(base);
  },
);

const profile = { email: 'a@example.net', role: 'owner', organization: { id: 1, name: 'x' } };
const key = { id: 1, name: 'k', enrollment_token: 'cpn_x', max_uses: 1, uses: 0, expires_at: '2026-03-01T12:00:00Z' };
const token = {
  id: 1,
  name: 't',
  access_token: 'cpt_x',
  created_at: '2026-03-01T12:00:00Z',
  email: 'a',
  role: 'member',
};
const entry = {
  id: 1,
  at: token.created_at,
  actor: { kind: 'user', id: 1, name: 'x' },
  action: 'y',
  target: { kind: 'peer', id: 2 },
  details: {},
};
const asked = { name: 'k', max_uses: 1, expires_in_hours: 1 };
const decoders: readonly ((body: unknown) => unknown)[] = [
  ...[
    admin.decodeSession,
    admin.decodeProfile,
    admin.decodeNetworks,
    admin.decodeWholeNetwork,
    admin.decodeChangedPeer,
    admin.decodeKeys,
  ],
  ...Object.values(extensions),
].map((decode) => (body: unknown) => decode(body, source));
const decodesKey = (body: unknown) => admin.decodeNewKey(body, source, asked);

fuzz(
  'any answer to an administrator is decoded or refused, and decoded alike a second time',
  500,
  [
    mutatedJson(
      fc.constantFrom<unknown>(profile, key, token, entry, [key], [token], [entry], network, [network], peerBody(1)),
      names,
    ),
  ],
  (body) => {
    for (const decode of [...decoders, decodesKey]) {
      const decoded = survive(() => decode(body));
      if (decoded !== null) expect(JSON.stringify(survive(() => decode(body)))).toBe(JSON.stringify(decoded));
    }
  },
);

fuzz(
  'no other proof than the given one is valid',
  30,
  [fc.uint8Array({ minLength: 32, maxLength: 32 }), mutated(fc.constant(proven.key_proof.signature), 2), fc.integer()],
  (seed, signature, serial) => {
    const other = makeIdentity(seed);
    const [own, publicKey] = [parseIdentityKey(identity.key), parsePublicKey(keyOf(1))];
    const { key_proof: proof } = proven;
    expect(isProven(own, publicKey, proof)).toBe(true);
    const bytes = (text: string) => Buffer.from(text, 'base64').toString('hex');
    const same = serial === proof.serial && bytes(signature) === bytes(proof.signature);
    expect(isProven(own, publicKey, { serial, signature })).toBe(same);
    expect(isProven(own, publicKey, proveKey(other, publicKey, new Date(0)))).toBe(other.key === own);
  },
);

const bodyWords = [
  '[Peer]\n',
  'AllowedIPs = ',
  '1.1.1.1/32,',
  '#',
  '=',
  ' ',
  '\t',
  '/',
  '.',
  ':',
  '[',
  ']',
  '0',
  'a',
  '-',
  'a.',
];

fuzz('no text of a service is long enough to hang on', 60, [pumped(bodyWords)], (text) => {
  const body = { config: `[Interface]\nAddress = 10.77.0.5/24\n${text}`, name: text, message: text };
  survive(() => decodeEnrollment(body, source, enrollmentRequest()));
  const changes = { name: text, routes: [text], peers: [peerBody(1, { endpoint: text, address: text })] };
  survive(() => decodeMap({ ...network, ...changes }, source, { network: 7, etag: text }));
});

/** Every value is what its parser makes of itself, and no two peers share anything. */
function expectKept(map: NetworkMap): void {
  expect(parsePrefix(map.cidr)).toBe(map.cidr);
  for (const route of map.routes) expect(parsePrefix(route)).toBe(route);
  for (const { address, publicKey, identity: known } of map.peers) {
    expect(parseAddress(address)).toBe(address);
    expect(parsePublicKey(publicKey)).toBe(publicKey);
    if (known !== undefined) expect(parseIdentityKey(known)).toBe(known);
  }
  const isOneAddress = map.cidr.endsWith('/32');
  if (!isOneAddress)
    for (const { address, given } of map.peers) if (!given) expect(covers(map.cidr, address)).toBe(true);
  const flaw = findInvalid(map, 16_384);
  if (!isOneAddress && !map.peers.some(({ given }) => given)) expect(flaw).toBeNull();
  else expect(new Set(map.peers.map(({ publicKey }) => publicKey)).size).toBe(map.peers.length);
}
