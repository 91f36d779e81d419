import { family, named, type Outcome, type Row, refused, skipped } from '../malicious-reply.ts';
import { enrolment, network } from '../true-replies.ts';
import { enrolled, json, map, mapText } from '../wire.ts';

type Fields = Record<string, unknown>;

/** Values that are of another type than what belongs there. */
const values: readonly unknown[] = [true, 7.5, {}, [], 'no'];

const isNoText = (value: unknown) => typeof value !== 'string';
const isNoList = (value: unknown) => !Array.isArray(value) || value.length > 0;
const isAny = () => true;

/** A field, where the value is put, and which values would not be good there. */
type Field = readonly [name: string, make: (value: unknown) => Row['make'], isWrong: (value: unknown) => boolean];

const ofNetwork: readonly Field[] = [
  ...(['id', 'private_cidr', 'vpn_type', 'peers'] as const).map(
    (name): Field => [name, (value) => map({ [name]: value }), isAny],
  ),
  ['name', (name) => map({ name }), isNoText],
  ['routes', (routes) => map({ routes }), isNoList],
];

const ofList: readonly Field[] = [
  ['a peer', (one) => (request) => map({ peers: [...(network(request).peers as unknown[]), one] })(request), isAny],
];

const ofPeer: readonly Field[] = [
  ...['peer_type', 'public_key', 'address', 'endpoint', 'identity_key', 'key_proof', 'network_secret_tag'].map(
    (name): Field => [`peer.${name}`, (value) => map({}, { [name]: value }), isAny],
  ),
  ['peer.name', (name) => map({}, { name }), isNoText],
  ['peer.id', (id) => map({}, { id }), (id) => isNoText(id) && id !== 7.5],
  ...['routes', 'withdrawn'].map((name): Field => [`peer.${name}`, (value) => map({}, { [name]: value }), isNoList]),
  ['peer.key_proof.serial', (serial) => map({}, { key_proof: { serial, signature: `${'A'.repeat(86)}==` } }), isAny],
  ['peer.key_proof.signature', (signature) => map({}, { key_proof: { serial: 1, signature } }), isAny],
];

const ofEnrolment: readonly Field[] = [
  ...['peer', 'network'].map((name): Field => [name, (value) => enrolled({ [name]: value }), isAny]),
  ['access_token', (token) => enrolled({ access_token: token }), isNoText],
  ['network.peers', (peers) => enrolled({}, { peers }), isNoList],
  ['network.private_cidr', (range) => enrolled({}, { private_cidr: range }), isAny],
  ...['address', 'public_key'].map(
    (name): Field => [`peer.${name}`, (value) => enrolled({}, {}, { [name]: value }), isAny],
  ),
];

/** Numbers that JSON can write and a whole number cannot be. */
const numbers = [
  '1e400',
  '-1e400',
  '9007199254740993',
  '1e21',
  '-7',
  '7.0000000001',
  '0.7e-1',
  '123456789012345678901234567890',
  '-0',
];

const withNumber = (field: string, text: string) =>
  mapText((body) => body.replace(new RegExp(`"${field}":\\d+`), `"${field}":${text}`));

const exactNumbers = ['9007199254740993', '-7', '7.0000000001', '0.7e-1'];

/** Required fields. */
const needed = ['id', 'name', 'private_cidr', 'peers'];
const neededOfPeer = ['public_key', 'address'];

export const types = family('a wrong type', [
  ...ofNetwork.flatMap((field) => rows('map', field)),
  ...[...ofList, ...ofPeer].flatMap((field) => rows('map', field, skipped)),
  // As an id any number will do that can be written as it came.
  ...['7.5', ...exactNumbers].map((text): Row => peerId(text, { nowhere: [] })),
  ...ofEnrolment.flatMap((field) => rows('enrolment', field)),
  ...numbers.map((text): Row => ({ name: `id as ${text}`, to: 'map', outcome: refused, make: withNumber('id', text) })),
  ...numbers.filter((text) => /e\d/.test(text)).map((text) => peerId(text, skipped)),
]);

export const missing = family('a field that is missing', [
  ...needed.flatMap((name) => [
    row(`${name}`, 'map', map({ [name]: undefined })),
    row(`${name}, for it is null`, 'map', map({ [name]: null })),
  ]),
  ...neededOfPeer.flatMap((name) => [
    row(`peer.${name}`, 'map', map({}, { [name]: undefined }), skipped),
    row(`peer.${name}, for it is null`, 'map', map({}, { [name]: null }), skipped),
  ]),
  ...['peer', 'network'].map((name) => row(name, 'enrolment', enrolled({ [name]: undefined }))),
  row('network.peers', 'enrolment', enrolled({}, { peers: undefined })),
  row('peer.address', 'enrolment', enrolled({}, {}, { address: undefined })),
  row('everything but data', 'map', () => json({ data: {} })),
  row('everything but a list', 'map', (request) => json({ data: [network(request)] })),
  row(
    'everything but a prototype',
    'map',
    mapText((body) => body.replace('{"data":', '{"data":{"__proto__":').concat('}')),
  ),
  row('everything but a constructor', 'map', (request) => json({ data: { constructor: network(request) } })),
  row('an envelope in an envelope', 'map', (request) => json({ data: { data: network(request) } })),
  row('the field that is misspelt', 'map', (request) => json({ data: renamed(network(request)) })),
  row('everything but the envelope, which is null', 'enrolment', (request) =>
    json({ ...enrolment(request), data: [] }),
  ),
]);

function rows(to: Row['to'], [field, make, isWrong]: Field, outcome: Outcome = refused): Row[] {
  return values
    .filter(isWrong)
    .map((value) => ({ name: `${to}: ${field} is ${named(value)}`, to, outcome, make: make(value) }));
}

function row(name: string, to: Row['to'], make: Row['make'], outcome: Outcome = refused): Row {
  return { name: `${to}: ${name}`, to, outcome, make: make };
}

function renamed({ private_cidr, ...rest }: Fields): Fields {
  return { ...rest, privatecidr: private_cidr };
}

function peerId(text: string, outcome: Outcome): Row {
  const make = mapText((body) => body.replace('"id":2,', `"id":${text},`));
  return { name: `peer.id as ${text}`, to: 'map', outcome, make: make };
}
