import type { Role } from '../../../../src/contract/auth.ts';
import { publicKey } from '../../harness.ts';

/** What requests are about: of the first organization, and made by its owner. */
export interface Things {
  readonly network: number;
  readonly key: number;
  readonly keyToken: string;
  /** The peer whose path is called, and its own token. */
  readonly peer: number;
  readonly peerToken: string;
  /** The token of another peer of the same network. */
  readonly siblingToken: string;
  /** A user that is not an owner, and none of those who call. */
  readonly user: number;
  /** A personal token and a session of that user. */
  readonly personalToken: number;
  readonly session: number;
}

/** What one operation of the control plane lets whom do. */
export interface Rule {
  /** Anyone: each caller gets `success`. */
  readonly anyone?: true;
  readonly roles?: readonly Role[];
  /** What a peer may do with it: to its own network, or to itself alone. */
  readonly peer?: 'network' | 'self';
  /** A personal token will not do. */
  readonly sessionOnly?: true;
  readonly path?: (things: Things) => string;
  readonly body?: (things: Things) => object;
  /** The status for who may. */
  readonly success: number;
  /**
   * The reply to a user of another organization with the same role: a path that leads to a thing of ours leads
   * nowhere for them, whereas a list is theirs.
   */
  readonly foreign?: number;
  /** What the caller came with is void afterwards. */
  readonly endsCredential?: true;
  /** The action in the audit of what changes something; absent for what leaves no entry. */
  readonly audit?: string;
  /** The request of a caller who changes something, where `path` and `body` change nothing. */
  readonly change?: { readonly path?: (things: Things, own: OwnThings) => string; readonly body?: Body };
  /** Its change needs more than a session, such as a code: its own test makes it. */
  readonly needsMore?: true;
  /** The field with the password of the caller, which is required where its login is not recent. */
  readonly proof?: string;
  /** The file of its tests, where one request alone cannot do it. */
  readonly apart?: string;
  /** Bytes of a body at most, where it is not the usual number. */
  readonly bodyLimit?: number;
}

type Body = (things: Things, own: OwnThings) => Readonly<Record<string, unknown>>;

/** Of the user who calls. */
export interface OwnThings {
  readonly email: string;
  readonly password: string;
  /** Another session, and a personal token. */
  readonly session: number;
  readonly personalToken: number;
  /** A device of its own. */
  readonly device: number;
}

const all: Role[] = ['owner', 'admin', 'member', 'viewer'];
const oam: Role[] = ['owner', 'admin', 'member'];
const oa: Role[] = ['owner', 'admin'];

const network = ({ network }: Things) => `/api/networks/${network}`;
const keys = (things: Things) => `${network(things)}/enrollment-keys`;
const peer = (things: Things) => `${network(things)}/peers/${things.peer}`;
let made = 0;

/** The rules of access, by operation of the served description. One that is not here fails the test that reads them. */
export const rules: Readonly<Record<string, Rule>> = {
  'GET /healthz': { anyone: true, success: 200 },
  'GET /readyz': { anyone: true, success: 200 },
  // For this machine, which is where the test is.
  'GET /metrics': { anyone: true, success: 200 },
  'GET /docs/api/openapi.json': { anyone: true, success: 200 },
  // What stands in the body lets in, and it is looked at whatever the header says.
  'POST /api/auth/login': {
    anyone: true,
    body: () => ({}),
    success: 422,
    audit: 'login',
    change: { body: (_, { email, password }) => ({ email, password }) },
  },
  'POST /api/networks/enroll': {
    anyone: true,
    body: () => ({}),
    success: 422,
    audit: 'peer.enroll',
    change: { body: ({ keyToken }) => ({ enrollment_token: keyToken, name: 'n', public_key: publicKey() }) },
  },

  'POST /api/auth/device-codes': {
    anyone: true,
    // No console is served, in which a person could approve it.
    body: () => ({}),
    success: 404,
    apart: 'device-codes.test.ts',
  },
  'POST /api/auth/device-codes/token': {
    anyone: true,
    body: () => ({ device_code: 'unknown' }),
    success: 400,
    apart: 'device-codes.test.ts',
  },
  'GET /api/auth/device-codes/{user_code}': {
    roles: all,
    sessionOnly: true,
    // There is none.
    path: () => '/api/auth/device-codes/BCDF-GHJK',
    success: 404,
    foreign: 404,
    apart: 'device-codes.test.ts',
  },
  'POST /api/auth/device-codes/{user_code}/approval': {
    roles: all,
    sessionOnly: true,
    path: () => '/api/auth/device-codes/BCDF-GHJK/approval',
    body: () => ({ approve: true }),
    success: 404,
    foreign: 404,
    audit: 'login.approve',
    proof: 'password',
    apart: 'device-codes.test.ts',
  },

  'GET /api/auth/methods': { anyone: true, success: 200 },
  'POST /api/auth/single-sign-on': {
    anyone: true,
    body: () => ({ session_cookie: '/' }),
    success: 403,
    apart: 'oidc/single-sign-on.test.ts',
  },
  'POST /api/auth/single-sign-on/session': {
    anyone: true,
    body: () => ({ session_cookie: '/' }),
    success: 403,
    apart: 'oidc/single-sign-on.test.ts',
  },
  'POST /api/auth/single-sign-on/logout': { anyone: true, success: 422, apart: 'oidc/logout.test.ts' },
  'GET /api/auth/me': { roles: all, success: 200, foreign: 200 },
  'POST /api/auth/logout': { roles: all, success: 200, foreign: 200, endsCredential: true, audit: 'logout' },
  'GET /api/auth/tokens': { roles: all, success: 200, foreign: 200 },
  'POST /api/auth/tokens': {
    roles: all,
    sessionOnly: true,
    body: () => ({ name: 'token' }),
    success: 201,
    foreign: 201,
    audit: 'token.create',
    proof: 'password',
  },
  'DELETE /api/auth/tokens/{id}': {
    roles: all,
    path: ({ personalToken }) => `/api/auth/tokens/${personalToken}`,
    // The token belongs to another user in each case: not even an owner sees the tokens of others.
    success: 404,
    foreign: 404,
    audit: 'token.revoke',
    change: { path: (_, { personalToken }) => `/api/auth/tokens/${personalToken}` },
  },
  'POST /api/networks/{network}/own-devices': {
    roles: all,
    sessionOnly: true,
    path: (things) => `${network(things)}/own-devices`,
    body: () => ({}),
    success: 201,
    foreign: 404,
    audit: 'key.create',
    proof: 'password',
  },
  'GET /api/auth/devices': { roles: all, success: 200, foreign: 200 },
  'PATCH /api/auth/devices/{peer}': {
    roles: all,
    // The peer is no device of the user in each case.
    path: ({ peer }) => `/api/auth/devices/${peer}`,
    body: () => ({ name: `device ${++made}` }),
    success: 404,
    foreign: 404,
    audit: 'peer.update',
    change: { path: (_, { device }) => `/api/auth/devices/${device}` },
  },
  'DELETE /api/auth/devices/{peer}': {
    roles: all,
    path: ({ peer }) => `/api/auth/devices/${peer}`,
    success: 404,
    foreign: 404,
    audit: 'peer.delete',
    change: { path: (_, { device }) => `/api/auth/devices/${device}` },
  },

  'GET /api/auth/sessions': { roles: all, success: 200, foreign: 200 },
  'DELETE /api/auth/sessions/{id}': {
    roles: all,
    // There is none of this id.
    path: () => '/api/auth/sessions/999999',
    success: 404,
    foreign: 404,
    audit: 'session.revoke',
    change: { path: (_, { session }) => `/api/auth/sessions/${session}` },
  },
  'PUT /api/auth/password': {
    roles: all,
    sessionOnly: true,
    // The users of this test have no password.
    body: () => ({}),
    success: 422,
    foreign: 422,
    audit: 'password.change',
    change: { body: (_, { password }) => ({ current_password: password, new_password: `${password}, and more` }) },
  },

  'POST /api/auth/login/second-factor': {
    anyone: true,
    body: () => ({}),
    success: 422,
    audit: 'login',
    needsMore: true,
  },
  'GET /api/auth/factors': { roles: all, sessionOnly: true, success: 200, foreign: 200 },
  'POST /api/auth/factors/challenges': {
    roles: all,
    sessionOnly: true,
    body: () => ({ kind: 'totp' }),
    success: 201,
    foreign: 201,
    proof: 'password',
  },
  'POST /api/auth/factors': {
    roles: all,
    sessionOnly: true,
    // There is no such challenge.
    body: () => ({ challenge: 'cpc_none', name: 'phone', code: '123456' }),
    success: 422,
    foreign: 422,
    audit: 'factor.add',
    needsMore: true,
  },
  'DELETE /api/auth/factors/{id}': {
    roles: all,
    sessionOnly: true,
    path: () => '/api/auth/factors/999999',
    success: 404,
    foreign: 404,
    audit: 'factor.remove',
    needsMore: true,
  },
  'POST /api/auth/factors/recovery-codes': {
    roles: all,
    sessionOnly: true,
    // The users of this test have no factor.
    success: 403,
    foreign: 403,
    audit: 'recovery_codes.create',
    needsMore: true,
  },

  'GET /api/users': { roles: oa, success: 200, foreign: 200 },
  'POST /api/users': {
    roles: oa,
    sessionOnly: true,
    body: () => ({ email: `made-${++made}@example.net`, password: 'a long enough password', role: 'viewer' }),
    success: 201,
    foreign: 201,
    audit: 'user.create',
    proof: 'current_password',
  },
  'PATCH /api/users/{user}': {
    roles: ['owner'],
    path: ({ user }) => `/api/users/${user}`,
    body: () => ({ role: 'viewer' }),
    success: 200,
    foreign: 404,
    audit: 'user.update',
    proof: 'current_password',
    change: { body: () => ({ role: 'admin' }) },
  },
  'DELETE /api/users/{user}': {
    roles: oa,
    path: ({ user }) => `/api/users/${user}`,
    success: 200,
    foreign: 404,
    audit: 'user.delete',
  },
  'PUT /api/users/{user}/link': {
    roles: ['owner'],
    sessionOnly: true,
    path: ({ user }) => `/api/users/${user}/link`,
    body: () => ({ subject: 's1' }),
    // There is no issuer.
    success: 403,
    foreign: 404,
    audit: 'user.link',
    proof: 'current_password',
    apart: 'oidc/single-sign-on.test.ts',
  },
  'DELETE /api/users/{user}/link': {
    roles: ['owner'],
    sessionOnly: true,
    path: ({ user }) => `/api/users/${user}/link`,
    // The user is not linked.
    success: 404,
    foreign: 404,
    audit: 'user.unlink',
    apart: 'oidc/single-sign-on.test.ts',
  },
  'DELETE /api/users/{user}/factors': {
    roles: oa,
    sessionOnly: true,
    path: ({ user }) => `/api/users/${user}/factors`,
    success: 200,
    foreign: 404,
    audit: 'factor.remove',
    needsMore: true,
  },
  'GET /api/users/{user}/sessions': {
    roles: oa,
    path: ({ user }) => `/api/users/${user}/sessions`,
    success: 200,
    foreign: 404,
  },
  'DELETE /api/users/{user}/sessions': {
    roles: oa,
    path: ({ user }) => `/api/users/${user}/sessions`,
    success: 200,
    foreign: 404,
    audit: 'session.revoke',
  },
  'DELETE /api/users/{user}/sessions/{session}': {
    roles: oa,
    path: ({ user, session }) => `/api/users/${user}/sessions/${session}`,
    success: 200,
    foreign: 404,
    audit: 'session.revoke',
  },
  'GET /api/audit': { roles: oa, success: 200, foreign: 200 },
  'GET /api/audit/chain': { roles: oa, success: 200, foreign: 200 },

  'GET /api/networks': { roles: all, success: 200, foreign: 200 },
  'POST /api/networks': {
    roles: oam,
    body: () => ({ name: 'n', private_cidr: '10.1.0.0/24' }),
    success: 201,
    foreign: 201,
    audit: 'network.create',
  },
  'POST /api/networks/{network}/peers/{peer}/approve': {
    roles: oa,
    path: (things) => `${network(things)}/peers/${things.peer}/approve`,
    success: 200,
    foreign: 404,
  },
  'GET /api/networks/{network}': { roles: all, peer: 'network', path: network, success: 200, foreign: 404 },
  'GET /api/networks/{network}/events': {
    roles: all,
    path: (things) => `${network(things)}/events`,
    success: 200,
    foreign: 404,
  },
  'GET /api/networks/{network}/removals': {
    roles: all,
    path: (things) => `${network(things)}/removals`,
    success: 200,
    foreign: 404,
  },
  'GET /api/networks/{network}/rules': {
    roles: all,
    path: (things) => `${network(things)}/rules`,
    success: 200,
    foreign: 404,
  },
  'PUT /api/networks/{network}/rules': {
    roles: ['owner', 'admin'],
    path: (things) => `${network(things)}/rules`,
    body: () => ({ mode: 'closed', rules: [{ name: `${++made}`, from: ['any'], to: ['any'] }] }),
    bodyLimit: 4 * 1024 * 1024,
    success: 200,
    foreign: 404,
    audit: 'rules.update',
  },
  'POST /api/networks/{network}/rules/confirm': {
    roles: ['owner', 'admin'],
    path: (things) => `${network(things)}/rules/confirm`,
    success: 200,
    foreign: 404,
  },
  'POST /api/networks/{network}/rules/preview': {
    roles: oam,
    path: (things) => `${network(things)}/rules/preview`,
    bodyLimit: 4 * 1024 * 1024,
    body: () => ({ mode: 'closed' }),
    success: 200,
    foreign: 404,
  },
  'GET /api/networks/{network}/rules/why': {
    roles: all,
    path: (things) => `${network(things)}/rules/why?from=any&to=any`,
    success: 200,
    foreign: 404,
  },
  'GET /api/networks/{network}/rules/reach': {
    roles: all,
    path: (things) => `${network(things)}/rules/reach`,
    success: 200,
    foreign: 404,
  },
  'PATCH /api/networks/{network}': {
    roles: oam,
    path: network,
    body: () => ({ description: `${++made}` }),
    success: 200,
    foreign: 404,
    audit: 'network.update',
  },
  'DELETE /api/networks/{network}': { roles: oam, path: network, success: 200, foreign: 404, audit: 'network.delete' },
  'GET /api/health': { roles: all, success: 200, foreign: 200 },
  'GET /api/networks/{network}/health': {
    roles: all,
    peer: 'network',
    path: (things) => `${network(things)}/health`,
    success: 200,
    foreign: 404,
  },
  'GET /api/networks/{network}/traffic': {
    roles: all,
    path: (things) => `${network(things)}/traffic`,
    success: 200,
    foreign: 404,
  },
  'GET /api/networks/{network}/peers/{peer}/traffic': {
    roles: all,
    path: (things) => `${peer(things)}/traffic`,
    success: 200,
    foreign: 404,
  },
  'POST /api/networks/{network}/peers/{peer}/report': {
    roles: [],
    peer: 'self',
    path: (things) => `${peer(things)}/report`,
    body: () => ({}),
    success: 200,
    bodyLimit: 128 * 1024,
  },
  'POST /api/networks/{network}/peers/self/paths': {
    roles: [],
    peer: 'network',
    path: (things) => `${network(things)}/peers/self/paths`,
    body: () => ({}),
    success: 204,
  },
  'GET /api/networks/{network}/enrollment-keys': { roles: oam, path: keys, success: 200, foreign: 404 },
  'POST /api/networks/{network}/enrollment-keys': {
    roles: oam,
    path: keys,
    body: () => ({ name: 'k' }),
    success: 201,
    foreign: 404,
    audit: 'key.create',
  },
  'DELETE /api/networks/{network}/enrollment-keys/{key}': {
    roles: oam,
    path: (things) => `${keys(things)}/${things.key}`,
    success: 200,
    foreign: 404,
    audit: 'key.revoke',
  },
  'GET /api/networks/{network}/peers': {
    roles: all,
    peer: 'network',
    path: (things) => `${network(things)}/peers`,
    success: 200,
    foreign: 404,
  },
  'GET /api/networks/{network}/peers/{peer}': { roles: all, path: peer, success: 200, foreign: 404 },
  'PATCH /api/networks/{network}/peers/{peer}': {
    roles: oam,
    peer: 'self',
    path: peer,
    body: () => ({ name: `peer ${++made}` }),
    success: 200,
    foreign: 404,
    audit: 'peer.update',
  },
  'DELETE /api/networks/{network}/peers/{peer}': {
    roles: oam,
    peer: 'self',
    path: peer,
    success: 200,
    foreign: 404,
    audit: 'peer.delete',
  },
};
