import { allSkipped, family, type MaliciousReply, type Row, refused, skipped } from '../malicious-reply.ts';
import { edge, gate, keyOf, network, ownAddress, ownPeer, trueRevision } from '../true-replies.ts';
import { enrolled, jsonType, map, whole } from '../wire.ts';

type Fields = Record<string, unknown>;

/** The peers of the map, computed from this host and the others. */
const peers =
  (make: (self: Fields) => readonly Fields[]): Row['make'] =>
  (request) =>
    map({ peers: make(ownPeer(request)) })(request);

/** A stranger who may join at any time. */
const stranger: Fields = {
  id: 9,
  name: 'stranger',
  peer_type: 'origin',
  public_key: keyOf('stranger'),
  address: '10.77.0.9',
};

/** Points of Curve25519 to which every key gives the same secret, in base64: the orders 1, 2, 4 and 8, and other encodings of them. */
const weakKeys = [
  '00',
  '01',
  'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
  '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
].flatMap((hex) => {
  const low = Buffer.from(hex.padEnd(64, '0'), 'hex');
  const high = Buffer.from(low);
  high.writeUInt8((low.at(31) ?? 0) | 0x80, 31);
  return [low.toString('base64'), high.toString('base64')];
});

const rows: readonly (readonly [string, Row['make']])[] = [
  ['another network', map({ id: 8 })],
  ['the network 0', map({ id: 0 })],
  ['another tunnel', map({ vpn_type: 'openvpn' })],
  ['this host alone', peers((self) => [self])],
  ['everybody but this host', peers(() => [gate, edge])],
  ['strangers alone', peers(() => [stranger])],
  ['this host with another key', peers((self) => [{ ...self, public_key: keyOf('another') }, gate, edge])],
  ['this host twice', peers((self) => [self, self, gate])],
  ['this host twice, with two ids', peers((self) => [self, { ...self, id: 6, address: '10.77.0.6' }, gate])],
  ['this host at another address', peers((self) => [{ ...self, address: '10.77.0.6' }, gate, edge])],
  ['this host at the address of another', peers((self) => [{ ...self, address: edge.address }, gate])],
  ['another at the address of this host', peers((self) => [self, gate, { ...edge, address: ownAddress }])],
  ['this host’s key for another', peers((self) => [gate, { ...edge, public_key: self.public_key }])],
  ['this host’s key for another too', peers((self) => [self, gate, { ...edge, public_key: self.public_key }])],
  ['this host’s id for another', peers((self) => [self, gate, { ...edge, id: 5 }])],
  ['this host’s id for another, as a word', peers((self) => [self, gate, { ...edge, id: '5' }])],
  ['two with one key', peers((self) => [self, gate, { ...edge, public_key: gate.public_key }])],
  ['two with one address', peers((self) => [self, gate, { ...edge, address: gate.address }])],
  ['two with one address, as a range', peers((self) => [self, gate, { ...edge, address: `${gate.address}/32` }])],
  ['two with one id', peers((self) => [self, gate, { ...edge, id: 1 }])],
  ['a range without its peers', map({ private_cidr: '10.78.0.0/24' })],
  ['a range without this host', map({ private_cidr: '10.77.0.0/30' })],
];

/** Peers that cannot be used. */
const unusable: typeof rows = [
  ['a peer outside the range', peers((self) => [self, gate, { ...edge, address: '10.78.0.2' }])],
  ...weakKeys.map((key, index) => [`a key that is none (${index + 1})`, map({}, { public_key: key })] as const),
];

/** Changes to the map that the host has; no host may apply the result. */
const deltas: readonly (readonly [string, (self: Fields) => Fields, headers?: readonly string[]])[] = [
  ['in another form', () => ({}), ['IM: vcdiff', `Delta-Base: ${trueRevision}`]],
  ['in two forms', () => ({}), ['IM: cpn-delta, gzip', `Delta-Base: ${trueRevision}`]],
  ['in no form', () => ({}), [`Delta-Base: ${trueRevision}`]],
  ['to no map', () => ({}), ['IM: cpn-delta']],
  ['to another map', () => ({}), ['IM: cpn-delta', 'Delta-Base: "11"']],
  ['to a weak map', () => ({}), ['IM: cpn-delta', `Delta-Base: W/${trueRevision}`]],
  ['to two maps', () => ({}), ['IM: cpn-delta', `Delta-Base: ${trueRevision}`, 'Delta-Base: "11"']],
  ['without what is removed', () => ({ removed: undefined })],
  ['with removed that is no list', () => ({ removed: 2 })],
  ['with removed that is no id', () => ({ removed: [{}] })],
  ['with removed that climbs', () => ({ removed: ['..'] })],
  ['without peers', () => ({ peers: undefined })],
  ['of another network', () => ({ id: 8 })],
  ['that lists and removes one', () => ({ peers: [edge], removed: [2] })],
  ['that removes this host', () => ({ removed: [5] })],
  ['that removes all', () => ({ removed: [1, 2, 5] })],
  ['that removes all others', () => ({ removed: [1, 2] })],
  ['that gives another the key of one', () => ({ peers: [{ ...stranger, public_key: gate.public_key }] })],
  ['that gives another the address of one', () => ({ peers: [{ ...stranger, address: gate.address }] })],
  ['that gives another this host’s key', (self) => ({ peers: [{ ...stranger, public_key: self.public_key }] })],
  ['that gives another this host’s address', () => ({ peers: [{ ...stranger, address: ownAddress }] })],
  ['that gives this host another address', (self) => ({ peers: [{ ...self, address: '10.77.0.6' }] })],
  ['that gives this host another key', (self) => ({ peers: [{ ...self, public_key: keyOf('another') }] })],
  ['that puts everybody outside the range', () => ({ private_cidr: '10.78.0.0/24' })],
  ['with a bad peer', () => ({ peers: [{ ...stranger, address: '127.1' }] })],
  ['with a bad route', () => ({ routes: ['10/8'] })],
  ['that puts a word where a number was', () => ({ peers: [{ ...edge, id: '2' }] })],
];

/** Enrolments that contradict what was sent, or themselves. */
const enrolments: readonly (readonly [string, Row['make']])[] = [
  ['another key', enrolled({}, {}, { public_key: keyOf('another') })],
  ['the address of another', enrolled({}, {}, { address: '10.77.0.1' })],
  ['an address outside the range', enrolled({}, {}, { address: '10.78.0.5' })],
  [
    'an address that the list has otherwise',
    (request) => enrolled({ peer: { ...ownPeer(request), address: '10.77.0.6' } })(request),
  ],
  ['an id that the list has otherwise', (request) => enrolled({ peer: { ...ownPeer(request), id: 6 } })(request)],
  [
    'the id of another',
    (request) => enrolled({ peer: { ...ownPeer(request), id: 1 } }, { peers: [gate, edge] })(request),
  ],
  ['another tunnel', enrolled({}, { vpn_type: 'ipsec' })],
];

const unusableAtJoin: typeof enrolments = [
  ['two with one key', enrolled({}, { peers: [gate, { ...edge, public_key: gate.public_key }] })],
  ['a weak key', enrolled({}, { peers: [{ ...gate, public_key: weakKeys[0] }] })],
];

export const contradictions: readonly MaliciousReply[] = [
  ...family('a map that lists', [
    ...rows.map(([name, make]): Row => ({ name, to: 'map', outcome: refused, make })),
    ...unusable.map(([name, make]): Row => ({ name, to: 'map', outcome: skipped, make })),
  ]),
  ...family(
    'changes',
    deltas.map(([name, change, headers]): Row => ({ name, to: 'map', outcome: refused, make: delta(change, headers) })),
  ),
  ...family('an enrolment with', [
    ...enrolments.map(([name, make]): Row => ({ name, to: 'enrolment', outcome: refused, make })),
    ...unusableAtJoin.map(([name, make]): Row => ({ name, to: 'enrolment', outcome: allSkipped, make })),
  ]),
];

/** Changes to the true map, sent for every request. */
function delta(
  change: (self: Fields) => Fields,
  headers: readonly string[] = ['IM: cpn-delta', `Delta-Base: ${trueRevision}`],
): Row['make'] {
  return (request) => {
    const body = { data: network(request, { peers: [], removed: [], ...change(ownPeer(request)) }) };
    return whole({ status: '226 IM Used', headers: [jsonType, 'ETag: "13"', ...headers], body: JSON.stringify(body) });
  };
}
