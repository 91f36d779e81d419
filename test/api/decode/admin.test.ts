import { describe, expect, test } from 'vitest';
import {
  decodeChangedPeer,
  decodeKeys,
  decodeListedPeers,
  decodeNewKey,
  decodeSession,
  decodeWholeNetwork,
} from '../../../src/api/decode/admin.ts';
import { EnrollmentKey } from '../../../src/contract/enrollment-key.ts';
import { Peer } from '../../../src/contract/peer.ts';
import { fingerprintOf } from '../../../src/core/crypto/fingerprint.ts';
import { keyOf, networkBody, peerBody, source, without } from '../samples.ts';

const at = '2026-03-01T12:00:00.000Z';
const later = '2026-04-01T12:00:00.000Z';
const [lan, other] = ['192.168.10.0/24', '192.168.11.0/24'];

/** A peer with a value of its own in each field of the contract. */
const full = {
  ...{ id: 3, name: 'edge', dns_label: 'edge-1', peer_type: 'connector', public_key: keyOf(3), address: '10.77.0.3' },
  ...{
    endpoint: '[2001:db8::1]:51820',
    routes: [lan],
    withdrawn: [other],
    priority: 7,
    network_secret_tag: 'ab'.repeat(8),
  },
  ...{ serving_since: '2026-03-02T12:00:00.000Z', suspended_at: '2026-03-03T12:00:00.000Z', expires_at: later },
  via: 'connectors',
  profile: { connector: 9, public_key: keyOf(9), endpoint: '203.0.113.9:1', routes: [lan], declined: [other] },
  follows_relay: true,
  masquerades: true,
  tags: ['web'],
  enforces_rules: true,
  reauth_hours: 24,
  created_at: at,
};

describe('a peer, for an administrator', () => {
  test('has each field as the control plane lists it, but for what a host proves', () => {
    const others = ['identity_key', 'key_proof', 'awaiting_approval'];
    const fields = Object.keys(Peer.shape).filter((name) => !others.includes(name));
    expect(Object.keys(full).toSorted()).toEqual(fields.toSorted());
    expect(decodeChangedPeer({ data: full }, source)).toEqual(full);
    expect(decodeListedPeers({ data: [peerBody(1), full] }, source)).toEqual([peerBody(1), full]);
    expect(decodeWholeNetwork(networkBody({ peers: [full] }), source).peers).toEqual([full]);
  });

  test.each(
    Object.keys(full).filter((name) => Peer.shape[name as keyof typeof Peer.shape].safeParse(undefined).success),
  )('has no %s where none is listed', (name) => {
    // Only a peer that dials a connector alone has its profile.
    const expected = name === 'via' ? without(without(full, 'via'), 'profile') : without(full, name);
    expect(decodeChangedPeer(without(full, name), source)).toEqual(expected);
  });

  test('has the fingerprint of its public key while it waits for approval', () => {
    const waiting = { ...full, awaiting_approval: at };
    expect(decodeChangedPeer(waiting, source)).toEqual({ ...waiting, fingerprint: fingerprintOf(full.public_key) });
  });

  test('has its user, also a removed one, and none of another form', () => {
    for (const id of [4, null]) {
      const user = { id, email: 'a@example.net' };
      expect(decodeListedPeers({ data: [{ ...full, user }] }, source)).toEqual([{ ...full, user }]);
    }
    for (const user of ['a@example.net', { id: 4 }, 7])
      expect(decodeListedPeers({ data: [{ ...full, user }] }, source)).toEqual([full]);
  });

  test('that serves no route is another than one that serves all', () => {
    expect(decodeChangedPeer({ ...full, routes: [] }, source).routes).toEqual([]);
    expect(decodeChangedPeer({ ...full, routes: null }, source)).not.toHaveProperty('routes');
  });

  test('keeps its own fields where a peer before it in the list is skipped', () => {
    const peers = [peerBody(1, { created_at: later }), peerBody(2, { endpoint: 'none' }), full, peerBody(4)];
    const network = decodeWholeNetwork(networkBody({ peers }), source);
    expect(network.peers).toEqual([peers[0], full, peers[3]]);
    expect(network.skipped_peers).toMatchObject([{ id: 2, name: 'host-2' }]);
  });
});

describe('a network, for an administrator', () => {
  const entry = { route: '192.168.10.0/24', dns_servers: ['192.168.10.53'], domains: ['corp.example'] };
  const self_enroll = { roles: ['member'], limit: 3, reauth_hours: null };
  test.each([{ map_max_age_seconds: 300 }, { relay: 2 }, { spread: true }, { route_dns: [entry] }, { self_enroll }])(
    'has %o',
    (fields) => {
      const body = networkBody(fields);
      expect(decodeWholeNetwork(body, source)).toEqual(body);
    },
  );

  test.each([[[]], [7], ['corp.example'], [[{ ...entry, domains: 'corp.example' }]]])(
    'has no domains where route_dns is %j',
    (route_dns) => {
      expect('route_dns' in decodeWholeNetwork(networkBody({ route_dns }), source)).toBe(false);
    },
  );
});

describe('an enrolment key', () => {
  const asked = { name: 'asked', max_uses: 9, expires_in_hours: 1 };
  const key = {
    ...{ id: 5, name: 'rack', max_uses: 4, uses: 3, expires_at: at },
    ...{ peer_types: ['connector', 'admin_device'], routes: [lan], tags: ['web'], peer_expires_in_hours: 48 },
  };

  test('has each field as the control plane lists it', () => {
    expect(Object.keys(key).toSorted()).toEqual(Object.keys(EnrollmentKey.shape).toSorted());
    expect(decodeKeys({ data: [key] }, source)).toEqual([key]);
    const made = { ...key, enrollment_token: 'cpn_new' };
    expect(decodeNewKey({ data: made }, source, asked)).toEqual(made);
  });

  test('has the limits of the request where the reply names none', () => {
    expect(decodeNewKey({ token: 'cpn_new' }, source, asked)).toEqual({
      ...{ id: null, name: 'asked', enrollment_token: 'cpn_new', max_uses: 9, uses: 0, expires_at: null },
    });
  });

  test.each<[string, unknown]>([
    ['id', {}],
    ['peer_types', ['router']],
    ['peer_types', 'connector'],
    ['routes', ['192.168.10.0']],
    ['routes', lan],
    ['tags', ['Web']],
    ['tags', 'web'],
    ['peer_expires_in_hours', 0],
    ['peer_expires_in_hours', '48'],
  ])('just made is not lost for its %s, which is %j', (name, value) => {
    const made = { ...key, enrollment_token: 'cpn_new' };
    const { [name]: _, ...rest } = decodeNewKey({ ...made, [name]: value }, source, asked) as Record<string, unknown>;
    expect([_ ?? null, rest]).toEqual([null, without(made, name)]);
  });
});

describe('a session', () => {
  test.each([null, 'Bearer', 'bearer', 'BEARER'])('is by a token of the type %j', (type) => {
    expect(decodeSession({ token: 't', token_type: type }, source).token.reveal()).toBe('t');
  });

  test.each([
    [at, at],
    [1_772_366_400, at],
    ['soon', null],
    [{}, null],
    [null, null],
  ])('that ends at %j is not lost for it', (expires, read) => {
    const session = decodeSession({ access_token: 't', expires_at: expires }, source);
    expect([session.token.reveal(), session.expiresAt]).toEqual(['t', read]);
  });
});
