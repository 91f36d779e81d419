import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { describe, expect, test } from 'vitest';
import type { ClientOptions } from '../../src/api/http/client-options.ts';
import { connectPeerService as connectDescribed } from '../../src/api/peer-service.ts';
import type { EnrollmentRequest } from '../../src/api/service.ts';
import type { Report } from '../../src/contract/health.ts';
import type { PathSignals } from '../../src/contract/paths.ts';
import { makeIdentity } from '../../src/core/crypto/identity.ts';
import type { PublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../src/core/errors/index.ts';
import { parseAddress, parsePrefix } from '../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../src/core/net/endpoint.ts';
import { connectPeerService } from './described-service.ts';
import { enrollmentBody, enrollmentRequest, failureOf, keyOf, networkBody, peerBody, unhurried } from './samples.ts';
import { type Asked, brokenOff, empty, json, type Reply, serve } from './server.ts';

const token = new Secret('token-sample');

describe('enroll', () => {
  test('sends what the contract requires, and no bearer', async () => {
    const { address, asked } = await serve(json(201, { data: enrollmentBody() }));
    const endpoint = parseEndpoint('[2001:db8::1]:51820');
    await connectPeerService(address).enroll(enrollmentRequest({ endpoint, type: 'connector' }));
    expect(asked).toHaveLength(1);
    const { method, path, headers, body } = asked[0] ?? expect.unreachable();
    expect([method, path]).toEqual(['POST', '/api/networks/enroll']);
    expect(headers).toMatchObject({ accept: 'application/json', 'content-type': 'application/json' });
    expect(headers['idempotency-key']).toBe('idempotency-sample');
    expect(headers.authorization).toBeUndefined();
    expect(JSON.parse(body)).toEqual({
      enrollment_token: 'cpn_sample',
      name: 'host-1',
      peer_type: 'connector',
      public_key: keyOf(1),
      endpoint: '[2001:db8::1]:51820',
    });
  });

  test('names the networks that the host is in, where the service describes that', async () => {
    const { address, asked } = await serve(json(201, { data: enrollmentBody() }));
    const request = enrollmentRequest({ currentNetworks: [3, 'net,7'] });
    await connectPeerService(address).enroll(request);
    await connectDescribed(address, []).enroll(request);
    await connectPeerService(address).enroll(enrollmentRequest({ currentNetworks: [] }));
    expect(asked.map(({ headers }) => headers['current-networks'])).toEqual(['3, net%2C7', undefined, undefined]);
  });

  test('sends digests of the keys that the host has elsewhere, where the service describes that, and no key', async () => {
    const { address, asked } = await serve(json(201, { data: enrollmentBody() }));
    const request = enrollmentRequest({
      currentPeers: [{ publicKey: keyOf(5) as PublicKey, address: parseAddress('10.77.0.5') }],
    });
    await connectPeerService(address).enroll(request);
    await connectDescribed(address, []).enroll(request);
    const digest = createHash('sha256')
      .update(`${keyOf(5)} 10.77.0.5`)
      .digest('base64url');
    expect(asked.map(({ headers }) => headers['current-peers'])).toEqual([digest, undefined]);
    expect(JSON.stringify(asked)).not.toContain(keyOf(5));
  });

  test('leaves out an endpoint that there is not', async () => {
    const { address, asked } = await serve(json(201, { data: enrollmentBody() }));
    await connectPeerService(address).enroll(enrollmentRequest());
    expect(Object.keys(JSON.parse(asked[0]?.body ?? ''))).not.toContain('endpoint');
  });

  test.each([
    ['name', { name: '' }, 'must not be empty'],
    ['name', { name: ' \t' }, 'must not be empty'],
    ['name', { name: 'a'.repeat(121) }, 'must be at most 120 characters'],
    ['enrollment_token', { token: new Secret('xyz_canary') }, 'must begin with "cpn_"'],
    ['enrollment_token', { token: new Secret('') }, 'must begin with "cpn_"'],
    ['enrollment_token', { token: new Secret('cpn_ canary') }, 'must begin with "cpn_"'],
    ['enrollment_token', { token: new Secret(`cpn_${'canary'.repeat(30)}`) }, 'must be at most 128 characters'],
    ['public_key', { publicKey: 'no key' as EnrollmentRequest['publicKey'] }, 'must be a WireGuard public key'],
    ['peer_type', { type: 'router' as EnrollmentRequest['type'] }, 'must be connector or admin_device or origin'],
    ['endpoint', { endpoint: { host: 'a'.repeat(250), port: 51820 } }, 'must be at most 255 characters'],
  ] as [string, Partial<EnrollmentRequest>, string][])(
    'refuses a bad %s before anything is sent: %j',
    async (field, changes, rule) => {
      const { address, asked } = await serve(json(201, { data: enrollmentBody() }));
      const failure = await failureOf(connectPeerService(address).enroll(enrollmentRequest(changes)));
      expect(failure).toBeInstanceOf(InvalidValue);
      expect((failure as InvalidValue).field).toBe(field);
      expect((failure as InvalidValue).rule).toContain(rule);
      expect(failure.message).not.toContain('canary');
      expect(asked).toHaveLength(0);
    },
  );

  test('shows the value that is wrong, of a key only its beginning', async () => {
    const service = connectPeerService({ url: 'http://127.0.0.1:1', insecureHttp: false });
    const long = await failureOf(service.enroll(enrollmentRequest({ type: 'router' as never })));
    expect(long.message).toBe('peer_type "router" must be connector or admin_device or origin');
    const key = await failureOf(service.enroll(enrollmentRequest({ token: new Secret('xyz_canary') })));
    expect(key.message).toBe('enrollment_token "xyz_..." must begin with "cpn_"');
  });

  test.each([
    ['120 characters beyond the basic plane', { name: '\u{1f600}'.repeat(120) }],
    ['a key of 128 characters', { token: new Secret(`cpn_${'a'.repeat(124)}`) }],
  ])('takes %s', async (_, changes) => {
    const { address, asked } = await serve(json(201, { data: enrollmentBody() }));
    await connectPeerService(address).enroll(enrollmentRequest(changes));
    expect(asked).toHaveLength(1);
  });
});

describe('readMap', () => {
  test('sends the bearer, and at first no revision', async () => {
    const { address, asked } = await serve(json(200, { data: networkBody() }, { etag: '"12"' }));
    const { map } = await connectPeerService(address).readMap(7, token, null);
    expect(map?.revision).toBe('"12"');
    const { method, path, headers, body } = asked[0] ?? expect.unreachable();
    expect([method, path, body]).toEqual(['GET', '/api/networks/7', '']);
    expect(headers.authorization).toBe('Bearer token-sample');
    expect(headers['if-none-match']).toBeUndefined();
    expect(headers['content-type']).toBeUndefined();
  });

  test('is null while the revision is the one known', async () => {
    const { address, asked } = await serve((response) => response.writeHead(304, { etag: '"12"' }).end());
    expect(await connectPeerService(address).readMap(7, token, '"12"')).toEqual({
      map: null,
      waited: false,
      from: '127.0.0.1',
      listener: process.geteuid?.(),
      servedAt: expect.any(Number),
    });
    expect(asked[0]?.headers['if-none-match']).toBe('"12"');
  });

  test('has no revision from a service that gives none', async () => {
    const { address } = await serve(json(200, { data: networkBody() }));
    expect((await connectPeerService(address).readMap(7, token, '"12"')).map?.revision).toBeNull();
  });

  test('of another network than the one asked for is refused', async () => {
    const { address } = await serve(json(200, { data: networkBody() }));
    const failure = await failureOf(connectPeerService(address).readMap(8, token, null));
    expect(failure).toMatchObject({ name: 'BadReply' });
  });

  test.each(['', 'to ken', 'token\r\nx-evil: 1', 'tokén'])(
    'with the token %j is refused before anything is sent',
    async (value) => {
      const { address, asked } = await serve(json(200, { data: networkBody() }));
      const failure = await failureOf(connectPeerService(address).readMap(7, new Secret(value), null));
      expect(failure).toBeInstanceOf(InvalidValue);
      if (value !== '') expect(failure.message).not.toContain(value);
      expect(asked).toHaveLength(0);
    },
  );
});

describe('removePeer', () => {
  test.each([200, 202, 204, 404])('is not confirmed by %i alone, and is asked once', async (status) => {
    const { address, asked } = await serve((response) =>
      response.writeHead(status).end(status === 204 ? '' : '<not json>'),
    );
    expect(await connectPeerService(address).removePeer(7, 3, token)).toBe(false);
    expect(asked.map((one) => [one.method, one.path])).toEqual([['DELETE', '/api/networks/7/peers/3']]);
    expect(asked[0]?.headers.authorization).toBe('Bearer token-sample');
  });

  test('is not done after 403', async () => {
    const { address } = await serve(json(403, { message: 'no' }));
    expect(await failureOf(connectPeerService(address).removePeer(7, 3, token))).toMatchObject({
      name: 'Refused',
      status: 403,
    });
  });
});

describe('report', () => {
  const map = [{ route: '10.201.1.0/24', local: '192.168.1.0/24' }];
  const refused: Report['refused'] = [{ from: '10.77.0.2', to: '10.77.0.1', protocol: 'tcp', port: 22 }];
  const report: Report = { paths: [{ peer: 4, path: 'down' }], drift: 2, map, refused };
  const verdict = { state: 'online', reachable_by: 3, witnesses: 4, why: 'it reaches the control plane' };

  test('sends what the host observes, and returns how others reach it', async () => {
    const { address, asked } = await serve(json(200, { data: verdict }));
    const reply = await connectPeerService(address).report(7, 3, token, report);
    expect(reply).toEqual({ reachableBy: 3, witnesses: 4 });
    const [{ method, path, headers, body }] = asked as [Asked];
    expect([method, path, headers.authorization]).toEqual([
      ...['POST', '/api/networks/7/peers/3/report', 'Bearer token-sample'],
    ]);
    expect(headers['user-agent']).toMatch(/^cpn\/\S+ \(\w+ \w+\)$/);
    expect(JSON.parse(body)).toEqual({ ...report, follows_relay: true });
  });

  test('sends nothing to a service that does not describe the operation', async () => {
    const { address, asked } = await serve(json(200, { data: verdict }));
    expect(await connectDescribed(address, []).report(7, 3, token, report)).toBeNull();
    expect(asked).toEqual([]);
  });

  test.each([{}, { reachable_by: -1, witnesses: 2 }, { reachable_by: '3', witnesses: 4 }])(
    'fails with a reply that is %j',
    async (data) => {
      const { address } = await serve(json(200, { data }));
      expect(await failureOf(connectPeerService(address).report(7, 3, token, report))).toMatchObject({
        name: 'BadReply',
      });
    },
  );

  test('ends with its signal', async () => {
    const ending = new AbortController();
    const { address, asked } = await serve(() => ending.abort(new Error('the daemon stops')));
    const sending = connectPeerService(address).report(7, 3, token, report, ending.signal);
    expect(await failureOf(sending)).toMatchObject({ message: 'the daemon stops' });
    expect(asked).toHaveLength(1);
  });
});

describe('sendPathSignals', () => {
  const signals: PathSignals = { wanted: [4], candidates: ['192.168.1.7:51820'] };

  test('sends what the host states', async () => {
    const { address, asked } = await serve(empty);
    expect(await connectPeerService(address).sendPathSignals(7, token, signals)).toBe(true);
    const [{ method, path, headers, body }] = asked as [Asked];
    expect([method, path, headers.authorization]).toEqual([
      ...['POST', '/api/networks/7/peers/self/paths', 'Bearer token-sample'],
    ]);
    expect(JSON.parse(body)).toEqual(signals);
  });

  test('sends nothing to a service that does not describe the operation', async () => {
    const { address, asked } = await serve(empty);
    expect(await connectDescribed(address, []).sendPathSignals(7, token, signals)).toBe(false);
    expect(asked).toEqual([]);
  });

  test('ends with its signal', async () => {
    const ending = new AbortController();
    const { address, asked } = await serve(() => ending.abort(new Error('the daemon stops')));
    const sending = connectPeerService(address).sendPathSignals(7, token, signals, ending.signal);
    expect(await failureOf(sending)).toMatchObject({ message: 'the daemon stops' });
    expect(asked).toHaveLength(1);
  });
});

describe('withdraw', () => {
  const prefixes = ['10.77.0.0/16', '192.168.10.0/24'].map((text) => parsePrefix(text));
  const accepted = (withdrawn: readonly string[]) => json(200, { data: peerBody(3, { routes: [], withdrawn }) });

  test('sends what is to be out of service, and nothing else', async () => {
    const { address, asked } = await serve(accepted(prefixes));
    await connectPeerService(address).withdraw(7, 3, token, prefixes);
    const [{ method, path, headers, body }] = asked as [Asked];
    expect([method, path, headers.authorization]).toEqual(['PATCH', '/api/networks/7/peers/3', 'Bearer token-sample']);
    expect(JSON.parse(body)).toEqual({ withdrawn: prefixes });
  });

  test('of nothing puts all routes back, and needs no confirmation', async () => {
    const { address, asked } = await serve(json(200, { data: peerBody(3) }));
    await connectPeerService(address).withdraw(7, 3, token, []);
    expect(JSON.parse(asked[0]?.body ?? '')).toEqual({ withdrawn: [] });
  });

  test('is sent again after a reply that was lost', async () => {
    const { address, asked } = await serve(brokenOff, json(503, {}), accepted(prefixes));
    await connectPeerService(address, unhurried().options).withdraw(7, 3, token, prefixes);
    expect(asked.map(({ body }) => body)).toEqual(Array.from({ length: 3 }, () => asked[0]?.body));
  });

  test.each([403, 404, 405, 422])('says after %i that this service may not know how', async (status) => {
    const { address } = await serve(json(status, { message: 'No.' }));
    const failure = await failureOf(connectPeerService(address).withdraw(7, 3, token, prefixes));
    expect(failure).toMatchObject({ name: 'Refused', status });
    expect(failure.message).toContain('this service cannot withdraw routes');
  });

  test('is not done by a service that ignores it', async () => {
    const { address } = await serve(json(200, { data: peerBody(3) }));
    const failure = await failureOf(connectPeerService(address).withdraw(7, 3, token, prefixes));
    expect(failure).toMatchObject({ name: 'CannotWithdraw' });
    expect(failure.message).toContain('cannot be withdrawn through the control plane');
  });
});

describe('announceMasquerading', () => {
  test.each([true, false])('sends %s, and nothing else', async (masquerades) => {
    const { address, asked } = await serve(json(200, { data: peerBody(3) }));
    await connectPeerService(address).announceMasquerading(7, 3, token, masquerades);
    const [{ method, path, body }] = asked as [Asked];
    expect([method, path, JSON.parse(body)]).toEqual(['PATCH', '/api/networks/7/peers/3', { masquerades }]);
  });
});

describe('announceSecret', () => {
  const tag = '00112233445566ff';

  test.each([tag, null])('sends the tag %s, and nothing else', async (sent) => {
    const { address, asked } = await serve(json(200, { data: peerBody(3) }));
    expect(await connectPeerService(address).announceSecret(7, 3, token, sent)).toBe(true);
    const [{ method, path, headers, body }] = asked as [Asked];
    expect([method, path, headers.authorization]).toEqual(['PATCH', '/api/networks/7/peers/3', 'Bearer token-sample']);
    expect(JSON.parse(body)).toEqual({ network_secret_tag: sent });
  });

  test.each([403, 404, 405, 422])('takes %i for a service that knows no such thing', async (status) => {
    const { address } = await serve(json(status, { message: 'No.' }));
    expect(await connectPeerService(address).announceSecret(7, 3, token, tag)).toBe(false);
  });

  test('fails where the token is refused, and sends nothing that is no tag', async () => {
    const { address, asked } = await serve(json(401, {}));
    const service = connectPeerService(address);
    expect(await failureOf(service.announceSecret(7, 3, token, tag))).toMatchObject({ name: 'Refused', status: 401 });
    expect(await failureOf(service.announceSecret(7, 3, token, 'no tag'))).toBeInstanceOf(InvalidValue);
    expect(asked).toHaveLength(1);
  });

  test('goes along with an enrolment, as does the identity', async () => {
    const { address, asked } = await serve(json(201, { data: enrollmentBody() }));
    const identity = makeIdentity(new Uint8Array(32).fill(7));
    const keyProof = { serial: 9, signature: 'S'.repeat(86) };
    const proven = { identity: identity.key, identityProof: 'P'.repeat(86), keyProof };
    await connectPeerService(address).enroll(enrollmentRequest({ secretTag: tag, ...proven }));
    expect(asked[0]?.headers).toMatchObject({
      'network-secret-tag': tag,
      'peer-identity-key': identity.key,
      'peer-identity-proof': proven.identityProof,
      'peer-key-proof': `9 ${keyProof.signature}`,
    });
  });
});

describe('describePeer', () => {
  const endpoint = parseEndpoint('203.0.113.9:51820');
  const listed = { name: 'edge', endpoint: '203.0.113.9:51820' };

  test.each([
    [{ endpoint }, { endpoint: '203.0.113.9:51820' }, listed],
    [{ endpoint: null }, { endpoint: null }, { ...listed, endpoint: null }],
    [{ name: 'edge' }, { name: 'edge' }, listed],
  ])('sends %o, and nothing else', async (description, sent, answer) => {
    const { address, asked } = await serve(json(200, { data: peerBody(3, answer) }));
    await connectPeerService(address).describePeer(7, 3, token, description);
    const [{ method, path, headers, body }] = asked as [Asked];
    expect([method, path, headers.authorization]).toEqual(['PATCH', '/api/networks/7/peers/3', 'Bearer token-sample']);
    expect(JSON.parse(body)).toEqual(sent);
  });

  test('fails where the service ignores what it does not know, or says no', async () => {
    const { address } = await serve(json(200, { data: peerBody(3) }), json(422, {}));
    const service = connectPeerService(address);
    const ask = () => failureOf(service.describePeer(7, 3, token, { endpoint, name: 'edge of the world' }));
    expect(await ask()).toMatchObject({ name: 'CannotReport', message: expect.stringContaining('name and endpoint') });
    expect(await ask()).toMatchObject({ name: 'Refused', status: 422 });
  });
});

test('two calls at once do not disturb each other', async () => {
  const { address } = await serve((response, { path }) => {
    const id = Number(path.split('/').at(-1));
    setTimeout(() => json(200, { data: networkBody({ id }) })(response, {} as never), id === 1 ? 30 : 0);
  });
  const service = connectPeerService(address);
  const maps = await Promise.all([1, 2, 3].map((id) => service.readMap(id, token, null)));
  expect(maps.map(({ map }) => map?.id)).toEqual([1, 2, 3]);
});

// Well before the server, or undici, would end an idle connection by itself.
test('no connection outlives its call', { timeout: 2_000 }, async () => {
  let closed = () => {};
  const gone = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const { address } = await serve((response) => {
    response.socket?.on('close', closed);
    json(200, { data: networkBody() })(response, {} as never);
  });
  expect((await connectPeerService(address).readMap(7, token, null)).map?.id).toBe(7);
  await gone;
});

describe('a connection', () => {
  const leaving = { connection: 'leave' } as const;
  const keeping = { connection: 'keep' } as const;
  const unchanged: Reply = (response) => response.writeHead(304).end();
  const wait = { seconds: 1, signal: new AbortController().signal };

  async function count(...calls: ClientOptions[]) {
    const sockets = new Set<unknown>();
    const { address } = await serve((response, asked) => {
      sockets.add(response.socket);
      unchanged(response, asked);
    });
    for (const options of calls) await connectPeerService(address, options).readMap(7, token, '"1"', wait);
    return sockets.size;
  }

  test('that one call leaves is used by those that keep it', async () => {
    expect(await count(leaving, keeping, keeping)).toBe(1);
    expect(await count(keeping, keeping)).toBe(1);
  });

  test('is a new one for each other call', async () => {
    expect(await count({}, {})).toBe(2);
    expect(await count(leaving, {})).toBe(2);
    expect(await count(leaving, leaving)).toBe(2);
    expect(await count(keeping, {}, leaving)).toBe(3);
  });

  test('that was left is not used once it is closed', async () => {
    const { address, asked } = await serve((response) => response.writeHead(304, { connection: 'close' }).end());
    for (const options of [leaving, keeping]) {
      expect((await connectPeerService(address, options).readMap(7, token, '"1"', wait)).map).toBeNull();
    }
    expect(asked).toHaveLength(2);
  });
});

test('a host loads no schemas before it must judge a request', async () => {
  const input = join(import.meta.dirname, '../../src/api/peer-service.ts');
  const bundle = await rolldown({ input, platform: 'node', external: (id) => /^[a-z]/.test(id) });
  const { output } = await bundle.generate();
  const chunks = new Map(output.flatMap((each) => (each.type === 'chunk' ? [[each.fileName, each]] : [])));
  const loaded = new Set(['peer-service.js']);
  for (const name of loaded) for (const each of chunks.get(name)?.imports ?? []) loaded.add(each);
  expect(loaded).toContain('undici');
  expect(loaded).not.toContain('zod');
});
