import { describe, expect, test } from 'vitest';
import { decodeEnrollment } from '../../../src/api/decode/enrollment.ts';
import { keyPair } from '../../core/samples.ts';
import { networkBody, peerBody, source } from '../samples.ts';

const { publicKey } = keyPair(1);
const asked = { publicKey, name: 'host-1', type: 'origin', endpoint: null } as const;

/** A text with a peer for each list of AllowedIPs; a peer may have an endpoint after a semicolon. */
function textOf(address: string, ...peers: string[]): string {
  const sections = peers.map((peer, index) => {
    const [allowed, endpoint] = peer.split(';');
    const lines = ['[Peer]', `PublicKey = ${keyPair(index + 2).publicKey}`, `AllowedIPs = ${allowed}`];
    return [...lines, ...(endpoint === undefined ? [] : [`Endpoint = ${endpoint}`])].join('\n');
  });
  return [`[Interface]\nAddress = ${address}`, ...sections].join('\n');
}

function decode(address: string, ...peers: string[]) {
  const { map } = decodeEnrollment({ config: textOf(address, ...peers) }, source, asked);
  // This host comes last.
  return { ...map, peers: map.peers.slice(0, -1) };
}

const own = '10.77.0.2/24';

describe('a peer of a ready text', () => {
  test.each<[string, string[], string[]]>([
    ['by its single address in the range', ['10.77.0.9/32, 192.168.5.0/24'], ['10.77.0.9']],
    ['by its single address in the range, behind others', ['10.9.0.1/32, 10.77.0.9/32'], ['10.77.0.9']],
    ['by the first free one of the range, as a gateway', ['10.77.0.0/24'], ['10.77.0.1']],
    ['by the first free one of the range, as a gateway to all', ['0.0.0.0/0'], ['10.77.0.1']],
    ['by one that no peer has, whichever comes first', ['10.77.0.0/24', '10.77.0.1/32'], ['10.77.0.3', '10.77.0.1']],
    ['by one that no peer has, behind it too', ['10.77.0.1/32', '10.77.0.0/24'], ['10.77.0.1', '10.77.0.3']],
    [
      'by another one than gateways before it',
      ['0.0.0.0/1', '128.0.0.0/1', '10.0.0.0/8'],
      ['10.77.0.1', '128.0.0.1', '10.77.0.3'],
    ],
    ['by the first one of its own range', ['192.168.5.0/24', '192.168.5.0/30'], ['192.168.5.1', '192.168.5.2']],
    ['by the last one of its own range', ['192.168.5.0/31'], ['192.168.5.1']],
    ['by the one address of a range beyond', ['10.9.0.1/32'], ['10.9.0.1']],
  ])('is known %s', (_, peers, addresses) => {
    expect(decode(own, ...peers).peers.map(({ address }) => address)).toEqual(addresses);
  });

  test('is refused where others have all addresses of its range', () => {
    const full = () => decode('10.77.0.2/32', '192.168.5.1/32', '192.168.5.0/31');
    expect(full).toThrow('has a peer whose AllowedIPs are all given to others');
  });

  test('may have any single address where the range is not known', () => {
    const { cidr, routes, peers } = decode('10.77.0.2/32', '10.8.0.0/16, 10.9.0.1/32', '10.77.0.1/32');
    expect([cidr, routes]).toEqual(['10.77.0.2/32', ['10.8.0.0/16']]);
    expect(peers.map(({ address, type }) => [address, type])).toEqual([
      ['10.9.0.1', 'connector'],
      ['10.77.0.1', 'origin'],
    ]);
  });

  test.each<[string, string, string[]]>([
    ['all that is beyond the range', '10.77.0.9/32, 192.168.5.0/24, 10.78.0.0/16', ['192.168.5.0/24', '10.78.0.0/16']],
    ['no part of the range', '10.77.0.9/32, 10.77.0.128/25, 10.77.0.0/24', []],
    ['not the address that it is known by', '10.9.0.1/32, 192.168.5.0/24', ['192.168.5.0/24']],
    ['everything, as a gateway to all', '10.77.0.9/32, 0.0.0.0/0', ['0.0.0.0/0']],
    ['IPv6 as well', '10.77.0.9/32, fd00:1::/64', ['fd00:1::/64']],
  ])('carries as routes %s', (_, allowed, routes) => {
    const map = decode(own, allowed);
    expect([map.routes, map.peers[0]?.routes]).toEqual([routes, routes]);
    expect(map.peers[0]?.type).toBe(routes.length > 0 ? 'connector' : 'origin');
    expect(map.peers[0]?.given?.allowedIps).toEqual(allowed.split(', '));
  });

  test.each([
    ['0.0.0.0/0;gate.example.net:51820', 'gate.example.net'],
    ['0.0.0.0/0', '10.77.0.1'],
    ['::/0, 10.77.0.0/24;[2001:db8::1]:51820', '2001:db8::1'],
    ['10.77.0.9/32, 0.0.0.0/0;gate.example.net:51820', '10.77.0.9'],
    ['10.77.0.0/24;gate.example.net:51820', '10.77.0.1'],
  ])('with %s is named %s', (peer, name) => {
    expect(decode(own, peer).peers[0]?.name).toBe(name);
  });

  test('carries 256 routes and no more, and no route twice', () => {
    const ranges = (count: number) => Array.from({ length: count }, (_, n) => `172.${16 + (n >> 8)}.${n & 255}.0/24`);
    expect(decode(own, ranges(256).join(', ')).routes).toHaveLength(256);
    expect(() => decode(own, ranges(256).join(', '), '192.168.0.0/24')).toThrow('has more than 256 routes');
  });
});

describe('an enrolment with a ready text', () => {
  const gate = '10.77.0.0/24';
  const enroll = (body: object, changes: object = {}) => decodeEnrollment(body, source, { ...asked, ...changes }).map;

  test.each<[string, object, string]>([
    ['of the network before all', { network: { private_cidr: '10.0.0.0/8' }, config: textOf(own, gate) }, '10.0.0.0/8'],
    ['of the text before that of the peer', { peer: { address: '10.77.0.2/16' }, config: textOf(own, gate) }, gate],
    ['of the peer, where the text has none', { peer: { address: own }, config: textOf('10.77.0.2/32', gate) }, gate],
    ['of the peer, where the text has no length', { peer: { address: own }, config: textOf('10.77.0.2', gate) }, gate],
    ['of its address alone, where there is none', { config: textOf('10.77.0.2', gate) }, '10.77.0.2/32'],
  ])('has the range %s', (_, body, range) => {
    expect(enroll(body).cidr).toBe(range);
  });

  test('has the routes that the network advertises next to those that peers carry, each once', () => {
    const network = { routes: ['192.168.6.0/24', '192.168.5.0/24'] };
    const config = textOf(own, '10.77.0.9/32, 192.168.5.0/24, 192.168.7.0/24');
    const routes = ['192.168.6.0/24', '192.168.5.0/24', '192.168.7.0/24'];
    expect(enroll({ network, config }).routes).toEqual(routes);
  });

  test.each([
    ['connector', ['192.168.6.0/24']],
    ['origin', null],
    ['admin_device', null],
  ])('leaves to a host of the type %s the routes %j', (type, routes) => {
    const network = { routes: ['192.168.6.0/24', '192.168.5.0/24'] };
    const endpoint = { host: '203.0.113.7', port: 7 };
    const map = enroll({ network, config: textOf(own, '10.77.0.9/32, 192.168.5.0/24') }, { type, endpoint });
    expect(map.peers.at(-1)).toMatchObject({ type, routes, endpoint, unlisted: true });
  });

  test('keeps the name servers of a text without any remark, and no address outside its range', () => {
    const config = textOf(own, gate).replace('Address', 'DNS = 10.77.0.53\nAddress');
    expect(decodeEnrollment({ config }, source, asked).text).toEqual({ dns: ['10.77.0.53'], remarks: [] });
    const outside = { network: { private_cidr: '10.78.0.0/24' }, config: textOf(own, gate) };
    expect(() => enroll(outside)).toThrow('outside the range');
  });
});

describe('an enrolment that lists the peers', () => {
  const body = (network: object, peer: object = {}) => ({
    peer: { address: '10.77.0.1', ...peer },
    network: networkBody(network),
  });
  const enroll = (reply: object) =>
    decodeEnrollment(reply, source, { ...asked, endpoint: { host: 'a.example', port: 7 } });

  test('skips a peer outside the range, and keeps the nonce of the network', () => {
    const { map } = enroll(body({ nonce: 'n-1', peers: [peerBody(2), peerBody(3, { address: '10.78.0.3' })] }));
    expect([map.nonce, map.peers.map(({ id }) => id)]).toEqual(['n-1', [2, publicKey]]);
    expect(map.skipped).toMatchObject([{ id: 3 }]);
    expect(map.peers[1]).toMatchObject({ name: 'host-1', endpoint: { host: 'a.example', port: 7 }, unlisted: true });
  });

  test('is of the host that is listed under its key, by id or without', () => {
    const listed = peerBody(1, { public_key: publicKey, name: 'listed' });
    const { map, peer } = enroll(body({ peers: [listed, peerBody(2)] }));
    expect([peer.id, map.peers.map(({ id }) => id)]).toEqual([1, [1, 2]]);
    const { id: _, ...nameless } = listed;
    const other = enroll(body({ peers: [nameless, peerBody(2)] }, { id: 31 }));
    expect([other.peer.id, other.map.peers.map(({ id }) => id)]).toEqual([31, [publicKey, 2]]);
  });

  test('is refused for a key that is not the one sent, wherever the list has it', () => {
    for (const peers of [[peerBody(2)], [peerBody(1, { public_key: publicKey })]])
      expect(() => enroll(body({ peers }, { public_key: keyPair(9).publicKey }))).toThrow(
        'is not the key that was sent',
      );
  });
});
