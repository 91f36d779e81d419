import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeEnrollment } from '../../../src/api/decode/enrollment.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import { BadReply } from '../../../src/core/errors/index.ts';
import { enrollmentBody, keyOf, networkBody, peerBody, source, without } from '../samples.ts';

const asked = { publicKey: parsePublicKey(keyOf(1)), name: 'host-1', type: 'origin', endpoint: null } as const;
const decode = (body: unknown) => decodeEnrollment(body, source, asked);

function refusalOf(body: unknown): string {
  try {
    decode(body);
  } catch (error) {
    expect(error).toBeInstanceOf(BadReply);
    return (error as BadReply).message;
  }
  throw new Error('the body was read');
}

/** A network that lists the others only, as a service may. */
const others = networkBody({ peers: [peerBody(2), peerBody(3)] });

describe('an enrolment', () => {
  test('is decoded into the peer, the map and the token', () => {
    const { peer, map, accessToken } = decode({ data: enrollmentBody() });
    expect(peer).toEqual({ id: 1, name: 'host-1', address: '10.77.0.1' });
    expect(map).toMatchObject({ id: 7, cidr: '10.77.0.0/16', revision: '"12"' });
    expect(map.peers).toHaveLength(3);
    expect(accessToken?.reveal()).toBe('cpp_sample');
  });

  test('is the same without the envelope, and with unknown properties', () => {
    expect(decode(enrollmentBody({ color: 'red' }))).toEqual(decode({ data: enrollmentBody() }));
  });

  test('has the revision under which its network is served, by its ETag where there is one', () => {
    const revisionOf = (etag: unknown) => decode(enrollmentBody({ network_etag: etag })).map.revision;
    expect(['"12-abc"', '12-abc', null, 12].map(revisionOf)).toEqual(['"12-abc"', '"12"', '"12"', '"12"']);
  });

  test('has the relay, the longest age and the nonce of its network, as the map has them', () => {
    const fields = { relay: 2, spread: true, map_max_age_seconds: 300, nonce: 'q83vEjRWeJq8' };
    const { map } = decode(enrollmentBody({ network: networkBody(fields) }));
    expect(map).toMatchObject({ relay: 2, spread: true, maxAge: 300, nonce: 'q83vEjRWeJq8' });
  });

  test('may have no token and no revision', () => {
    const body = { peer: peerBody(1), network: without(networkBody(), 'revision') };
    expect(decode(body)).toMatchObject({ accessToken: null, map: { revision: null } });
    expect(decode({ ...body, access_token: null }).accessToken).toBeNull();
  });

  test('needs of the peer only its address, where the network lists it', () => {
    const peer = { address: '10.77.0.1/32' };
    expect(decode({ peer, network: networkBody() }).peer).toEqual({ id: 1, name: 'host-1', address: '10.77.0.1' });
  });

  test('may list the other peers only', () => {
    const { peer, map } = decode({ peer: peerBody(1, { name: 'renamed' }), network: others });
    expect(peer).toEqual({ id: 1, name: 'renamed', address: '10.77.0.1' });
    expect(map.peers.map(({ id }) => id)).toEqual([2, 3, 1]);
    // This host is one of them all the same.
    expect(map.peers[2]).toMatchObject({ name: 'renamed', address: '10.77.0.1', type: 'origin', unlisted: true });
  });

  test('may be the peer itself, with fields for the network and the peers', () => {
    const { peers, ...network } = networkBody();
    const body = { ...peerBody(1), token: 'cpp_sample', private_network: network, members: peers };
    expect(decode(body)).toEqual(decode({ ...enrollmentBody() }));
  });

  test('may be the network itself, with the peer in it', () => {
    expect(decode({ ...networkBody(), peer: peerBody(1), access_token: 'cpp_sample' })).toEqual(
      decode(enrollmentBody()),
    );
  });
});

describe('an enrolment at a service that has only the contract', () => {
  const gate = { public_key: keyOf(2), address: '10.77.0.2', endpoint: '203.0.113.2:51820' };

  test.each([
    ['in the network', { peer: { address: '10.77.0.1' }, network: { peers: [gate] } }],
    ['next to the network', { peer: { address: '10.77.0.1' }, network: { color: 'red' }, peers: [gate] }],
    ['without a network', { address: '10.77.0.1', peers: [gate] }],
  ])('needs only the address and the peers: %s', (_, body) => {
    for (const reply of [body, { data: body }]) {
      const { peer, map, accessToken } = decode(reply);
      expect(accessToken).toBeNull();
      expect(peer).toEqual({ id: keyOf(1), name: 'host-1', address: '10.77.0.1' });
      // Without a range it is this address alone.
      expect(map).toMatchObject({ id: null, name: 'network', cidr: '10.77.0.1/32', routes: [], revision: null });
      expect(map.peers.map(({ name }) => name)).toEqual(['10.77.0.2', 'host-1']);
    }
  });

  test('takes the range from the address that is written with one', () => {
    const body = { peer: { address: '10.77.0.1/24' }, network: { id: 7, peers: [gate] } };
    expect(decode(body).map).toMatchObject({ id: 7, name: 'network-7', cidr: '10.77.0.0/24' });
    const reply = { ...body, network: { ...body.network, private_cidr: '10.77.0.0/16' } };
    expect(decode(reply).map.cidr).toBe('10.77.0.0/16');
  });

  test('takes no id of the peer for one of the network', () => {
    const flat = { id: 31, name: 'edge', address: '10.77.0.1', peers: [gate] };
    expect(decode(flat)).toMatchObject({ peer: { id: 31, name: 'edge' }, map: { id: null, name: 'network' } });
    const reply = { ...flat, network_id: 7, network_name: 'office' };
    expect(decode(reply)).toMatchObject({ peer: { id: 31 }, map: { id: 7, name: 'office' } });
  });
});

describe('an enrolment that cannot be read is refused', () => {
  test.each([
    ['without the peer', without(enrollmentBody(), 'peer'), 'lacks peer (it has: network, access_token)'],
    ['without the network', without(enrollmentBody(), 'network'), 'lacks network (it has: peer, access_token)'],
    [
      'without an address',
      enrollmentBody({ peer: without(peerBody(1), 'address') }),
      'lacks peer.address (it has: id, name',
    ],
    ['without peers', enrollmentBody({ network: without(networkBody(), 'peers') }), 'lacks network.peers (it has: id'],
    [
      'for another key',
      enrollmentBody({ peer: peerBody(1, { public_key: keyOf(9) }) }),
      'peer.public_key is not the key that was sent',
    ],
    [
      'with an address outside',
      enrollmentBody({ peer: peerBody(1, { address: '10.78.0.1' }) }),
      'peer.address is outside',
    ],
    [
      'with a wrong address',
      enrollmentBody({ peer: peerBody(1, { address: 'canary' }) }),
      'peer.address is not an IP address',
    ],
    [
      'with another address than listed',
      enrollmentBody({ peer: peerBody(1, { address: '10.77.0.9' }) }),
      'is not what the network lists',
    ],
    ['with another id than listed', enrollmentBody({ peer: peerBody(1, { id: 9 }) }), 'is not what the network lists'],
    [
      "with another peer's address",
      { peer: peerBody(1, { address: '10.77.0.2' }), network: others },
      "is another peer's",
    ],
    ["with another peer's id", { peer: peerBody(1, { id: 2 }), network: others }, "is another peer's"],
    [
      'with a bad entry for this host in the map',
      enrollmentBody({ network: networkBody({ peers: [peerBody(1, { endpoint: 'canary' }), peerBody(2)] }) }),
      'whose entry for this host cannot be used: endpoint',
    ],
    [
      'with another entry for the key of this host in the map',
      enrollmentBody({ network: networkBody({ peers: [peerBody(1), peerBody(2, { public_key: keyOf(1) })] }) }),
      'whose entry for this host cannot be used: another peer has the same public key',
    ],
    ['with a bad token', enrollmentBody({ access_token: 'canary\r\nx: y' }), 'access_token is not a token'],
    ['with an empty token', enrollmentBody({ access_token: '' }), 'access_token is not a token'],
    ['with a number for a token', enrollmentBody({ access_token: 7 }), 'access_token is not a string'],
    [
      'with a bad revision',
      enrollmentBody({ network: networkBody({ revision: '12' }) }),
      'network.revision is not a whole number',
    ],
    [
      'for another kind of tunnel',
      enrollmentBody({ network: networkBody({ vpn_type: 'openvpn' }) }),
      'network.vpn_type is not wireguard',
    ],
    ['that is empty', {}, 'lacks network (it has: nothing)'],
    ['that is a list', [enrollmentBody()], 'is not an object'],
  ])('%s', (_, body, problem) => {
    const message = refusalOf(body);
    expect(message).toContain(problem);
    expect(message).not.toContain('canary');
  });

  test('no JSON makes anything but an enrolment or a BadReply', () => {
    const field = fc.constantFrom(
      ...Object.keys(enrollmentBody()),
      ...Object.keys(peerBody(1)),
      '__proto__',
      'data',
      'peers',
    );
    const body = fc.oneof(fc.jsonValue(), fc.dictionary(field, fc.jsonValue({ maxDepth: 3 })));
    const nearly = body.map((changes) => ({ ...enrollmentBody(), ...(changes as object) }));
    fc.assert(
      fc.property(fc.oneof(body, nearly), (reply) => {
        try {
          decode(reply);
        } catch (error) {
          if (!(error instanceof BadReply)) throw error;
        }
      }),
    );
  });
});
