import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeMap } from '../../src/api/decode/map.ts';
import { connectPeerService as connect } from '../../src/api/peer-service.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { type Feature, features } from '../../src/core/map/features.ts';
import type { NetworkMap } from '../../src/core/map/model.ts';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane } from '../control-plane/harness.ts';
import { connectPeerService } from './described-service.ts';
import { failureOf, keyOf, networkBody, peerBody, source, unhurried, without } from './samples.ts';
import { json, type Reply, serve } from './server.ts';

const token = new Secret('token-sample');
const known = decodeMap(networkBody(), source, { network: 7, etag: '"12"' });
const applied = { im: 'cpn-delta', 'delta-base': '"12"', etag: '"13"' };
const moved = peerBody(2, { endpoint: '203.0.113.99:51820' });
const deltaBody = (changes: object = {}) => networkBody({ revision: 13, peers: [moved], removed: [3], ...changes });
const delta = (changes: object = {}, headers: object = {}) =>
  json(226, { data: deltaBody(changes) }, { ...applied, ...headers });
const whole = json(200, { data: networkBody({ revision: 14, peers: [peerBody(1), peerBody(9)] }) }, { etag: '"14"' });

async function read(named: NetworkMap | string | null, ...replies: Reply[]) {
  const { address, asked } = await serve(...replies);
  const { options, retries } = unhurried();
  const reading = connectPeerService(address, options).readMap(7, token, named, { seconds: 20 });
  const { map, waited, removed } = await reading;
  return {
    map,
    waited,
    removed,
    asked: asked.map(({ headers }) => headers),
    problems: retries.map(({ problem }) => problem),
  };
}

describe('changes alone', () => {
  test('are asked for by who has the map, and make of it the next one', async () => {
    const { map, asked } = await read(known, delta());
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ 'a-im': 'cpn-delta', 'if-none-match': '"12"', prefer: 'wait=20' });
    const after = networkBody({ peers: [peerBody(1), moved] });
    expect(map).toEqual(decodeMap(after, source, { network: 7, etag: '"13"' }));
  });

  test.each<[string, NetworkMap | string | null]>([
    ['knows nothing', null],
    ['knows a revision, and not what is in it', '"12"'],
    ['has a map without a revision', { ...known, revision: null }],
    ['added to its map', { ...known, peers: known.peers.map((peer) => ({ ...peer, unlisted: true as const })) }],
  ])('are not asked for by who %s', async (_, named) => {
    const { map, asked, problems } = await read(named, whole);
    expect([asked.length, asked[0]?.['a-im'], map?.revision, problems]).toEqual([1, undefined, '"14"', []]);
  });

  test('need not come: a service that tells whole maps, or that nothing changed, is understood as ever', async () => {
    expect((await read(known, whole)).map?.revision).toBe('"14"');
    const unchanged: Reply = (response) => response.writeHead(304, { 'preference-applied': 'wait=20' }).end();
    expect(await read(known, unchanged)).toMatchObject({ map: null, waited: true, problems: [] });
  });
});

describe('the ETag of a map', () => {
  const readAs = async (body: object, headers: Record<string, string>, described = features as readonly Feature[]) => {
    const { address } = await serve(json(200, { data: networkBody(body) }, headers));
    const service = connect(address, described);
    return (await service.readMap(7, token, known)).map?.revision;
  };

  test('is that of the body, whatever a proxy makes of the header, where the service describes it', async () => {
    for (const etag of ['W/"14-a"', '"14-a-gzip"', undefined])
      expect(await readAs({ etag: '"14-a"' }, etag === undefined ? {} : { etag })).toBe('"14-a"');
    const undescribed = features.filter((feature) => feature !== 'map-etag');
    expect(await readAs({ etag: '"14-a"' }, { etag: 'W/"14-a"' }, undescribed)).toBe('W/"14-a"');
    for (const etag of [14, 'no tag', null, ['"14"']]) expect(await readAs({ etag }, { etag: '"15"' })).toBe('"15"');
  });

  test('of a delta is that of its body too', async () => {
    expect((await read(known, delta({ etag: '"13-b"' }, { etag: 'W/"13-b"' }))).map?.revision).toBe('"13-b"');
  });

  test('is named in requests as it came, and a weak one is no base for changes', async () => {
    for (const revision of ['W/"12"', '"12-gzip"']) {
      const { asked } = await read({ ...known, revision }, whole);
      expect([asked[0]?.['if-none-match'], asked[0]?.['a-im']]).toEqual([
        revision,
        revision.startsWith('W/') ? undefined : 'cpn-delta',
      ]);
    }
  });

  test.each<[string, Reply, true | undefined]>([
    ['the same map under another ETag', json(200, { data: networkBody() }, { etag: '"12-gzip"' }), true],
    ['a map under the same ETag', json(200, { data: networkBody({ name: 'x' }) }, { etag: '"12"' }), true],
    ['another map', whole, undefined],
    ['a delta', delta(), undefined],
  ])('of %s shows whether the service compared it', async (_, reply, isRepeated) => {
    const { address } = await serve(reply);
    expect((await connectPeerService(address).readMap(7, token, known)).isRepeated).toBe(isRepeated);
  });
});

describe('a delta that a proxy sends as a 200', () => {
  const based = (base: unknown, changes: object = {}, status = 200, headers: object = { etag: '"13"' }) =>
    json(status, { data: deltaBody({ base, ...changes }) }, { ...headers });
  const after = decodeMap(networkBody({ peers: [peerBody(1), moved] }), source, { network: 7, etag: '"13"' });

  test('is applied to the map that its body names, with and without the headers of a delta', async () => {
    for (const reply of [
      based('"12"'),
      based('"12"', {}, 226),
      based('"12"', {}, 200, { ...applied, 'delta-base': '"9"' }),
      json(200, { data: deltaBody() }, applied),
    ]) {
      const { map, removed, asked, problems } = await read(known, reply);
      expect([map, removed, asked.length, problems]).toEqual([after, [3], 1, []]);
    }
  });

  test('may be a message, with the map that is here', async () => {
    const messages = [{ kind: 'probe', data: { peers: [2] } }];
    const { address } = await serve(based('"12"', { peers: [], removed: [], messages }));
    const service = connect(address, features, { instance: '0f1e2d3c4b5a6978' });
    expect(await service.readMap(7, token, known)).toMatchObject({ map: null, batch: { messages, receipt: null } });
  });

  test('may have messages too, so that changes one after the other delay none', async () => {
    const messages = [{ kind: 'return', data: { peer: 2 } }];
    const { address } = await serve(based('"12"', { messages, receipt: '7' }));
    const service = connect(address, features, { instance: '0f1e2d3c4b5a6978', takesPaths: true });
    const reading = await service.readMap(7, token, known);
    expect(reading).toMatchObject({ map: { revision: after.revision }, batch: { messages, receipt: '7' } });
  });

  test.each<[string, Reply, string]>([
    ['to another map', based('"11"'), 'has changes to a map other than the stored one'],
    ['to another map, by its header', json(200, { data: deltaBody() }, { 'delta-base': '"11"' }), 'not requested'],
    ['in another form', based('"12"', {}, 200, { im: 'vcdiff' }), 'not requested'],
    [
      'of an earlier version, without a removal',
      json(200, { data: deltaBody({ removed: [] }) }, { etag: '"13"' }),
      'leaves out peers that it does not list as removed',
    ],
    [
      'of an earlier version, with a removal',
      json(200, { data: deltaBody() }, { etag: '"13"' }),
      'leaves out peers that it does not list as removed',
    ],
  ])('%s is refused, and the whole map is read', async (_, refused, problem) => {
    const { map, asked, problems } = await read(known, refused, whole);
    expect(problems).toEqual([expect.stringContaining(problem)]);
    expect([asked.length, asked[1]?.['a-im'], asked[1]?.['if-none-match']]).toEqual([2, undefined, undefined]);
    expect(map?.peers.map(({ id }) => id)).toEqual([1, 9]);
  });

  test.each([null, '"12"'])('is never taken for a map by a request without A-IM: %#', async (named) => {
    for (const reply of [based('"12"'), json(200, { data: deltaBody() }, applied)]) {
      const { address } = await serve(reply);
      const failure = await failureOf(connectPeerService(address).readMap(7, token, named));
      expect(failure.message).toContain('has only changes, which were not requested');
    }
  });

  test('is not what a whole map is that lists all other peers, or a field "base" of another kind', async () => {
    const lists = (fields: object) => json(200, { data: networkBody({ revision: 14, ...fields }) }, { etag: '"14"' });
    for (const reply of [lists({ removed: [3], peers: [peerBody(1), moved] }), lists({ base: '10.0.0.0/8' })])
      expect((await read(known, reply)).asked).toHaveLength(1);
  });
});

describe('peers that the service states to be gone', () => {
  const lists = (removed: unknown) => json(200, { data: networkBody({ revision: 14, removed }) }, { etag: '"14"' });

  test('are those of changes, and those of a whole map that is read with a revision', async () => {
    expect((await read(known, delta())).removed).toEqual([3]);
    expect((await read(known, lists([8, 9]))).removed).toEqual([8, 9]);
    expect((await read('"12"', lists([8, 9]))).removed).toEqual([8, 9]);
    expect((await read(null, lists([8, 9]))).removed).toBeUndefined();
  });

  test.each<[string, unknown, number[]]>([
    ['that is not there', undefined, []],
    ['that is no list', false, []],
    ['of something else', [{ id: 8 }], []],
    ['with a peer that the map lists', [2, 8], [8]],
  ])('are not more than a list says %s', async (_, removed, stated) => {
    expect((await read('"12"', lists(removed))).removed).toEqual(stated);
  });

  test('are none of a whole map where the service does not describe such a list', async () => {
    const { address } = await serve(lists([8, 9]));
    const described = features.filter((feature) => feature !== 'map-removed');
    const { map, removed } = await connect(address, described).readMap(7, token, '"12"');
    expect([map?.revision, removed]).toEqual(['"14"', undefined]);
  });
});

describe('changes that cannot be used are refused whole, and the map is read instead', () => {
  test.each<[string, Reply, string]>([
    ['to another map', delta({}, { 'delta-base': '"11"' }), 'has changes to a map other than the stored one'],
    [
      'to a map that is not named',
      json(226, { data: deltaBody() }, { ...applied, 'delta-base': '' }),
      'a map other than',
    ],
    ['in another form', delta({}, { im: 'vcdiff' }), 'in a form that was not requested'],
    [
      'in no known form',
      json(226, { data: deltaBody() }, { 'delta-base': '"12"' }),
      'in a form that was not requested',
    ],
    ['of another network', delta({ id: 8 }), 'is not that of the requested network'],
    ['with an address that another peer has', delta({ peers: [peerBody(4, { address: '10.77.0.1' })] }), 'one address'],
    ['with a key that another peer has', delta({ peers: [peerBody(4, { public_key: keyOf(1) })] }), 'one public key'],
    ['outside the range', delta({ peers: [peerBody(4, { address: '10.78.0.4' })] }), 'cannot be used'],
    ['that move the range away', delta({ private_cidr: '10.80.0.0/16', peers: [] }), 'a peer outside its range'],
    ['with a peer twice', delta({ peers: [peerBody(4), peerBody(4)] }), 'has a peer that cannot be used'],
    ['that change and remove a peer', delta({ removed: [2] }), 'names a peer that the reply also lists'],
    ['that do not say what is removed', json(226, { data: without(deltaBody(), 'removed') }, applied), 'lacks'],
    ['with a wrong id removed', delta({ removed: ['..'] }), 'network.removed[0]'],
    ['with a broken peer', delta({ peers: [peerBody(2, { endpoint: 'nonsense' })] }), 'has a peer that cannot be used'],
  ])('%s', async (_, refused, problem) => {
    const { map, asked, problems } = await read(known, refused, whole);
    expect(problems).toEqual([expect.stringContaining(problem)]);
    expect(asked).toHaveLength(2);
    expect([asked[1]?.['a-im'], asked[1]?.['if-none-match']]).toEqual([undefined, undefined]);
    expect(map?.peers.map(({ id }) => id)).toEqual([1, 9]);
  });

  test('whose map cannot be used either is a failure', async () => {
    const { address, asked } = await serve(delta({ id: 8 }), json(200, { data: networkBody({ id: 8 }) }));
    const failure = await failureOf(connectPeerService(address).readMap(7, token, known));
    expect([failure.name, asked.length]).toEqual(['BadReply', 2]);
  });

  test.each([null, '"12"', known])('and are never taken for a map: %#', async (named) => {
    const { address } = await serve(delta({}, { 'delta-base': '"1"' }));
    const failure = await failureOf(connectPeerService(address).readMap(7, token, named));
    expect(failure.message).toContain('has only changes, which were not requested');
  });
});

describe('our own control plane', () => {
  let plane: Plane;
  beforeAll(async () => {
    plane = await openPlane();
  });
  afterAll(() => closePlane(plane));

  test('tells a host its changes, from its enrolment on', async () => {
    const owner = await plane.signIn('owner');
    const network = await makeNetwork(plane, owner, { routes: ['192.168.10.0/24'] });
    const key = await makeKey(plane, owner, network);
    const service = connectPeerService({ url: plane.url, insecureHttp: false });
    const joined = await service.enroll({
      token: new Secret(key),
      name: 'host-1',
      type: 'origin',
      publicKey: parsePublicKey(keyOf(1)),
      endpoint: null,
      idempotencyKey: 'attempt-1',
    });
    const own = joined.accessToken ?? expect.unreachable();
    const other = (await enroll(plane, key, { peer_type: 'connector' })).body.data.peer.id;
    await plane.call('PATCH', `/api/networks/${network}`, { token: owner, body: { routes: [] } });
    const first = (await service.readMap(network, own, joined.map)).map ?? expect.unreachable();
    await plane.call('DELETE', `/api/networks/${network}/peers/${other}`, { token: owner });
    const second = (await service.readMap(network, own, first)).map ?? expect.unreachable();
    expect(second).toEqual((await service.readMap(network, own, null)).map);
    expect([joined.map, first, second].map(({ peers }) => peers.length)).toEqual([1, 2, 1]);
    const statuses = [...plane.log().matchAll(/"route":"\/api\/networks\/:network","status":(2\d\d)/g)];
    expect(statuses.map(([, status]) => status)).toEqual(['200', '226', '226', '200']);
  });
});
