import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeMap } from '../../../src/api/decode/map.ts';
import { BadReply } from '../../../src/core/errors/index.ts';
import { keyOf, networkBody, peerBody, source, without } from '../samples.ts';

const decode = (body: unknown, etag: string | null = null) => decodeMap(body, source, { network: 7, etag });

/** What is said of a body that cannot be read. */
function refusalOf(body: unknown): string {
  try {
    decode(body);
  } catch (error) {
    expect(error).toBeInstanceOf(BadReply);
    return (error as BadReply).message;
  }
  throw new Error('the body was read');
}

/** Why a peer of a map that can be read is skipped. */
function skippedOf(body: unknown): string {
  const { skipped = [] } = decode(body);
  return skipped.map(({ reason }) => reason).join('; ');
}

const withPeer = (changes: object) => networkBody({ peers: [peerBody(1), peerBody(2, changes)] });

describe('a map', () => {
  const route = '192.168.10.0/24';
  const behind = { route, dns_servers: ['192.168.10.53'], domains: ['corp.example'] };
  const servers = ['192.168.10.53'];

  test.each<[string, unknown, unknown]>([
    ['as the service sends them', [behind], [{ route, servers, domains: ['corp.example'] }]],
    [
      'in another spelling',
      [{ ...behind, domains: ['BÜCHER.example.'] }],
      [{ route, servers, domains: ['xn--bcher-kva.example'] }],
    ],
    [
      'without servers that are none, or outside the route',
      [{ ...behind, dns_servers: ['192.168.11.53', 'fd00::53', '192.168.10.053', 53, ...servers, ...servers] }],
      [{ route, servers, domains: ['corp.example'] }],
    ],
    [
      'without domains that are none',
      [
        {
          ...behind,
          domains: [
            'corp',
            '.',
            '~.',
            'a..b',
            `${'x'.repeat(64)}.example`,
            '--dns',
            'a b.example',
            'a\nb.example',
            null,
            'corp.example',
          ],
        },
      ],
      [{ route, servers, domains: ['corp.example'] }],
    ],
    [
      'of a route that has host bits',
      [{ ...behind, route: '192.168.10.7/24' }],
      [{ route, servers, domains: ['corp.example'] }],
    ],
    [
      'with the first of two entries for a route or a domain',
      [behind, behind, { ...behind, route: '192.168.10.0/25' }],
      [{ route, servers, domains: ['corp.example'] }],
    ],
    ['not, if no server is usable', [{ ...behind, dns_servers: ['192.168.11.53'] }], undefined],
    ['not, if an entry is none', [7, null, {}, { route }, { ...behind, domains: 'corp.example' }], undefined],
    ['not, if the field has another meaning', 7, undefined],
    ['not, if there are too many', Array.from({ length: 81 }, () => behind), undefined],
  ])('has the domains behind routes %s', (_, route_dns, expected) => {
    const { routeDns, ...rest } = decode({ data: networkBody({ route_dns }) }, '"12"');
    expect(routeDns).toEqual(expected);
    expect(rest).toEqual(decode({ data: networkBody() }, '"12"'));
  });

  test('is decoded into typed values', () => {
    expect(decode({ data: networkBody() }, '"12"')).toEqual({
      id: 7,
      name: 'office',
      cidr: '10.77.0.0/16',
      routes: ['192.168.10.0/24'],
      revision: '"12"',
      peers: [
        {
          id: 1,
          name: 'host-1',
          type: 'origin',
          publicKey: keyOf(1),
          address: '10.77.0.1',
          endpoint: { host: '203.0.113.22', port: 51820 },
          routes: null,
          withdrawn: [],
        },
        expect.objectContaining({ id: 2, endpoint: null, routes: null }),
        expect.objectContaining({ id: 3, type: 'connector', routes: [] }),
      ],
    });
  });

  test('is the same with and without the envelope, and with unknown properties', () => {
    const map = decode({ data: networkBody() });
    expect(decode(networkBody())).toEqual(map);
    expect(decode({ data: networkBody({ color: 'red' }), meta: { page: 1 } })).toEqual(map);
    expect(decode({ data: withPeer({ color: 'red', __proto__: null }) }).peers).toHaveLength(2);
  });

  test.each([
    ['"12"', '"12"'],
    ['""', '""'],
    ['W/"12"', 'W/"12"'],
    ['W/12', null],
    ['w/"12"', null],
    ['12', null],
    ['"1"2"', null],
    ['"1\u00e4"', null],
    [`"${'a'.repeat(200)}"`, null],
    [null, null],
  ])('with the ETag %j has the revision %j', (etag, revision) => {
    expect(decode(networkBody(), etag).revision).toBe(revision);
  });

  test.each(['description', 'vpn_type', 'revision'])('may lack %s', (field) => {
    expect(decode(without(networkBody(), field))).toEqual(decode(networkBody()));
  });

  test.each(['created_at', 'endpoint', 'routes'])('may lack the %s of a peer', (field) => {
    const peers = [without(peerBody(1, { routes: null }), field)];
    expect(decode(networkBody({ peers })).peers[0]).toMatchObject({ id: 1, routes: null });
  });

  test('has the longest age of a map, and passes over what is meant otherwise by that name', () => {
    const ageOf = (age: unknown) => decode(networkBody({ map_max_age_seconds: age })).maxAge;
    expect([ageOf(300), ageOf(undefined)]).toEqual([300, undefined]);
    for (const odd of [0, -1, 1.5, '300', null, {}, 1e12]) expect(ageOf(odd)).toBeUndefined();
  });

  test('has the relay, by any form of id, and passes over what is meant otherwise by that name', () => {
    const relayOf = (relay: unknown) => decode(networkBody({ relay })).relay;
    expect([relayOf(4), relayOf('edge'), relayOf(undefined)]).toEqual([4, 'edge', undefined]);
    for (const odd of [null, '', true, {}, [4]]) expect(relayOf(odd), JSON.stringify(odd)).toBeUndefined();
  });

  test('has the peers that follow the relay, and passes over what is meant otherwise by that name', () => {
    const followsOf = (follows: unknown) =>
      decode(networkBody({ peers: [peerBody(1, { follows_relay: follows })] })).peers[0]?.followsRelay;
    expect(followsOf(true)).toBe(true);
    for (const odd of [undefined, null, false, 1, 'true', {}]) expect(followsOf(odd)).toBeUndefined();
  });

  test('has the ranks of connectors, and passes over what is meant otherwise by the same names', () => {
    const since = '2026-03-01T12:00:00.000Z';
    const rankOf = (fields: object) => {
      const [{ servingSince, priority } = peerBody(1) as never] = decode(
        networkBody({ peers: [peerBody(1, fields)] }),
      ).peers;
      return [servingSince, priority];
    };
    expect(rankOf({ serving_since: since, priority: 7 })).toEqual([Date.parse(since), 7]);
    expect(rankOf({ serving_since: null, priority: 0 })).toEqual([undefined, undefined]);
    for (const odd of ['high', {}, [], 1.5, true, 1e300]) {
      expect(rankOf({ serving_since: odd === 1.5 ? 'soon' : odd, priority: odd })).toEqual([undefined, undefined]);
    }
  });

  test('has peers that dial a connector alone, and passes over what is meant otherwise by the same names', () => {
    const viaOf = (fields: object) => decode(networkBody({ peers: [peerBody(1, fields)] })).peers[0]?.via;
    expect(viaOf({ via: 'connectors', profile: { connector: 4 } })).toEqual({ connector: 4 });
    expect(viaOf({ via: 'connectors', profile: { connector: 'edge' } })).toEqual({ connector: 'edge' });
    for (const odd of [undefined, null, 7, 'edge', [], {}, { connector: {} }, { connector: '' }])
      expect(viaOf({ via: 'connectors', profile: odd })).toEqual({ connector: null });
    for (const via of [undefined, null, 'all', ['connectors'], { connector: 4 }])
      expect(viaOf({ via, profile: { connector: 4 } })).toBeUndefined();
  });

  test('may lack routes: it has none then', () => {
    expect(decode(without(networkBody(), 'routes')).routes).toEqual([]);
  });

  test.each(['id', 'name', 'private_cidr', 'peers'])('that lacks %s is refused with the names it has', (field) => {
    const message = refusalOf({ data: without(networkBody(), field) });
    expect(message).toContain(`lacks network.${field} (it has: `);
    const names = Object.keys(networkBody()).filter((name) => name !== field);
    expect(message).toContain(`(it has: ${names.join(', ')})`);
    // Names, never values.
    expect(message).not.toMatch(/office|10\.77|192\.168/);
    expect(refusalOf(networkBody({ [field]: null }))).toContain(`lacks network.${field}`);
  });

  test('needs of a peer only its key and its address', () => {
    const peerWith = (changes: object) => ({ public_key: keyOf(4), address: '10.77.0.4', ...changes });
    const [plain] = decode(networkBody({ peers: [peerWith({})] })).peers;
    expect(plain).toMatchObject({ id: keyOf(4), name: '10.77.0.4', type: 'origin', endpoint: null, routes: null });
    const [serving] = decode(networkBody({ peers: [peerWith({ routes: ['192.168.10.0/24'] })] })).peers;
    expect(serving).toMatchObject({ type: 'connector', routes: ['192.168.10.0/24'] });
  });

  test.each(['public_key', 'address'])('with a peer that lacks %s is a map without it', (field) => {
    const peers = [peerBody(1), peerBody(2), peerBody(3), without(peerBody(4), field)];
    const map = decode({ data: networkBody({ peers }) });
    expect(map.peers.map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(map.skipped).toMatchObject([{ id: 4, name: 'host-4' }]);
    expect(skippedOf({ data: networkBody({ peers }) })).toMatch(new RegExp(`^lacks ${field} \\(it has: `));
  });

  test('lists at most twenty of the names received, printable and short', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`n${n}\u001b[31m${'x'.repeat(500)}`, 1]));
    const message = refusalOf(many);
    expect(message).toContain('and 980 more');
    expect(message.length).toBeLessThan(1_200);
    expect(message).not.toMatch(/\p{Cc}/u);
  });
});

describe('an entry that is no peer', () => {
  test('is skipped, whatever it is', () => {
    for (const entry of ['canary', [], null, 7, {}]) {
      const { peers, skipped } = decode(networkBody({ peers: [peerBody(1), entry] }));
      expect(peers).toHaveLength(1);
      expect(skipped).toEqual([
        { id: null, name: null, publicKey: null, address: null, reason: expect.stringMatching(/^(is|its|lacks)/) },
      ]);
    }
  });

  test('is known by what can be read of it', () => {
    const { skipped } = decode(withPeer({ peer_type: 'gateway', endpoint: '203.0.113.7' }));
    expect(skipped).toEqual([
      {
        ...{ id: 2, name: 'host-2', publicKey: keyOf(2), address: '10.77.0.2' },
        reason: 'peer_type must be one of connector, admin_device, origin',
      },
    ]);
  });
});

describe('a wrong value is refused by the path of its field, and not repeated', () => {
  const wrong: unknown[] = [true, 7.5, -1, {}, [], 'canary', '', 2 ** 60];

  test.each([
    ['id', [true, {}, [], '', 'a b', '..', 2 ** 60]],
    ['name', [true, 7, {}, [], `canary${'a'.repeat(115)}`, '\u{1f600}'.repeat(121)]],
    [
      'private_cidr',
      [...wrong, '10.77.0.0', '10.77.0.1/16', '10.77.0.0/33', '10.77.0.0/016', 'fd00::/64', ' 10.77.0.0/16'],
    ],
    ['routes', [true, 7, {}, 'canary', [7], ['canary'], [null], Array(257).fill('192.168.10.0/24')]],
    ['vpn_type', [true, 'canary', {}]],
    ['peers', [true, 7, {}, 'canary']],
  ] as [string, unknown[]][])('network.%s', (field, values) => {
    for (const value of values) {
      const message = refusalOf(networkBody({ [field]: value }));
      expect(message, JSON.stringify(value).slice(0, 80)).toMatch(
        new RegExp(`cannot be used: network\\.${field}(\\[0\\])? `),
      );
      expect(message).not.toContain('canary');
    }
  });

  test.each([
    ['id', [true, {}, [], '', '.', '..', 'a b', 'a\n', 'ä', 'a'.repeat(256), 2 ** 60]],
    ['name', [true, 7, {}, [], `canary${'a'.repeat(115)}`]],
    ['peer_type', [...wrong, 'Origin', '__proto__']],
    ['public_key', [...wrong, keyOf(2).slice(1), `${keyOf(2)}\n`, keyOf(2).replace(/.=$/, 'B=')]],
    [
      'address',
      [...wrong, '10.77.0.2/16', '10.77.0.2/24', '010.77.0.2', '10.77.0.2\n', '10.77.2', 'fd00::1', '10.77.0.2/32/32'],
    ],
    [
      'endpoint',
      [...wrong, 'canary:0', 'canary:65536', '[Interface]\nPostUp=canary', 'fd00::1:51820', `${'a'.repeat(400)}:1`],
    ],
    ['routes', [true, {}, 'canary', [7], ['canary'], ['192.168.1.1']]],
  ] as [string, unknown[]][])('of a peer, as its %s, and the peer is skipped', (field, values) => {
    for (const value of values) {
      const map = decode(withPeer({ [field]: value }));
      expect(map.peers.map(({ id }) => id)).toEqual([1]);
      expect(skippedOf(withPeer({ [field]: value })), JSON.stringify(value).slice(0, 80)).toMatch(
        new RegExp(`^${field}(\\[0\\])? `),
      );
      expect(JSON.stringify(map)).not.toContain('canary');
    }
  });

  test('that of another network', () => {
    expect(refusalOf(networkBody({ id: 8 }))).toContain('network.id is not that of the requested network');
    expect(decode(networkBody({ id: '7' })).id).toBe('7');
  });

  test('of 10.0.0.0/8 the address before and the one after', () => {
    const peers = (address: string) => networkBody({ private_cidr: '10.0.0.0/8', peers: [peerBody(1, { address })] });
    expect(decode(peers('10.255.255.255')).peers).toHaveLength(1);
    for (const address of ['9.255.255.255', '11.0.0.0', '110.0.0.1']) {
      expect(skippedOf(peers(address))).toBe('address is outside the range of the network');
    }
  });

  test.each([
    ['id', { id: 1 }],
    ['id', { id: '1' }],
    ['public_key', { public_key: keyOf(1) }],
    ['address', { address: '10.77.0.1' }],
    ['address', { address: '10.77.0.1/32' }],
  ])('two peers with one %s: %j', (field, changes) => {
    const { peers, skipped } = decode(withPeer(changes));
    const reason = `another peer has the same ${field.replace('_', ' ')}`;
    expect({ peers, skipped }).toMatchObject({ peers: [], skipped: [{ id: 1, reason }, { reason }] });
  });
});

describe('what is taken though it is not in our spelling', () => {
  test('names of 120 characters beyond the basic plane', () => {
    const name = '\u{1f600}'.repeat(120);
    expect(decode(withPeer({ name })).peers[1]?.name).toBe(name);
  });

  test('an id that is a word', () => {
    const id = `a/b?c#d%2e${'x'.repeat(54)}`;
    expect(decode(withPeer({ id })).peers[1]?.id).toBe(id);
  });

  test('an address as the prefix that holds nothing else', () => {
    expect(decode(withPeer({ address: '10.77.0.2/32' })).peers[1]?.address).toBe('10.77.0.2');
  });

  test('routes with host bits, which are cleared, and repeated ones, which are taken once', () => {
    const routes = ['192.168.10.7/24', '192.168.10.0/24', '172.16.5.5/12'];
    expect(decode(networkBody({ routes })).routes).toEqual(['192.168.10.0/24', '172.16.0.0/12']);
    expect(decode(withPeer({ routes })).peers[1]?.routes).toEqual(['192.168.10.0/24', '172.16.0.0/12']);
  });

  test('names of fields that are not ours', () => {
    const { id, name, public_key, address, endpoint } = peerBody(1);
    const spellings = [
      { id, name, type: 'origin', publicKey: public_key, ip: address, endpoint },
      {
        peer_id: id,
        hostname: name,
        peerType: 'origin',
        pubkey: public_key,
        ip_address: address,
        public_endpoint: endpoint,
      },
      { uuid: id, peer_name: name, type: 'origin', public_key, private_ip: `${address}/32`, endpoint },
      { id, name, peer_type: 'origin', public_key, address: null, assigned_ip: address, endpoint },
    ];
    const expected = decode(networkBody({ peers: [peerBody(1)] }));
    for (const peer of spellings) {
      const body = {
        network_id: 7,
        network_name: 'office',
        cidr: '10.77.0.0/16',
        advertised_routes: ['192.168.10.0/24'],
        members: [peer],
      };
      expect(decode(body)).toEqual(expected);
    }
  });

  test('a wrong value is named as it came, our own name going before another', () => {
    const { public_key, ...rest } = peerBody(1);
    expect(skippedOf(networkBody({ peers: [{ ...rest, pubkey: 'no' }] }))).toMatch(/^pubkey is not/);
    expect(decode(withPeer({ ip: 'no', pubkey: 'no' })).peers).toHaveLength(2);
  });
});

describe('size', () => {
  const many = (count: number) =>
    networkBody({ private_cidr: '10.0.0.0/8', peers: Array.from({ length: count }, (_, n) => peerBody(n)) });

  test('10,000 peers are decoded', () => {
    const { peers } = decode({ data: many(10_000) });
    expect(peers).toHaveLength(10_000);
    expect(peers.at(-1)).toMatchObject({ id: 9_999, address: '10.77.39.15' });
  });

  test('16,384 peers are a map, one more is none', () => {
    expect(decode(many(16_384)).peers).toHaveLength(16_384);
    expect(refusalOf(many(16_385))).toContain('network.peers has more than 16384 entries');
  });

  test('zero peers are a map', () => {
    expect(decode(networkBody({ peers: [] })).peers).toEqual([]);
  });
});

describe('properties', () => {
  test('no JSON makes anything but a map or a BadReply', () => {
    const onlyBadReply = (body: unknown) => {
      try {
        decode(body);
      } catch (error) {
        if (!(error instanceof BadReply)) throw error;
      }
    };
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 4 }), onlyBadReply));
    // Nearly right bodies go deeper than arbitrary ones.
    const field = fc.constantFrom(
      ...Object.keys(networkBody()),
      ...Object.keys(peerBody(1)),
      '__proto__',
      'constructor',
      'data',
    );
    const change = fc.dictionary(field, fc.jsonValue({ maxDepth: 2 }));
    fc.assert(
      fc.property(change, change, (network, peer) => onlyBadReply({ data: { ...withPeer(peer), ...network } })),
    );
  });
});
