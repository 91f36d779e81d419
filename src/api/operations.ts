import type * as z from 'zod';
import { CreateEnrollmentKey } from '../contract/enrollment-key.ts';
import { ChangeNetwork, CreateNetwork } from '../contract/network.ts';
import { ChangePeer } from '../contract/peer.ts';
import { CreatePersonalToken } from '../contract/personal-token.ts';
import { ChangePassword, ChangeUser, CreateUser } from '../contract/user.ts';
import type { AdminFeature } from '../core/map/features.ts';
import {
  decodeChangedPeer,
  decodeKeys,
  decodeNetworks,
  decodeNewKey,
  decodePeersOut,
  decodeProfile,
  decodeWholeNetwork,
} from './decode/admin.ts';
import {
  decodeAudit,
  decodeChangedUser,
  decodeEvents,
  decodeHealth,
  decodeNewToken,
  decodePasswordChange,
  decodeRemovals,
  decodeSessions,
  decodeTokens,
  decodeUser,
  decodeUserRemoval,
  decodeUsers,
} from './decode/extensions.ts';
import type { Source } from './decode/field.ts';
import type { Call } from './http/attempt.ts';
import { readIfJson, readOptional } from './http/body.ts';
import type { Remedies } from './http/error-reply.ts';

/**
 * An operation of an administrator. Its ids stand in braces in `what` and `path`, in the order of
 * its arguments.
 */
export interface Operation {
  /** The subject of "was refused". */
  readonly what: string;
  readonly method: Call['method'];
  readonly path: string;
  readonly query?: readonly string[];
  /** Of the request; a password in it is given as a Secret. */
  readonly body?: z.ZodObject;
  /** Absent where nothing of the reply is read. The request comes as it was sent. */
  readonly reply?: (body: unknown, source: Source, request: never) => unknown;
  /** The reply is a page of a list, and all its pages are read. */
  readonly isList?: true;
  /** Services without our extensions have it. */
  readonly isInContract?: true;
  readonly receive?: Call['receive'];
  /** The extension of the contract that must be described; without it there is no request. */
  readonly feature?: AdminFeature;
  /**
   * In place of the reply of a service without the operation, as its description or a 404 or 405
   * shows.
   */
  readonly otherwise?: null | readonly never[];
  /** In place of what a 404 of a network means. */
  readonly remedies?: Remedies;
}

const to =
  <const Method extends Call['method']>(method: Method) =>
  <const Path extends string, const More extends Partial<Operation> = object>(path: Path, what: string, more?: More) =>
    ({ method, path, what, ...more }) as { readonly method: Method; readonly path: Path; readonly what: string } & More;
const [get, post, put, patch, remove] = [to('GET'), to('POST'), to('PUT'), to('PATCH'), to('DELETE')];

const network = '/api/networks/{network}';
const keys = `${network}/enrollment-keys` as const;
const peers = `${network}/peers` as const;

const seeList = (list: string) => ({ 404: `"${list}" lists the ids` });
const absent = (what: string) => ({
  404: `the service offers no ${what}; ask its operator`,
  405: `the service offers no ${what}; ask its operator`,
});
/** What is not there may be the operation. */
const unlessAbsent = (list: string, what: string, things = 'what exists') => ({
  404: `see "${list}" for ${things}; if it is there, this service cannot ${what}`,
  405: `this service cannot ${what}; ask its operator`,
});

const outdated = 'nothing was changed; run it again, or use --add-route and --remove-route';
const noUsers = absent('administration of users');
const noTokens = absent('personal tokens');

/**
 * The operations of an administrator: the one place for the path, the schemas and the remedies of
 * each.
 */
export const operations = {
  logout: post('/api/auth/logout', 'the logout'),
  profile: get('/api/auth/me', 'reading the profile', { reply: decodeProfile, receive: readIfJson }),

  listNetworks: get('/api/networks', 'listing the networks', {
    reply: decodeNetworks,
    isList: true,
    isInContract: true,
  }),
  readNetwork: get(network, 'reading network {network}', { reply: decodeWholeNetwork, isInContract: true }),
  createNetwork: post('/api/networks', 'making the network', { body: CreateNetwork, reply: decodeWholeNetwork }),
  /** Sets the fields given; the others stay as they are. */
  updateNetwork: patch(network, 'changing network {network}', {
    body: ChangeNetwork,
    reply: decodeWholeNetwork,
    remedies: { ...unlessAbsent('cpn network list', 'change networks'), 409: outdated },
  }),
  deleteNetwork: remove(network, 'deleting network {network}'),

  createKey: post(keys, 'making a key for network {network}', { body: CreateEnrollmentKey, reply: decodeNewKey }),
  /**
   * The keys that were not revoked, without their tokens; a service may leave out those of no use,
   * unless all are asked for.
   */
  listKeys: get(keys, 'listing the keys of network {network}', {
    query: ['all'],
    reply: decodeKeys,
    isList: true,
    remedies: unlessAbsent('cpn network list', 'list keys'),
  }),
  /** Makes a key useless from now on; hosts that joined with it stay. */
  revokeKey: remove(`${keys}/{key}`, 'revoking key {key} of network {network}', {
    remedies: unlessAbsent('cpn key list', 'revoke keys'),
  }),

  /**
   * The suspended and expired peers of a network; none from a service that does not describe that
   * there may be some.
   */
  listPeersOut: get(`${peers}?suspended=true`, 'listing the suspended peers of network {network}', {
    reply: decodePeersOut,
    isList: true,
    feature: 'peer-suspension',
    otherwise: [],
  }),
  /** Sets the fields given; null takes the endpoint, or the limit on routes, away. */
  updatePeer: patch(`${peers}/{peer}`, 'changing peer {peer} of network {network}', {
    body: ChangePeer,
    reply: decodeChangedPeer,
    remedies: unlessAbsent('cpn peer list', 'change peers'),
  }),
  /** A peer that is not there is a Refused 404: the id may have been a slip. */
  removePeer: remove(`${peers}/{peer}`, 'removing peer {peer} of network {network}'),

  /**
   * What hosts observe of each other; null from a service that does not describe that it collects
   * it.
   */
  readHealth: get(`${network}/health`, 'reading the health of network {network}', {
    reply: decodeHealth,
    feature: 'network-health',
    otherwise: null,
  }),
  readRemovals: get(`${network}/removals`, 'reading which hosts of network {network} applied a removal', {
    reply: decodeRemovals,
    feature: 'network-removals',
    otherwise: null,
  }),
  readEvents: get(`${network}/events`, 'reading the events of network {network}', {
    query: ['after', 'limit'],
    reply: decodeEvents,
  }),

  listUsers: get('/api/users', 'listing the users', { reply: decodeUsers, isList: true, remedies: noUsers }),
  /** `current_password` is the caller's, which proves the caller where its login is not recent. */
  createUser: post('/api/users', 'making the user', { body: CreateUser, reply: decodeUser, remedies: noUsers }),
  /**
   * Sets the fields given; the others stay as they are. To raise a role takes `current_password`
   * too.
   */
  updateUser: patch('/api/users/{user}', 'changing user {user}', {
    body: ChangeUser,
    reply: decodeChangedUser,
    remedies: unlessAbsent('cpn user list', 'change users', 'the users'),
  }),
  /**
   * Removes a user with all its sessions and tokens, and without `keep_keys` with the usable
   * enrolment keys that it made.
   */
  deleteUser: remove('/api/users/{user}', 'removing user {user}', {
    query: ['keep_keys'],
    reply: decodeUserRemoval,
    receive: readOptional,
    remedies: seeList('cpn user list'),
  }),

  /**
   * Changes the caller's own password, and ends its sessions. A service of before `keep_tokens`
   * keeps the tokens in any case.
   */
  changePassword: put('/api/auth/password', 'changing the password', {
    body: ChangePassword,
    reply: decodePasswordChange,
    receive: readOptional,
    remedies: { ...absent('change of passwords'), 403: 'correct it, and try again' },
  }),
  /** The sessions of the caller; null from a service that does not list them. */
  listSessions: get('/api/auth/sessions', 'listing the sessions', { reply: decodeSessions, otherwise: null }),
  deleteSession: remove('/api/auth/sessions/{session}', 'ending session {session}', {
    remedies: { 404: '"cpn token list" lists the sessions' },
  }),
  /** The personal tokens of the caller. */
  listTokens: get('/api/auth/tokens', 'listing the tokens', { reply: decodeTokens, isList: true, remedies: noTokens }),
  /** `password` proves the caller where its login is not recent. */
  createToken: post('/api/auth/tokens', 'making the token', {
    body: CreatePersonalToken,
    reply: decodeNewToken,
    remedies: noTokens,
  }),
  deleteToken: remove('/api/auth/tokens/{token}', 'revoking token {token}', { remedies: seeList('cpn token list') }),

  readAudit: get('/api/audit', 'reading the audit', {
    query: ['before', 'limit'],
    reply: decodeAudit,
    remedies: absent('audit'),
  }),
} as const satisfies Readonly<Record<string, Operation>>;
