import type * as z from 'zod';
import { LoginRequest } from '../contract/auth.ts';
import type { SetRules } from '../contract/rules.ts';
import { Secret } from '../core/crypto/secret.ts';
import { Refused, WrongUsage } from '../core/errors/index.ts';
import type { AdminFeature } from '../core/map/features.ts';
import type { Id } from '../core/map/model.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { checkRequest } from './check-request.ts';
import { decodeSession, type Session } from './decode/admin.ts';
import type { AuditEntry, Event, NetworkRules, PendingHost } from './decode/extensions.ts';
import { readAdminFeatures } from './description.ts';
import type { Call, Reply } from './http/attempt.ts';
import { HttpClient } from './http/client.ts';
import type { ClientOptions } from './http/client-options.ts';
import { type Operation, operations } from './operations.ts';
import { createList } from './pages.ts';
import type { Wait } from './service.ts';

export type { Key, Network, NetworkPeer, Profile, Session } from './decode/admin.ts';
export type {
  AuditEntry,
  Event,
  KeyOfNetwork,
  NetworkRules,
  OpenSession,
  PeerHealth,
  PendingHost,
  RuleDecision,
  RulesPreview,
  Token,
  User,
} from './decode/extensions.ts';

type Operations = typeof operations;

/** An id for each name in braces. */
type Ids<Path extends string> = Path extends `${string}{${string}}${infer Rest}` ? [id: Id, ...Ids<Rest>] : [];
/** A request, with its passwords as secrets. */
type Sent<Body> = {
  readonly [Name in keyof Body]: Name extends `${string}password`
    ? Secret | Extract<Body[Name], undefined>
    : Body[Name];
};
type Query<Name extends string> = { readonly [Each in Name]?: Id | boolean };
type Input<Of> = Of extends { readonly body: infer Body extends z.ZodObject }
  ? [body: Sent<z.input<Body>>]
  : Of extends { readonly query: readonly (infer Name extends string)[] }
    ? [query?: Query<Name>]
    : [];
type Result<Of> =
  | (Of extends { readonly reply: (...reply: never[]) => infer Reply } ? Reply : undefined)
  | (Of extends { readonly otherwise: null } ? null : never);

/** The newest entries of the audit, or those before the id `before`. */
type AuditPage = { readonly before?: Id; readonly limit?: number };
/** Oldest first: the newest, or those after the id `after`, for which the service may wait. */
export type EventPage = { readonly after?: Id; readonly limit?: number; readonly wait?: Wait };

/** The operations with their own parameters or results. */
type Composed = 'readAudit' | 'readEvents' | 'readRemovals' | 'readRules' | 'setRules';

/** The operations in {@link operations}. All but `login` need an administrator's token. */
export type AdminService = {
  readonly [Name in keyof Omit<Operations, Composed>]: (
    ...input: [...Ids<Operations[Name]['path']>, ...Input<Operations[Name]>]
  ) => Promise<Result<Operations[Name]>>;
} & {
  login(email: string, password: Secret, device: string): Promise<Session>;
  /** True if the service describes an extension. Others must not be called. */
  describes(feature: AdminFeature): Promise<boolean>;
  /** The newest entries first; without `limit`, as many as the service gives. */
  readAudit(page?: AuditPage): Promise<AuditEntry[]>;
  /**
   * Returns the hosts of a network that have not applied the last removal of a peer. Waits up to
   * `waitSeconds` for hosts that may soon apply it. Null if the service does not describe this.
   */
  readRemovals(network: Id, waitSeconds: number): Promise<PendingHost[] | null>;
  /**
   * A page of a network's events. A waiting call makes one attempt; the caller repeats it.
   *
   * `waited`: the service supports waiting; else the caller polls.
   */
  readEvents(network: Id, page?: EventPage): Promise<{ readonly events: Event[]; readonly waited: boolean }>;
  /** The rules of a network, and the ETag of these rules; null without one. */
  readRules(network: Id): Promise<{ readonly rules: NetworkRules; readonly etag: string | null }>;
  /** Replaces the rules with this ETag. @throws Refused with the status 412 if there are others */
  setRules(network: Id, rules: SetRules, etag: string | null): Promise<NetworkRules>;
};

const auditPage = 200;

/** Matches a refusal that mentions a second factor; other services have none. */
const secondFactor = /two.factor|2fa|second factor|one.time|\botp\b|\bmfa\b/i;

const loginRemedies = {
  401: (reason: string | null) =>
    secondFactor.test(reason ?? '')
      ? 'with two-factor authentication, make a personal token and give --token-file'
      : 'check the email and the password',
  403: 'make a personal token and give --token-file',
};
const goneRemedies = { 404: '"cpn network list" lists the ids' };

/**
 * An administrator's operations at `address`; `token` is null before the login. Throws InvalidValue
 * for an address that must receive no request.
 */
export function connectAdminService(
  address: ServiceAddress,
  token: Secret | null,
  options: ClientOptions = {},
): AdminService {
  const http = new HttpClient(address, options);
  const call = async (request: Call) => {
    if (token === null) throw new WrongUsage(`${request.what} needs a login; sign in with "cpn login"`);
    return http.call({ ...request, bearer: token });
  };
  const list = createList({ base: http.url, secrets: token === null ? [] : [token] }, call);
  const describes = readAdminFeatures(address, options);

  const perform = async (operation: Operation, input: readonly unknown[], more: Partial<Call> = {}) => {
    const { feature, otherwise, isList, reply } = operation;
    if (feature !== undefined && !(await describes(feature))) return { value: otherwise, waited: false, etag: null };
    const { request, json } = composeCall(operation, input);
    const decode = (body: unknown, reading: Reply['reading']) => reply?.(body, reading, json as never);
    if (isList)
      return { value: await list({ ...request, ...more }, decode as () => unknown[]), waited: false, etag: null };
    try {
      const { body, reading, waited, etag } = await call({ ...request, ...more });
      return { value: decode(body, reading), waited, etag };
    } catch (error) {
      const isAbsent = error instanceof Refused && (error.status === 404 || error.status === 405);
      if (!isAbsent || otherwise === undefined || feature !== undefined) throw error;
      return { value: otherwise, waited: false, etag: null };
    }
  };
  const methods = Object.entries(operations).map(([name, operation]) => [
    name,
    async (...input: unknown[]) => (await perform(operation, input)).value,
  ]);
  return {
    ...Object.fromEntries(methods),
    describes,
    login: (email, password, device) => login(http, email, password, device),

    async readAudit({ before, limit } = {}) {
      const readPage = async (page: AuditPage) => (await perform(operations.readAudit, [page])).value as AuditEntry[];
      if (limit === undefined) return readPage({ ...(before !== undefined && { before }) });
      const entries: AuditEntry[] = [];
      for (let last = before; entries.length < limit; last = entries.at(-1)?.id) {
        const size = Math.min(limit - entries.length, auditPage);
        const page = await readPage({ ...(last !== undefined && { before: last }), limit: size });
        entries.push(...page.slice(0, size));
        if (page.length < size) break;
      }
      return entries;
    },

    async readRemovals(network, seconds) {
      const { value } = await perform(operations.readRemovals, [network], {
        ...(seconds > 0 && { wait: { seconds } }),
      });
      return (value as { pending: PendingHost[] } | null)?.pending ?? null;
    },

    async readEvents(network, { wait, ...page } = {}) {
      const { value, waited } = await perform(operations.readEvents, [network, page], {
        ...(wait && { wait, attempts: 1 }),
      });
      return { events: value as Event[], waited };
    },

    async readRules(network) {
      const { value, etag } = await perform(operations.readRules, [network]);
      return { rules: value as NetworkRules, etag };
    },

    async setRules(network, rules, etag) {
      const { value } = await perform(operations.setRules, [network, rules], {
        ...(etag !== null && { headers: { 'if-match': etag } }),
      });
      return value as NetworkRules;
    },
  } as AdminService;
}

/** Composes the call with these ids and, after them, its request or query. */
function composeCall(operation: Operation, input: readonly unknown[]) {
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const fill = (template: string, encode: (id: string) => string) =>
    template.replace(/\{(\w+)\}/g, (_, name) => encode(String(input[names.indexOf(name)])));
  const given = Object.entries(input[names.length] ?? {}).filter(([, value]) => value !== undefined);
  const secrets = given.flatMap(([, value]) => (value instanceof Secret ? [value] : []));
  const json = operation.body && checkRequest(operation.body, revealed(given));
  const query = new URLSearchParams(
    operation.body
      ? []
      : given.flatMap(([name, value]) => (value === false ? [] : [[name, String(value)] as [string, string]])),
  );
  const { method, what, reply, receive, isInContract, remedies = goneRemedies } = operation;
  const request: Call = {
    method,
    what: fill(what, String),
    path: `${fill(operation.path, encodeURIComponent)}${query.size > 0 ? `?${query}` : ''}`,
    ...(json && { json }),
    secrets,
    // A second POST creates a second object; a second PUT has a password that is no longer current.
    repeatable: method !== 'POST' && method !== 'PUT',
    answered: reply !== undefined,
    ...(receive && { receive }),
    ...(isInContract && { alwaysThere: true }),
    remedies,
  };
  return { request, json };
}

function revealed(fields: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(fields.map(([name, value]) => [name, value instanceof Secret ? value.reveal() : value]));
}

async function login(http: HttpClient, email: string, password: Secret, device: string) {
  const json = checkRequest(LoginRequest, { email, password: password.reveal(), device_name: device });
  const { body, reading } = await http.call({
    ...{ method: 'POST', repeatable: false, answered: true },
    what: 'the login',
    path: '/api/auth/login',
    json,
    secrets: [password],
    remedies: loginRemedies,
  });
  return decodeSession(body, reading);
}
