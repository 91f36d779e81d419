import type * as z from 'zod';
import { CreateEnrollmentKey } from '../contract/enrollment-key.ts';
import { ChangeNetwork, CreateNetwork } from '../contract/network.ts';
import { CreateOwnDevice } from '../contract/own-device.ts';
import { ChangePeer } from '../contract/peer.ts';
import { CreatePersonalToken } from '../contract/personal-token.ts';
import { SetRules } from '../contract/rules.ts';
import { LinkUser } from '../contract/single-sign-on.ts';
import { ChangePassword, ChangeUser, CreateUser } from '../contract/user.ts';
import type { AdminFeature } from '../core/map/features.ts';
import {
  decodeChangedPeer,
  decodeKeys,
  decodeListedPeers,
  decodeNetworks,
  decodeNewKey,
  decodeProfile,
  decodeWholeNetwork,
} from './decode/admin.ts';
import {
  decodeAudit,
  decodeAuditChain,
  decodeChangedUser,
  decodeEvents,
  decodeFactorsRemoved,
  decodeHealth,
  decodeNewToken,
  decodeOwnDeviceKey,
  decodePasswordChange,
  decodeRemovals,
  decodeRuleDecision,
  decodeRules,
  decodeRulesPreview,
  decodeSessions,
  decodeSessionsEnded,
  decodeTokens,
  decodeUser,
  decodeUserRemoval,
  decodeUsers,
} from './decode/extensions.ts';
import type { Source } from './decode/field.ts';
import type { Call } from './http/attempt.ts';
import { readIfJson, readOptional } from './http/body.ts';
import type { Remedies } from './http/error-reply.ts';

/** An administrator's operation. Ids are in braces in `what` and `path`, in argument order. */
export interface Operation {
  /** The subject of "was refused". */
  readonly what: string;
  readonly method: Call['method'];
  readonly path: string;
  readonly query?: readonly string[];
  /** The request; passwords are Secrets. */
  readonly body?: z.ZodObject;
  /** Absent if no reply is read. `request` is the one sent. */
  readonly reply?: (body: unknown, source: Source, request: never) => unknown;
  /** The reply is one page of a list; all pages are read. */
  readonly isList?: true;
  /** True if services without our extensions have it. */
  readonly isInContract?: true;
  readonly receive?: Call['receive'];
  /** The extension that the service must describe; else no request is sent. */
  readonly feature?: AdminFeature;
  /** The result for a service without the operation, by its description or a 404 or 405. */
  readonly otherwise?: null | readonly never[];
  /** Replaces the usual hint for a 404 of a network. */
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
const rules = `${network}/rules` as const;

const seeList = (list: string) => ({ 404: `"${list}" lists the ids` });
const absent = (what: string) => ({
  404: `the service offers no ${what}; ask its operator`,
  405: `the service offers no ${what}; ask its operator`,
});
/** A 404 may also mean that the service lacks the operation. */
const unlessAbsent = (list: string, what: string, things = 'what exists') => ({
  404: `see "${list}" for ${things}; if it is there, this service cannot ${what}`,
  405: `this service cannot ${what}; ask its operator`,
});

const outdated = 'nothing was changed; run it again, or use --add-route and --remove-route';
const otherRules =
  'the rules were changed meanwhile, and nothing was changed now; run it again to see who gains and who loses';
const noRules = unlessAbsent('cpn network list', 'restrict who reaches what', 'the networks');
const noUsers = absent('administration of users');
const noTokens = absent('personal tokens');

/** The one place for the path, schemas and remedies of each operation of an administrator. */
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
  /** Omitted fields stay. */
  updateNetwork: patch(network, 'changing network {network}', {
    body: ChangeNetwork,
    reply: decodeWholeNetwork,
    remedies: { ...unlessAbsent('cpn network list', 'change networks'), 409: outdated },
  }),
  deleteNetwork: remove(network, 'deleting network {network}'),

  createKey: post(keys, 'making a key for network {network}', { body: CreateEnrollmentKey, reply: decodeNewKey }),
  /** Unrevoked keys, without tokens. Without `all`, a service may leave out useless ones. */
  listKeys: get(keys, 'listing the keys of network {network}', {
    query: ['all'],
    reply: decodeKeys,
    isList: true,
    remedies: unlessAbsent('cpn network list', 'list keys'),
  }),
  /** Hosts that joined with the key stay. */
  revokeKey: remove(`${keys}/{key}`, 'revoking key {key} of network {network}', {
    remedies: unlessAbsent('cpn key list', 'revoke keys'),
  }),

  /** The suspended and expired peers; none if the service does not describe such peers. */
  listPeersOut: get(`${peers}?suspended=true`, 'listing the suspended peers of network {network}', {
    reply: decodeListedPeers,
    isList: true,
    feature: 'peer-suspension',
    otherwise: [],
  }),
  /** The own devices of users, with these; none if the service does not describe them. */
  listOwnedPeers: get(`${peers}?owned=true`, 'listing the own devices in network {network}', {
    reply: decodeListedPeers,
    isList: true,
    feature: 'own-devices',
    otherwise: [],
  }),
  /** Makes a key with which the caller enrols an own device. `password` proves the caller. */
  createOwnDevice: post(`${network}/own-devices`, 'making a key for an own device in network {network}', {
    body: CreateOwnDevice,
    reply: decodeOwnDeviceKey,
    remedies: unlessAbsent('cpn network list', 'enrol own devices', 'the networks'),
  }),
  /** Omitted fields stay; null removes the endpoint, or the limit on routes. */
  updatePeer: patch(`${peers}/{peer}`, 'changing peer {peer} of network {network}', {
    body: ChangePeer,
    reply: decodeChangedPeer,
    remedies: unlessAbsent('cpn peer list', 'change peers'),
  }),
  approvePeer: post(`${peers}/{peer}/approve`, 'approving peer {peer} of network {network}', {
    reply: decodeChangedPeer,
    remedies: unlessAbsent('cpn peer list', 'approve peers'),
  }),
  /** A missing peer is a Refused 404: the id may be a slip. */
  removePeer: remove(`${peers}/{peer}`, 'removing peer {peer} of network {network}'),

  /** What hosts observe of each other; null if the service does not describe that. */
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

  readRules: get(rules, 'reading the rules of network {network}', { reply: decodeRules, remedies: noRules }),
  setRules: put(rules, 'setting the rules of network {network}', {
    body: SetRules,
    reply: decodeRules,
    remedies: { ...noRules, 412: otherRules },
  }),
  /** Changes nothing. */
  previewRules: post(`${rules}/preview`, 'the preview of rules of network {network}', {
    body: SetRules,
    reply: decodeRulesPreview,
    remedies: noRules,
  }),
  confirmRules: post(`${rules}/confirm`, 'confirming the rules of network {network}', {
    reply: decodeRules,
    remedies: { ...noRules, 409: 'to set them again, type: cpn rules apply FILE' },
  }),
  explainRules: get(`${rules}/why`, 'reading which rule decides in network {network}', {
    query: ['from', 'to', 'protocol', 'port'],
    reply: decodeRuleDecision,
    remedies: noRules,
  }),

  listUsers: get('/api/users', 'listing the users', { reply: decodeUsers, isList: true, remedies: noUsers }),
  /** `current_password` proves the caller, if its login is not recent. */
  createUser: post('/api/users', 'making the user', { body: CreateUser, reply: decodeUser, remedies: noUsers }),
  /** Omitted fields stay. Raising a role needs `current_password` too. */
  updateUser: patch('/api/users/{user}', 'changing user {user}', {
    body: ChangeUser,
    reply: decodeChangedUser,
    remedies: unlessAbsent('cpn user list', 'change users', 'the users'),
  }),
  /** Removes a user with its sessions, tokens and, without `keep_keys`, usable enrolment keys. */
  deleteUser: remove('/api/users/{user}', 'removing user {user}', {
    query: ['keep_keys'],
    reply: decodeUserRemoval,
    receive: readOptional,
    remedies: seeList('cpn user list'),
  }),

  /** Another user's logins at the issuer of single sign-on. */
  linkUser: put('/api/users/{user}/link', 'linking user {user}', {
    body: LinkUser,
    receive: readOptional,
    remedies: unlessAbsent('cpn user list', 'link users', 'the users'),
  }),
  unlinkUser: remove('/api/users/{user}/link', 'unlinking user {user}', {
    receive: readOptional,
    remedies: unlessAbsent('cpn user list', 'link users', 'the users'),
  }),

  /** Of another user, whose password then suffices. */
  resetFactors: remove('/api/users/{user}/factors', 'removing the second factors of user {user}', {
    reply: decodeFactorsRemoved,
    receive: readOptional,
    remedies: unlessAbsent('cpn user list', 'remove second factors', 'the users'),
  }),

  listUserSessions: get('/api/users/{user}/sessions', 'listing the sessions of user {user}', {
    reply: decodeSessions,
    remedies: unlessAbsent('cpn user list', 'list sessions of users', 'the users'),
  }),
  endUserSessions: remove('/api/users/{user}/sessions', 'ending the sessions of user {user}', {
    reply: decodeSessionsEnded,
    receive: readOptional,
    remedies: seeList('cpn user list'),
  }),
  endUserSession: remove('/api/users/{user}/sessions/{session}', 'ending session {session} of user {user}', {
    remedies: seeList('cpn token list --user'),
  }),

  /** Also ends the caller's sessions. Services older than `keep_tokens` keep tokens anyway. */
  changePassword: put('/api/auth/password', 'changing the password', {
    body: ChangePassword,
    reply: decodePasswordChange,
    receive: readOptional,
    remedies: { ...absent('change of passwords'), 403: 'correct it, and try again' },
  }),
  /** Null if the service does not list them. */
  listSessions: get('/api/auth/sessions', 'listing the sessions', { reply: decodeSessions, otherwise: null }),
  deleteSession: remove('/api/auth/sessions/{session}', 'ending session {session}', {
    remedies: { 404: '"cpn token list" lists the sessions' },
  }),
  listTokens: get('/api/auth/tokens', 'listing the tokens', { reply: decodeTokens, isList: true, remedies: noTokens }),
  /** `password` proves the caller, if its login is not recent. */
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
  /** The links of the audit after a number. */
  readAuditChain: get('/api/audit/chain', 'reading the chain of the audit', {
    query: ['after', 'limit'],
    reply: decodeAuditChain,
    remedies: absent('chain of the audit'),
  }),
} as const satisfies Readonly<Record<string, Operation>>;
