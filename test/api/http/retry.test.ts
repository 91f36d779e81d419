import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused, Unreachable } from '../../../src/core/errors/index.ts';
import { connectPeerService } from '../described-service.ts';
import { enrollmentBody, enrollmentRequest, failureOf, networkBody, unhurried } from '../samples.ts';
import { brokenOff, hungUp, json, listen, type Reply, serve } from '../server.ts';

const token = new Secret('token-sample');
const map = json(200, { data: networkBody() });
const enrolled = json(201, { data: enrollmentBody() });

/** The failures after which it is unknown whether the request was carried out. */
const doubtful: [string, Reply][] = [
  ['408', json(408, {})],
  ['500', json(500, { message: 'oops' })],
  ['502', json(502, {})],
  ['504', json(504, {})],
  ['a reply that breaks off', brokenOff],
  ['a connection closed without a reply', hungUp],
];
/** The failures after which it certainly was not. */
const undone: [string, Reply][] = [
  ['429', json(429, { message: 'slow down' })],
  ['503', json(503, {})],
];

/** Each operation that must not be sent twice. */
const onceOnly: [string, string, (service: ReturnType<typeof connectAdminService>) => Promise<unknown>, Reply][] = [
  [
    'login',
    '/api/auth/login',
    (it) => it.login('a@example.net', new Secret('pw'), 'laptop'),
    json(200, { access_token: 't' }),
  ],
  [
    'createNetwork',
    '/api/networks',
    (it) => it.createNetwork({ name: 'n', private_cidr: '10.77.0.0/16' }),
    json(201, networkBody()),
  ],
  [
    'createKey',
    '/api/networks/7/enrollment-keys',
    (it) => it.createKey(7, { name: 'k', max_uses: 1, expires_in_hours: 24 }),
    json(201, { enrollment_token: 'cpn_new' }),
  ],
  ['logout', '/api/auth/logout', (it) => it.logout(), json(200, {})],
];

describe('reading a map', () => {
  test.each([...doubtful, ...undone])('goes on after %s', async (_, failure) => {
    const { address, asked } = await serve(failure, failure, map);
    const { options, sleeps, retries } = unhurried();
    expect((await connectPeerService(address, options).readMap(7, token, null)).map?.name).toBe('office');
    expect(asked).toHaveLength(3);
    // Half of 500 and of 1000 ms: full jitter under a doubling ceiling.
    expect(sleeps).toEqual([250, 500]);
    expect(retries.map(({ attempt, delayMs }) => [attempt, delayMs])).toEqual([
      [1, 250],
      [2, 500],
    ]);
    expect(retries[0]?.problem).toMatch(/answered|connection/);
  });

  test('says why a service is busy, in its own words where they are few', async () => {
    const reason = { message: 'the disk of the database is \u001b[31mfull; try again in 1 s' };
    const long = { message: 'x'.repeat(5_000) };
    for (const [reply, said] of [
      [
        json(503, reason),
        /control plane at \S+ is busy: the disk of the database is .*full \(1 attempt.*\); try again later$/,
      ],
      [
        json(503, long),
        /is unreachable: it answered 503 \(Service Unavailable\) \(1 attempt.*; its log says why; try again later$/,
      ],
    ] as const) {
      const { address } = await serve(reply);
      const { options } = unhurried({ attempts: 1 });
      const failure = await failureOf(connectPeerService(address, options).readMap(7, token, null));
      expect(failure.message).toMatch(said);
      expect(failure.message).not.toContain('\u001b');
    }
  });

  test.each([
    [{ message: 'too many failed logins; try again in 7 s' }, 'it answered 429: too many failed logins'],
    [{ message: 'Slow down.' }, 'it answered 429: Slow down'],
    [{}, 'it answered 429 (Too Many Requests)'],
  ])('reports for a 429 with %j that the service limits requests, and when to retry', async (body, said) => {
    for (const [headers, later] of [
      [{ 'retry-after': '7' }, 'in 7 s'],
      [{}, 'later'],
    ] as const) {
      const { address, url } = await serve(json(429, body, headers));
      const { options, retries } = unhurried({ attempts: 1 });
      const failure = await failureOf(connectPeerService(address, options).readMap(7, token, null));
      expect(failure).toBeInstanceOf(Unreachable);
      expect(failure.message).toBe(
        `the control plane at ${url} limits requests: ${said} (1 attempt in 0.0 s); try again ${later}`,
      );
      expect(retries).toEqual([]);
    }
  });

  test('ends after the last attempt, and says how many there were, over how long, and the last problem', async () => {
    const { address, asked, url } = await serve(json(500, {}), json(500, {}), json(503, {}));
    const { options } = unhurried({ attempts: 3 });
    const failure = await failureOf(connectPeerService(address, options).readMap(7, token, null));
    expect(failure).toBeInstanceOf(Unreachable);
    expect(failure.message).toBe(
      `the control plane at ${url} is unreachable: it answered 503 (Service Unavailable) (3 attempts in 0.8 s); its log says why; try again later`,
    );
    expect((failure as Unreachable).delivered).toBe(true);
    expect(asked).toHaveLength(3);
  });

  test.each([400, 401, 403, 404, 405, 409, 413, 422])('sends one request after %i', async (status) => {
    const { address, asked } = await serve(json(status, { message: 'no' }), map);
    const { options, sleeps } = unhurried();
    const failure = await failureOf(connectPeerService(address, options).readMap(7, token, null));
    expect(failure).toBeInstanceOf(Refused);
    expect((failure as Refused).status).toBe(status);
    expect(asked).toHaveLength(1);
    expect(sleeps).toEqual([]);
  });

  test('goes on after a refused connection, and knows that nothing was delivered', async () => {
    const { options, sleeps } = unhurried({ attempts: 3 });
    const failure = await failureOf(connectPeerService(await unusedAddress(), options).readMap(7, token, null));
    expect(failure).toBeInstanceOf(Unreachable);
    expect(failure.message).toMatch(/ECONNREFUSED.*; check its address and port, and that it runs$/);
    expect(failure.message).toContain('3 attempts');
    expect((failure as Unreachable).delivered).toBe(false);
    expect(sleeps).toHaveLength(2);
  });

  test('goes on after a name that does not resolve', async () => {
    const { options, sleeps } = unhurried({ attempts: 2 });
    const address = { url: 'https://unknown.invalid', insecureHttp: false };
    const failure = await failureOf(connectPeerService(address, options).readMap(7, token, null));
    expect(failure).toBeInstanceOf(Unreachable);
    expect(failure.message).toMatch(/(ENOTFOUND|EAI_AGAIN).*; .*"cpn doctor"/);
    expect((failure as Unreachable).delivered).toBe(false);
    expect(sleeps).toHaveLength(1);
  });

  test('does not go on with something that speaks no HTTP', async () => {
    const { url } = await listen(createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n')));
    const { options, sleeps } = unhurried();
    const failure = await failureOf(connectPeerService({ url, insecureHttp: false }, options).readMap(7, token, null));
    expect(failure.message).toContain('the reply is not HTTP');
    expect(sleeps).toEqual([]);
  });
});

describe('an enrolment', () => {
  test.each([...doubtful, ...undone])('goes on after %s with the same key and body', async (_, failure) => {
    const { address, asked } = await serve(failure, failure, failure, enrolled);
    const { options } = unhurried();
    const { peer } = await connectPeerService(address, options).enroll(
      enrollmentRequest({ idempotencyKey: 'same-again' }),
    );
    expect(peer).toEqual({ id: 1, name: 'host-1', address: '10.77.0.1' });
    expect(asked.map(({ headers }) => headers['idempotency-key'])).toEqual(Array(4).fill('same-again'));
    expect(new Set(asked.map(({ body }) => body)).size).toBe(1);
  });

  test.each([401, 403, 404, 413, 422])('is not repeated after %i', async (status) => {
    const { address, asked } = await serve(json(status, { message: 'no' }), enrolled);
    const failure = await failureOf(connectPeerService(address, unhurried().options).enroll(enrollmentRequest()));
    expect(failure).toMatchObject({ name: 'Refused', status });
    expect(asked).toHaveLength(1);
  });

  test('that is refused after a lost reply says that it was repeated', async () => {
    const { address } = await serve(brokenOff, json(403, { message: 'the key is used up' }));
    const failure = await failureOf(connectPeerService(address, unhurried().options).enroll(enrollmentRequest()));
    expect(failure.message).toContain('the first reply was lost');
    expect(failure.message).toContain('used up');
  });
});

describe.each(onceOnly)('%s', (name, path, ask, done) => {
  // The head of a reply to a logout says everything.
  test.each(doubtful.filter(([, reply]) => name !== 'logout' || reply !== brokenOff))(
    'is not repeated after %s, and says so',
    async (_, failure) => {
      const { address, asked } = await serve(failure, done);
      const { options, sleeps } = unhurried();
      const error = await failureOf(ask(connectAdminService(address, token, options)));
      expect(error).toBeInstanceOf(Unreachable);
      expect(error.message).toContain('it may have succeeded');
      expect(asked.map((one) => [one.method, one.path])).toEqual([['POST', path]]);
      expect(sleeps).toEqual([]);
    },
  );

  test.each(undone)('is repeated after %s', async (_, failure) => {
    const { address, asked } = await serve(failure, done);
    await ask(connectAdminService(address, token, unhurried().options));
    expect(asked).toHaveLength(2);
    expect(asked[0]?.headers['idempotency-key']).toBeUndefined();
  });

  test('is repeated after a refused connection', async () => {
    const { options, sleeps } = unhurried({ attempts: 3 });
    const error = await failureOf(ask(connectAdminService(await unusedAddress(), token, options)));
    expect(error).toMatchObject({ name: 'Unreachable', delivered: false });
    expect(error.message).not.toContain('it may have succeeded');
    expect(sleeps).toHaveLength(2);
  });
});

describe('a removal', () => {
  test('goes on after a lost reply, and is done when there is nothing left', async () => {
    const { address, asked } = await serve(hungUp, json(404, { message: 'no such peer' }));
    await connectAdminService(address, token, unhurried().options).removePeer(7, 3);
    expect(asked).toHaveLength(2);
  });

  test('of an administrator that finds nothing at first is refused, for the id may be a slip', async () => {
    const { address } = await serve(json(503, {}), json(404, { message: 'no such peer' }));
    const service = connectAdminService(address, token, unhurried().options);
    expect(await failureOf(service.removePeer(7, 3))).toMatchObject({ name: 'Refused', status: 404 });
  });

  test('of the host itself is done when there is nothing to remove', async () => {
    const { address, asked } = await serve(json(404, { message: 'no such peer' }));
    await connectPeerService(address, unhurried().options).removePeer(7, 'a/b', token);
    expect(asked.map(({ method, path }) => [method, path])).toEqual([['DELETE', '/api/networks/7/peers/a%2Fb']]);
  });
});

describe('Retry-After', () => {
  const waits = async (reply: Reply, options: object = {}) => {
    const { address, asked } = await serve(reply, map);
    const { sleeps, ...unhurriedly } = unhurried({ random: () => 0, deadlineMs: 3_600_000, ...options });
    await connectPeerService(address, unhurriedly.options).readMap(7, token, null);
    expect(asked).toHaveLength(2);
    return sleeps;
  };

  test.each([429, 503, 500])('is honoured on %i', async (status) => {
    expect(await waits(json(status, {}, { 'retry-after': '7' }))).toEqual([7_000]);
  });

  test('is added to the jitter, so that a rack does not come back as one', async () => {
    expect(await waits(json(429, {}, { 'retry-after': '7' }), { random: () => 0.5 })).toEqual([7_250]);
  });

  test('as a date counts from the clock of the server, whatever ours says', async () => {
    const date = 'Wed, 01 Jan 2020 00:00:00 GMT';
    const reply = json(503, {}, { date, 'retry-after': 'Wed, 01 Jan 2020 00:00:11 GMT' });
    expect(await waits(reply)).toEqual([11_000]);
  });

  test.each(['86400', 'Fri, 31 Dec 2099 23:59:59 GMT'])('of %s is clamped to five minutes', async (value) => {
    expect(await waits(json(429, {}, { 'retry-after': value }))).toEqual([300_000]);
  });

  test.each(['-1', 'later', 'Wed, 01 Jan 2020 00:00:00 GMT'])('of %j is no wait', async (value) => {
    expect(await waits(json(429, {}, { 'retry-after': value }))).toEqual([0]);
  });

  test('beyond the deadline ends the call at once', async () => {
    const { address, asked } = await serve(json(429, {}, { 'retry-after': '40' }), map);
    const { options, sleeps } = unhurried({ deadlineMs: 30_000 });
    const failure = await failureOf(connectPeerService(address, options).readMap(7, token, null));
    expect(failure).toBeInstanceOf(Unreachable);
    expect(failure.message).toContain('429');
    expect(failure.message).toContain('no time is left');
    expect(asked).toHaveLength(1);
    expect(sleeps).toEqual([]);
  });
});

/** An address on which no process listens any more. */
async function unusedAddress() {
  const server = createServer();
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
  });
  await new Promise((resolve) => server.close(resolve));
  return { url: `http://127.0.0.1:${port}`, insecureHttp: false };
}
