import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../lab/eventually.ts';
import { closePlane, openPlane, type Plane } from '../harness.ts';
import { begin, findPort, openBrowser, passIssuer, path, redeem, settingsFor, visit } from './browser.ts';
import { type Conduct, type HostileIssuer, startHostileIssuer } from './hostile-issuer.ts';
import { client } from './provider.ts';

async function openOffice(): Promise<{ plane: Plane; issuer: HostileIssuer }> {
  const [issuer, port] = [await startHostileIssuer(), await findPort()];
  const publicUrls = [new URL(`http://127.0.0.1:${port}/`)];
  const plane = await openPlane({ port, publicUrls, oidc: settingsFor(issuer.url), now: () => new Date() });
  return { plane, issuer };
}

let plane: Plane;
let issuer: HostileIssuer;

beforeAll(async () => {
  ({ plane, issuer } = await openOffice());
});

afterAll(async () => {
  await closePlane(plane);
  issuer.close();
});

beforeEach(() => {
  issuer.forms.length = 0;
  Object.assign(issuer, {
    claims: {},
    answer: {},
    signsWithForeignKey: false,
    algorithm: 'RS256',
    tokens: null,
    info: {},
  });
});

async function logIn(plane: Plane) {
  const browser = openBrowser();
  const callback = await passIssuer(browser, plane, await begin(browser, plane));
  await visit(browser, callback);
  return { ...(await redeem(browser, plane)), callback };
}

/** A claim that is undefined is left out. */
interface Lies extends Omit<Conduct, 'claims'> {
  claims: Record<string, unknown>;
}

const seconds = (from: number) => Math.floor(Date.now() / 1000) + from;

const lies: Readonly<Record<string, Partial<Lies>>> = {
  'a token of another issuer': { claims: { iss: 'https://other.example.net' } },
  'a token for another client': { claims: { aud: 'another' } },
  'a token for several clients that is not for this one': { claims: { aud: ['a', 'b'], azp: 'a' } },
  'a token for several clients, which another one asked for': { claims: { aud: [client.id, 'b'], azp: 'b' } },
  'a token of another login': { claims: { nonce: 'another' } },
  'a token without the nonce': { claims: { nonce: undefined } },
  'a token of a key that the issuer does not name': { signsWithForeignKey: true },
  'a token signed with the client secret': { algorithm: 'HS256' },
  'a token without a signature': { algorithm: 'none' },
  'a token that expired minutes ago': { claims: { exp: seconds(-300) } },
  'a token that is valid in some minutes': { claims: { nbf: seconds(300) } },
  'a token without a subject': { claims: { sub: undefined } },
  'an empty subject': { claims: { sub: '' } },
  'a subject that is no text': { claims: { sub: 7 } },
  'an endless subject': { claims: { sub: 's'.repeat(300) } },
  'no e-mail address': { claims: { email: undefined } },
  'an e-mail address that is a list': { claims: { email: ['ada@example.net'] } },
  'an e-mail address with a line break': { claims: { email: 'ada@example.net\nbcc: eve@example.net' } },
  'groups that are no list': { claims: { groups: { 'net-admins': true } } },
  'a group whose name only begins so': { claims: { groups: ['net-admins-2', 'Net-Admins'] } },
  'another issuer in the answer (RFC 9207)': { answer: { iss: 'https://other.example.net' } },
  'an error in the answer': { answer: { error: 'access_denied', code: undefined } },
  'no code': { answer: { code: undefined } },
  'a code of another login': { answer: { code: 'f'.repeat(64) } },
  'no ID token': { tokens: { access_token: 'a', token_type: 'Bearer' } },
};

test.each(Object.entries(lies))('%s opens no session', async (_, conduct) => {
  Object.assign(issuer, conduct);
  const { status, body } = await logIn(plane);
  expect(status).toBe(401);
  expect(body.message).toMatch(/issuer|group/);
  expect(body.message).not.toMatch(/\p{Cc}/u);
});

test('an issuer that names itself otherwise, or leaves out its name, opens no session', async () => {
  const other = await openOffice();
  other.issuer.description = { issuer: 'https://other.example.net' };
  await expect(logIn(other.plane)).rejects.toThrow('502');
  other.issuer.description = { authorization_response_iss_parameter_supported: true };
  expect((await logIn(other.plane)).status).toBe(401);
  other.issuer.answer = { iss: other.issuer.url };
  expect((await logIn(other.plane)).status).toBe(200);
  await closePlane(other.plane);
  other.issuer.close();
});

test('clocks that differ by half a minute are no reason to refuse', async () => {
  for (const claims of [{ exp: seconds(-30) }, { nbf: seconds(30), iat: seconds(30) }]) {
    issuer.claims = claims;
    expect((await logIn(plane)).status).toBe(200);
  }
});

test('a code is redeemed once, with the verifier of its own login', async () => {
  const browser = openBrowser();
  const callback = await passIssuer(browser, plane, await begin(browser, plane));
  await Promise.all([visit(browser, callback), visit(browser, callback), visit(browser, callback)]);
  expect(issuer.forms.length).toBe(1);
  expect((await redeem(browser, plane)).status).toBe(200);
  // The code of one login in the callback of another.
  const [one, two] = [openBrowser(), openBrowser()];
  const stolen = new URL(await passIssuer(one, plane, await begin(one, plane)));
  const own = new URL(await passIssuer(two, plane, await begin(two, plane)));
  own.searchParams.set('code', stolen.searchParams.get('code') ?? '');
  await visit(two, own.href);
  const { status, body } = await redeem(two, plane);
  expect([status, body.message]).toEqual([401, expect.stringContaining('invalid_grant')]);
});

test('the keys of the issuer may change at any time', async () => {
  expect((await logIn(plane)).status).toBe(200);
  await issuer.rotateKeys();
  await eventually('the new key is read', async () => (await logIn(plane)).status === 200);
});

test('claims that the ID token lacks are those of the userinfo endpoint, of the same user only', async () => {
  issuer.claims = { email: undefined, groups: undefined };
  issuer.info = { sub: 's1', email: 'ada@example.net', groups: ['staff'] };
  expect((await logIn(plane)).status).toBe(200);
  issuer.info = { ...issuer.info, sub: 's2' };
  expect((await logIn(plane)).status).toBe(401);
});

const event = { 'http://schemas.openid.net/event/backchannel-logout': {} };
const good = { jti: 'j', sub: 's1', events: event };
const badTokens: Readonly<Record<string, Lies['claims']>> = {
  'without an event': { ...good, events: undefined },
  'with another event': { ...good, events: { other: {} } },
  'that is an ID token too': { ...good, nonce: 'n' },
  'of another issuer': { ...good, iss: 'https://other.example.net' },
  'for another client': { ...good, aud: 'another' },
  'for no user': { ...good, sub: undefined },
  'without an id': { ...good, jti: undefined },
  'of an hour ago': { ...good, iat: seconds(-3600) },
  'that expired': { ...good, exp: seconds(-300) },
};

test('logout tokens that are not valid end nothing', async () => {
  const { body, headers } = await logIn(plane);
  expect(body.data.session_key).toBeTypeOf('string');
  const send = async (token: string) =>
    (await fetch(`${plane.url}${path}/logout`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) }))
      .status;
  for (const [name, claims] of Object.entries(badTokens))
    expect([name, await send(await issuer.sign(claims))]).toEqual([name, 400]);
  for (const conduct of [
    { signsWithForeignKey: true },
    { algorithm: 'HS256' },
    { algorithm: 'none' },
  ] as Partial<Conduct>[]) {
    Object.assign(issuer, { signsWithForeignKey: false, algorithm: 'RS256' }, conduct);
    expect(await send(await issuer.sign(good))).toBe(400);
  }
  Object.assign(issuer, { signsWithForeignKey: false, algorithm: 'RS256' });
  for (const text of ['', 'x', 'a.b.c', 'a'.repeat(20_000)]) expect([400, 422]).toContain(await send(text));
  const cookie = headers.get('set-cookie') ?? '';
  const session = { cookie: /cpn_session=[^;]*/.exec(cookie)?.[0] ?? '', 'session-key': body.data.session_key };
  expect((await plane.call('GET', '/api/auth/me', { headers: session })).status).toBe(200);
  const valid = await issuer.sign(good);
  expect(await send(valid)).toBe(200);
  expect((await plane.call('GET', '/api/auth/me', { headers: session })).status).toBe(401);
  // Of a user that is unknown here, the token is valid.
  expect(await send(await issuer.sign({ ...good, sub: 'another' }))).toBe(200);
});

test('a session that the issuer names is ended alone, and a replay ends no later login', async () => {
  const open = async (sid: string) => {
    issuer.claims = { sid };
    const { body, headers } = await logIn(plane);
    const cookie = /cpn_session=[^;]*/.exec(headers.get('set-cookie') ?? '')?.[0] ?? '';
    return { cookie, 'session-key': body.data.session_key as string };
  };
  const me = (headers: Record<string, string>) =>
    plane.call('GET', '/api/auth/me', { headers }).then(({ status }) => status);
  const [one, two] = [await open('first'), await open('second')];
  const token = await issuer.sign({ jti: 'j', sid: 'first', sub: 's1', events: event });
  const send = () =>
    fetch(`${plane.url}${path}/logout`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) });
  expect((await send()).status).toBe(200);
  expect([await me(one), await me(two)]).toEqual([401, 200]);
  // A token of two minutes ago, in the time for which such a token is accepted.
  const old = await issuer.sign({ jti: 'k', sub: 's1', events: event, iat: seconds(-120) });
  const replay = await fetch(`${plane.url}${path}/logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: old }),
  });
  expect([replay.status, await me(two)]).toEqual([200, 200]);
});
