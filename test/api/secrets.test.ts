import { createServer } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../src/api/admin-service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { CpnError } from '../../src/core/errors/index.ts';
import { connectPeerService } from './described-service.ts';
import { enrollmentBody, enrollmentRequest, failureOf, networkBody, peerBody, unhurried } from './samples.ts';
import { type Asked, brokenOff, bytes, hungUp, json, listen, type Reply, serve, silent } from './server.ts';

const canary = 'c4n4ry/+\'"<&>';
const key = `cpn_${canary}`;

/** Everything an error could be printed as, by a logger, a debugger or a crash. */
function everythingOf(error: Error): string {
  expect(error).toBeInstanceOf(CpnError);
  const { message, stack, cause } = error;
  const facts = (error as CpnError).facts;
  return [
    message,
    stack,
    JSON.stringify(facts),
    JSON.stringify(error),
    String(cause),
    inspect(error, { depth: 20, showHidden: true, getters: true, maxStringLength: null, maxArrayLength: null }),
  ].join('\n');
}

/** What a careless or hostile server does with the secrets that it was sent: it says them again, wherever it can. */
const echoes: [string, (secret: string) => Reply][] = [
  ...[401, 403, 404, 413, 422, 418].map((status): [string, (secret: string) => Reply] => [
    `the message and errors of a ${status}`,
    (secret) =>
      json(status, { message: `bad ${secret}`, errors: { [secret]: [secret], field: [`a ${secret} b`, secret] } }),
  ]),
  ['the message cut in the middle', (secret) => json(422, { message: `${'a'.repeat(190)}${secret}` })],
  [
    'the rule cut in the middle',
    (secret) => json(422, { errors: { ['f'.repeat(33) + secret]: ['a'.repeat(110) + secret] } }),
  ],
  ['a 500', (secret) => json(500, { message: secret }, { 'x-secret': encodeURIComponent(secret) })],
  ['a redirect', (secret) => redirectTo(`/${secret.replaceAll('"', '%22')}?${encodeURIComponent(secret)}`)],
  [
    'an encoded redirect',
    (secret) => redirectTo(`https://h/${encodeURIComponent(secret)}#${encodeURIComponent(secret)}`),
  ],
  ['a redirect with credentials', (secret) => redirectTo(`https://u:${encodeURIComponent(secret)}@h/`)],
  ['a content type', (secret) => bytes(200, '{}', { 'content-type': `text/${secret}` })],
  ['a content encoding', (secret) => bytes(200, '{}', { 'content-encoding': secret })],
  ['HTML', (secret) => bytes(200, `<p>${secret}`, { 'content-type': 'text/html' })],
  ['broken JSON', (secret) => bytes(200, secret)],
  ['cut JSON', (secret) => bytes(200, `{"access_token": ${JSON.stringify(secret)}, `)],
  ['a string', (secret) => json(200, secret)],
  ['values', (secret) => json(200, { data: networkBody({ name: 7, description: secret }) })],
  ['wrong values', (secret) => json(200, { data: networkBody({ private_cidr: secret, routes: [secret] }) })],
  ['names', (secret) => json(200, { data: { [secret]: 1, [`${'a'.repeat(20)}${secret}`]: 1 } })],
];

function redirectTo(location: string): Reply {
  return (response) => response.writeHead(302, { location }).end();
}

describe.each(echoes)('a secret that comes back in %s is not in the error', (_, echo) => {
  const { options } = unhurried({ attempts: 2 });

  const askedFor = async (secret: string, question: (url: string) => Promise<unknown>) => {
    const { address, asked } = await serve(echo(secret));
    const error = await failureOf(question(address.url));
    expect(sent(asked), 'the server did get it').toContain(secret);
    expect(everythingOf(error)).not.toMatch(/c4n|4n4|n4r|c4n4ry/);
  };

  test('an error hides the enrolment key that was sent', async () => {
    // A key is visible ASCII without a quote's trouble in JSON; the contract takes it.
    await askedFor(key, (url) =>
      connectPeerService({ url, insecureHttp: false }, options).enroll(enrollmentRequest({ token: new Secret(key) })),
    );
  });

  test('an error hides the idempotency key that was sent', async () => {
    await askedFor('id-c4n4ry', (url) =>
      connectPeerService({ url, insecureHttp: false }, options).enroll(
        enrollmentRequest({ idempotencyKey: 'id-c4n4ry' }),
      ),
    );
  });

  test('an error hides the bearer token that was sent', async () => {
    await askedFor(canary, (url) =>
      connectPeerService({ url, insecureHttp: false }, options).readMap(7, new Secret(canary), null),
    );
  });

  test('an error hides the password that was sent', async () => {
    await askedFor(`${canary} pass word`, (url) =>
      connectAdminService({ url, insecureHttp: false }, null, options).login(
        'a@example.net',
        new Secret(`${canary} pass word`),
        'laptop',
      ),
    );
  });
});

/** All that a server got, with JSON's escapes undone. */
function sent(asked: readonly Asked[]): string {
  return asked
    .flatMap(({ headers, body }) => [...Object.values(headers), ...(body ? Object.values(JSON.parse(body)) : [])])
    .join('\n');
}

describe('a token that only the reply holds is not in the error', () => {
  const withToken = JSON.stringify({ data: enrollmentBody({ access_token: 'cpp_c4n4ry' }) });

  test.each([
    ['the reply breaks off', cut(withToken)],
    ['it is no JSON', bytes(201, withToken.slice(0, -1))],
    ['it begins as it should', bytes(201, `cpp_c4n4ry${withToken}`)],
    ['it is called HTML', bytes(201, withToken, { 'content-type': 'text/html' })],
    ['the peer is missing', json(201, { access_token: 'cpp_c4n4ry', cpp_c4n4ry: 1, network: networkBody() })],
    [
      'the address is wrong',
      json(201, enrollmentBody({ access_token: 'cpp_c4n4ry', peer: peerBody(1, { address: 'cpp_c4n4ry' }) })),
    ],
    ['the token has a space', json(201, enrollmentBody({ access_token: 'c4n4ry c4n4ry' }))],
    ['it is a message', json(403, { message: 'use cpp_c4n4ry instead of cpn_c4n4ry' })],
  ] satisfies [string, Reply][])('when %s', async (_, reply) => {
    const { address } = await serve(reply);
    const { options } = unhurried({ attempts: 2 });
    const error = await failureOf(connectPeerService(address, options).enroll(enrollmentRequest()));
    expect(everythingOf(error)).not.toContain('c4n4ry');
  });

  test('it is not when the reply is not even HTTP, which undici would quote', async () => {
    const { url } = await listen(
      createServer((socket) => socket.on('data', () => socket.end(`HTTX cpp_c4n4ry ${withToken}`))),
    );
    const { options } = unhurried();
    const error = await failureOf(
      connectPeerService({ url, insecureHttp: false }, options).enroll(enrollmentRequest()),
    );
    expect(error.message).toContain('the reply is not HTTP');
    expect(everythingOf(error)).not.toContain('c4n4ry');
  });
});

describe('a secret that was sent is not in the error', () => {
  test.each([
    ['when the connection is closed', hungUp],
    ['when the reply breaks off', brokenOff],
    ['at the deadline', silent],
  ] satisfies [string, Reply][])('%s', async (_, reply) => {
    const { address } = await serve(reply);
    const options = { deadlineMs: 60, attempts: 2, random: () => 0 };
    const request = enrollmentRequest({ token: new Secret('cpn_c4n4ry'), idempotencyKey: 'id-c4n4ry' });
    expect(everythingOf(await failureOf(connectPeerService(address, options).enroll(request)))).not.toContain('c4n4ry');
    const read = connectPeerService(address, options).readMap(7, new Secret('c4n4ry'), null);
    expect(everythingOf(await failureOf(read))).not.toContain('c4n4ry');
  });

  test('it is not when it breaks a rule itself', async () => {
    const service = connectPeerService({ url: 'http://127.0.0.1:1', insecureHttp: false });
    for (const token of ['c4n4ry', `cpn_c4n4ry\u0000`, `cpn_${'c4n4ry'.repeat(40)}`]) {
      const error = await failureOf(service.enroll(enrollmentRequest({ token: new Secret(token) })));
      expect(everythingOf(error).replaceAll('"c4n4..."', '')).not.toContain('c4n4');
    }
    const bearer = await failureOf(service.readMap(7, new Secret('c4n4ry\n'), null));
    expect(everythingOf(bearer)).not.toContain('c4n4ry');
    const unnamed = await failureOf(service.enroll(enrollmentRequest({ name: '', token: new Secret('cpn_c4n4ry') })));
    expect(everythingOf(unnamed)).not.toContain('c4n4ry');
  });

  test('nor in what is said of a retry', async () => {
    const { address } = await serve(json(500, { message: 'cpn_c4n4ry' }), json(201, enrollmentBody()));
    const { options, retries } = unhurried();
    await connectPeerService(address, options).enroll(enrollmentRequest({ token: new Secret('cpn_c4n4ry') }));
    expect(retries).toHaveLength(1);
    expect(JSON.stringify(retries)).not.toContain('c4n4ry');
  });
});

/** Sends so much of a body and drops the connection. */
function cut(body: string): Reply {
  return (response) => {
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': String(body.length + 1) });
    response.write(body, () => response.destroy());
  };
}
