import type { Role } from '../../src/contract/auth.ts';
import { enroll, hour, makeKey, makeNetwork, type Plane } from './harness.ts';
import type { Things } from './http/routes/access-rules.ts';

const roles: readonly Role[] = ['owner', 'admin', 'member', 'viewer'];

/** What a request carries. */
interface Carried {
  /** None, the same for all requests, or of the things that a request is about. */
  readonly token?: string | ((things: Things) => string);
  readonly headers?: Record<string, string>;
}

/** A bearer or a browser to call with, and what it is. */
export interface Credential extends Carried {
  readonly name: string;
  readonly holder:
    | 'unknown'
    | {
        readonly role: Role;
        readonly foreign: boolean;
        readonly byToken: boolean;
        /** A browser on behalf of a page of another origin, or of no page: it may read, and change nothing. */
        readonly otherPage?: true;
      }
    | { readonly peer: 'self' | 'sibling' | 'stranger' };
  /** Gives the same kind of credential again, when a request ended it. */
  readonly renew?: () => Promise<Carried>;
}

/** The headers with which browsers name the page that makes a request: of this origin, and of others. */
const ownPages = (url: string): Record<string, Record<string, string>> => ({
  'this page': { 'sec-fetch-site': 'same-origin' },
  'this page in an older browser': { origin: url },
});
const otherPages: Readonly<Record<string, Record<string, string>>> = {
  'no page': {},
  'another site': { 'sec-fetch-site': 'cross-site' },
  'another host of the site': { 'sec-fetch-site': 'same-site' },
  'the address bar': { 'sec-fetch-site': 'none' },
  'another site in an older browser': { origin: 'http://evil.test' },
  'a page without an origin': { origin: 'null' },
};

/** Every kind of credential there is, for every role in two organizations, and those that hold no more. */
export async function makeCredentials(plane: Plane): Promise<Credential[]> {
  const organizations = [
    { id: 1, foreign: false },
    { id: await plane.addOrganization('other'), foreign: true },
  ];
  const people = organizations.flatMap(({ id, foreign }) =>
    roles.map((role) => ({ role, foreign, name: `${foreign ? 'foreign ' : ''}${role}`, id })),
  );
  const expired: Credential[] = [];
  for (const { role, name, id } of people) {
    const session = await plane.signIn(role, id);
    const { value } = await makeToken(plane, session, { expires_in_days: 1 });
    expired.push(held(`expired session of ${name}`, session), held(`expired token of ${name}`, value));
  }
  // A session of the harness and these tokens last a day.
  plane.clock.advance(24 * hour);
  const users: Credential[] = [];
  for (const { role, name, id, foreign } of people) {
    const signIn = () => plane.signIn(role, id);
    const bySession = async () => ({ token: await signIn() });
    const byToken = async () => ({ token: (await makeToken(plane, await signIn())).value });
    const remover = await plane.signIn('owner', id);
    users.push(
      await renewable(name, { role, foreign, byToken: false }, bySession),
      await renewable(`token of ${name}`, { role, foreign, byToken: true }, byToken),
      ...(await makeVoid(plane, name, await signIn(), remover)),
    );
  }
  return [
    { name: 'unknown', holder: 'unknown' },
    ...['cpu_', 'cpt_', 'cpp_', 'cpn_', ''].map((prefix) => held(`a made up ${prefix}`, `${prefix}${'x'.repeat(43)}`)),
    { name: 'an enrolment key', holder: 'unknown', token: ({ keyToken }) => keyToken },
    ...expired,
    ...users,
    ...(await makeBrowsers(plane, people)),
    ...(await makePeers(plane, organizations[1]?.id ?? 0)),
  ];
}

async function renewable(
  name: string,
  holder: Credential['holder'],
  renew: () => Promise<Carried>,
): Promise<Credential> {
  return { name, holder, renew, ...(await renew()) };
}

/** The console of each user, by requests of its own page and of others; and halves of a session. */
async function makeBrowsers(
  plane: Plane,
  people: readonly { role: Role; foreign: boolean; name: string; id: number }[],
): Promise<Credential[]> {
  const browsers: Credential[] = [];
  for (const { role, name, id, foreign } of people) {
    const holder = { role, foreign, byToken: false };
    const from = (page: Record<string, string>) => async () => ({
      headers: { ...(await plane.signInBrowser(role, id)), ...page },
    });
    for (const [page, headers] of Object.entries(ownPages(plane.url))) {
      browsers.push(await renewable(`console of ${name}, from ${page}`, holder, from(headers)));
    }
    if (role !== 'owner' || foreign) continue;
    for (const [page, headers] of Object.entries(otherPages)) {
      const other = { ...holder, otherPage: true } as const;
      browsers.push(await renewable(`console of ${name}, from ${page}`, other, from(headers)));
    }
  }
  const page = { 'sec-fetch-site': 'same-origin' };
  const { cookie, 'session-key': key } = await plane.signInBrowser('owner');
  const { cookie: other } = await plane.signInBrowser('owner');
  const viewer = async () => ({
    token: await plane.signIn('viewer'),
    headers: { ...page, ...(await plane.signInBrowser('owner')) },
  });
  return [
    ...browsers,
    { name: 'a cookie alone', holder: 'unknown', headers: { ...page, cookie } },
    { name: 'the key of a page alone', holder: 'unknown', headers: { ...page, 'session-key': key } },
    { name: 'halves of two sessions', holder: 'unknown', headers: { ...page, cookie: other, 'session-key': key } },
    await renewable('the bearer of a viewer next to a session of an owner', viewerHolder, viewer),
  ];
}

const viewerHolder = { role: 'viewer', foreign: false, byToken: false } as const;

/** A session that was ended, a token that was revoked, and both of a user that was removed. */
async function makeVoid(plane: Plane, name: string, session: string, remover: string): Promise<Credential[]> {
  const profile = await plane.call('GET', '/api/auth/me', { token: session });
  const ended = await makeToken(plane, session);
  await must(plane.call('POST', '/api/auth/logout', { token: ended.value }));
  const revoked = await makeToken(plane, session);
  await must(plane.call('DELETE', `/api/auth/tokens/${revoked.id}`, { token: session }));
  const left = await makeToken(plane, session);
  await must(plane.call('DELETE', `/api/users/${profile.body.data.id}`, { token: remover }));
  return [
    held(`logged out token of ${name}`, ended.value),
    held(`revoked token of ${name}`, revoked.value),
    held(`session of removed ${name}`, session),
    held(`token of removed ${name}`, left.value),
  ];
}

async function makePeers(plane: Plane, other: number): Promise<Credential[]> {
  const owner = await plane.signIn('owner');
  const foreigner = await plane.signIn('owner', other);
  const removed = await makePeer(plane, owner);
  await must(plane.call('DELETE', `/api/networks/${removed.network}/peers/${removed.peer}`, { token: removed.token }));
  const session = await plane.signIn('viewer');
  await must(plane.call('POST', '/api/auth/logout', { token: session }));
  return [
    held('logged out session', session),
    held('removed peer', removed.token),
    { name: 'the peer itself', holder: { peer: 'self' }, token: ({ peerToken }) => peerToken },
    { name: 'a peer of the same network', holder: { peer: 'sibling' }, token: ({ siblingToken }) => siblingToken },
    {
      name: 'a peer of another network',
      holder: { peer: 'stranger' },
      token: (await makePeer(plane, owner)).token,
    },
    {
      name: 'a peer of another organization',
      holder: { peer: 'stranger' },
      token: (await makePeer(plane, foreigner)).token,
    },
  ];
}

/** Things of the first organization, made again. */
export async function makeThings(plane: Plane): Promise<Things> {
  const owner = await plane.signIn('owner');
  const network = await makeNetwork(plane, owner, { name: 'canary-network' });
  const self_enroll = { roles, limit: 100, reauth_hours: null };
  await must(plane.call('PATCH', `/api/networks/${network}`, { token: owner, body: { self_enroll } }));
  const keyToken = await makeKey(plane, owner, network);
  const keys = await must(plane.call('GET', `/api/networks/${network}/enrollment-keys?all=true`, { token: owner }));
  const self = await must(enroll(plane, keyToken));
  const sibling = await must(enroll(plane, keyToken));
  const other = await plane.signIn('viewer');
  const profile = await must(plane.call('GET', '/api/auth/me', { token: other }));
  const [session] = await must(plane.call('GET', '/api/auth/sessions', { token: other }));
  return {
    network,
    key: keys[0].id,
    keyToken,
    peer: self.peer.id,
    peerToken: self.access_token,
    siblingToken: sibling.access_token,
    user: profile.id,
    personalToken: (await makeToken(plane, other)).id,
    session: session.id,
  };
}

async function makePeer(plane: Plane, owner: string): Promise<{ network: number; peer: number; token: string }> {
  const network = await makeNetwork(plane, owner);
  const { peer, access_token } = await must(enroll(plane, await makeKey(plane, owner, network)));
  return { network, peer: peer.id, token: access_token };
}

async function makeToken(plane: Plane, session: string, fields: object = {}): Promise<{ id: number; value: string }> {
  const body = { name: 'canary-token', ...fields };
  const { id, access_token } = await must(plane.call('POST', '/api/auth/tokens', { token: session, body }));
  return { id, value: access_token };
}

function held(name: string, token: string): Credential {
  return { name, holder: 'unknown', token };
}

/** What a request that has to succeed gives. */
async function must(reply: ReturnType<Plane['call']>) {
  const { status, body } = await reply;
  if (status >= 300) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body.data;
}
