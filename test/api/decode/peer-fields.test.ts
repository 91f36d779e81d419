import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { decodeChangedPeer, decodeWholeNetwork } from '../../../src/api/decode/admin.ts';
import { decodeEnrollment } from '../../../src/api/decode/enrollment.ts';
import { decodeAudit } from '../../../src/api/decode/extensions.ts';
import { decodeMap, entityTag } from '../../../src/api/decode/map.ts';
import { Peer } from '../../../src/contract/peer.ts';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import { BadReply } from '../../../src/core/errors/index.ts';
import { enrollmentBody, keyOf, networkBody, peerBody, source, without } from '../samples.ts';

const decode = (body: object) => decodeMap(body, source, { network: 7, etag: null });
const peerOf = (fields: object) => decode(networkBody({ peers: [peerBody(1), fields] })).peers[1];

const [since, until] = ['2026-03-02T12:00:00.000Z', '2026-04-01T12:00:00.000Z'];
const identity = makeIdentity(new Uint8Array(32).fill(3)).key;
const proof = { serial: 5, signature: `${'A'.repeat(86)}==` };

/** A peer with a value of its own in each field of the contract that a host reads. */
const full = {
  ...{ id: 3, name: 'edge', dns_label: 'edge-1', peer_type: 'connector', public_key: keyOf(3), address: '10.77.0.3' },
  ...{ endpoint: '[2001:db8::1]:51820', routes: ['192.168.10.0/24'], withdrawn: ['10.77.0.0/16'], priority: 7 },
  ...{ identity_key: identity, key_proof: proof, network_secret_tag: 'ab'.repeat(8) },
  ...{
    serving_since: since,
    expires_at: until,
    awaiting_approval: until,
    via: 'connectors',
    profile: { connector: 9 },
  },
  follows_relay: true,
  masquerades: true,
  tags: ['web', 'ops'],
  enforces_rules: true,
  reauth_hours: 24,
};

describe('a peer of a map', () => {
  test('has each field as the control plane lists it', () => {
    // When it was made and suspended is for administrators.
    const fields = Object.keys(Peer.shape).filter((name) => name !== 'created_at' && name !== 'suspended_at');
    expect(Object.keys(full).toSorted()).toEqual(fields.toSorted());
    expect(peerOf(full)).toEqual({
      ...{ id: 3, name: 'edge', label: 'edge-1', type: 'connector', publicKey: keyOf(3), address: '10.77.0.3' },
      ...{
        endpoint: { host: '2001:db8::1', port: 51820 },
        routes: full.routes,
        withdrawn: full.withdrawn,
        priority: 7,
      },
      ...{ identity, proof, secretTag: full.network_secret_tag, via: { connector: 9 }, followsRelay: true },
      ...{ masquerades: true, tags: ['web', 'ops'], enforcesRules: true },
      ...{ servingSince: Date.parse(since), expiresAt: Date.parse(until), reauthHours: 24 },
      awaitingApproval: Date.parse(until),
    });
  });

  test.each<[string, unknown[]]>([
    ['withdrawn', [true, {}, 'all', ['192.168.10.1'], [7]]],
    ['identity_key', [7, '', 'none', `${'A'.repeat(43)}`, `${'A'.repeat(42)}B=`]],
    ['key_proof', [7, [], {}, { serial: 5 }, { signature: proof.signature }, { ...proof, serial: -1 }]],
    [
      'key_proof',
      [
        { ...proof, serial: '5' },
        { ...proof, signature: 'A'.repeat(88) },
        { ...proof, signature: 7 },
      ],
    ],
    ['network_secret_tag', [7, '', 'AB'.repeat(8), 'ab'.repeat(7), 'ab'.repeat(9), ['ab'.repeat(8)]]],
  ])('is skipped for a wrong %s', (name, values) => {
    for (const value of values) {
      const map = decode(networkBody({ peers: [peerBody(1), { ...full, [name]: value }] }));
      expect(map.peers.map(({ id }) => id)).toEqual([1]);
      expect(map.skipped, JSON.stringify(value)).toMatchObject([{ id: 3, reason: expect.stringContaining(name) }]);
    }
  });

  test.each<[string, string, unknown[]]>([
    ['dns_label', 'label', [7, '', 'Edge', 'a b', '-a', 'a.b', 'a'.repeat(64), ['a']]],
    ['expires_at', 'expiresAt', [true, 'never', {}, '', 1_775_000_000, '0001-01-01T00:00:00Z', '1970-01-01T00:00:00Z']],
    ['serving_since', 'servingSince', [true, 'always', {}, '', 1_775_000_000, '0001-01-01T00:00:00Z']],
    ['priority', 'priority', [0, '7', 1.5, {}]],
    ['reauth_hours', 'reauthHours', [0, '7', 1.5, {}]],
    ['via', 'via', ['routes', true, {}]],
  ])('is used without its %s where the service means something else by it', (name, field, values) => {
    for (const value of values) {
      expect(peerOf({ ...full, [name]: value }), JSON.stringify(value)).toEqual(without(peerOf(full) ?? {}, field));
    }
  });

  test('has an instant without an offset in UTC, as SQL writes it, whatever the time zone of this host', () => {
    vi.stubEnv('TZ', 'Asia/Kolkata');
    onTestFinished(() => void vi.unstubAllEnvs());
    const written = { ...full, expires_at: '2026-04-01 12:00:00', serving_since: '2026-03-02 12:00:00' };
    expect(peerOf(written)).toEqual(peerOf(full));
  });

  test('may be dialled by the longest name that there is', () => {
    const host = `${'a'.repeat(63)}.`.repeat(3) + 'b'.repeat(61);
    expect(host).toHaveLength(253);
    expect(peerOf({ ...full, endpoint: `${host}:51820` })?.endpoint).toEqual({ host, port: 51820 });
  });

  test('is skipped with all others of its key, and no other is', () => {
    const peers = [1, 2, 3, 4, 5].map((id) => peerBody(id, id > 1 && id < 5 ? { public_key: keyOf(2) } : {}));
    const map = decode(networkBody({ peers }));
    expect([map.peers.map(({ id }) => id), map.skipped?.map(({ id }) => id)]).toEqual([
      [1, 5],
      [2, 3, 4],
    ]);
  });

  test('may have any address where the range is that of one address alone', () => {
    const network = networkBody({ private_cidr: '10.77.0.9/32', peers: [peerBody(1), peerBody(2)] });
    expect(decode(network).peers).toHaveLength(2);
    const narrow = networkBody({ private_cidr: '10.77.0.0/31', peers: [peerBody(1), peerBody(2)] });
    expect(decode(narrow).skipped).toMatchObject([{ id: 2 }]);
  });
});

describe('the limit', () => {
  const isRead = (read: () => unknown) => {
    try {
      read();
      return true;
    } catch (error) {
      if (error instanceof BadReply) return false;
      throw error;
    }
  };
  const asked = { publicKey: parsePublicKey(keyOf(1)), name: 'host-1', type: 'origin', endpoint: null } as const;
  const subject = { kind: 'user', id: 1, name: 'a' };
  const entry = { id: 1, at: since, actor: subject, action: 'x', target: subject };
  const ranges = (count: number) => Array.from({ length: count }, (_, n) => `172.${16 + (n >> 8)}.${n & 255}.0/24`);

  test.each<[string, number, (length: number) => boolean]>([
    ['an id', 255, (length) => peerOf(peerBody(2, { id: 'a'.repeat(length) })) !== undefined],
    ['a name', 120, (length) => isRead(() => decode(networkBody({ name: 'a'.repeat(length) })))],
    ['the routes of a network', 256, (length) => isRead(() => decode(networkBody({ routes: ranges(length) })))],
    ['the routes of a peer', 256, (length) => peerOf(peerBody(2, { routes: ranges(length) })) !== undefined],
    [
      'the routes of a profile',
      256,
      (length) => {
        const profile = {
          connector: 9,
          public_key: keyOf(9),
          endpoint: 'a.example:1',
          routes: ranges(length),
          declined: [],
        };
        return decodeChangedPeer({ ...peerBody(2), via: 'connectors', profile }, source).profile !== undefined;
      },
    ],
    [
      'a word of the audit',
      64,
      (length) => isRead(() => decodeAudit([{ ...entry, action: 'a'.repeat(length) }], source)),
    ],
    ['an ETag', 128, (length) => entityTag(`"${'a'.repeat(length)}"`) !== null],
    ['a nonce', 128, (length) => decode(networkBody({ nonce: 'a'.repeat(length) })).nonce !== undefined],
    ['the age of a map', 315_360_000, (age) => decode(networkBody({ map_max_age_seconds: age })).maxAge === age],
    [
      'a token',
      4096,
      (length) => isRead(() => decodeEnrollment(enrollmentBody({ access_token: 'a'.repeat(length) }), source, asked)),
    ],
  ])('of %s is %i', (_, most, fits) => {
    expect([fits(most), fits(most + 1)]).toEqual([true, false]);
  });

  test('of what a nonce may hold is ASCII without blanks', () => {
    const nonceOf = (nonce: unknown) => decode(networkBody({ nonce })).nonce;
    expect(nonceOf('a-Z_0~!')).toBe('a-Z_0~!');
    for (const odd of ['', 'a b', 'a\n', 'ä', '\u007f', 7, {}, null]) expect(nonceOf(odd)).toBeUndefined();
  });
});

describe('the envelope of a reply', () => {
  test('is an object or a list in its data, and any other data is a field of the reply itself', () => {
    for (const data of ['x', 7, true]) expect(decode({ ...networkBody(), data })).toEqual(decode(networkBody()));
    expect(() => decode({ ...networkBody(), data: null })).toThrow(BadReply);
    expect(() => decode({ ...networkBody(), data: [] })).toThrow(BadReply);
  });

  test('may have the number 0 wherever it may have a number', () => {
    expect(decodeWholeNetwork(networkBody({ revision: 0 }), source).revision).toBe(0);
    expect(decode(networkBody({ id: 7, peers: [peerBody(1, { id: 0 })] })).peers).toMatchObject([{ id: 0 }]);
  });
});
