import { homedir } from 'node:os';
import { join } from 'node:path';
import type { AdminService, Network, PeerHealth, Profile } from '../api/admin-service.ts';
import type { DeviceLogins } from '../api/device-login.ts';
import type { ClientOptions } from '../api/http/client-options.ts';
import type { Remedies } from '../api/http/error-reply.ts';
import type { RawRequest, RawService } from '../api/raw-service.ts';
import type { Secret } from '../core/crypto/secret.ts';
import { expectCpnError, quote, WrongUsage } from '../core/errors/index.ts';
import { comparePeerIds, type Id } from '../core/map/model.ts';
import { describeList, findNamed as matchNamed, type Naming } from '../core/names/find-named.ts';
import { type ServiceAddress, withAuthorities } from '../core/net/service-address.ts';
import type { Input } from './input/input.ts';
import { readToken } from './input/secrets.ts';
import { readCaFile, readProxy, readServiceAddress, withEnvironmentProxy } from './input/service-address.ts';
import { printRemark, warn } from './output/output.ts';

/** The control plane of an administrator's requests, and the token for it. Null without a login. */
interface AdminAccess {
  readonly service: ServiceAddress;
  readonly token: Secret | null;
  /** Remedies for a rejected token that is not from the stored login. */
  readonly remedies: Remedies;
}

export type AdminOptions = Pick<ClientOptions, 'attempts' | 'deadlineMs' | 'signal'>;

/** Connects to the control plane with CPN_API_TOKEN if set, else with the stored login. */
export async function openAdmin(input: Input, options: AdminOptions = {}): Promise<AdminService> {
  return (await openAdminAt(input, options)).admin;
}

/** As {@link openAdmin}, and returns its address, for hosts to be enrolled there. */
export async function openAdminAt(
  input: Input,
  options: AdminOptions = {},
): Promise<{ admin: AdminService; address: ServiceAddress }> {
  const { service, token, remedies } = await findService(input);
  if (token === null) throw notLoggedIn(service);
  return { admin: await connectAdmin(service, token, { ...options, remedies }), address: service };
}

/** As {@link openAdmin}, for any operation. Without a login, calls only public operations. */
export async function openRaw(
  input: Input,
  operation: Pick<RawRequest, 'method' | 'path'>,
  deadlineMs: number,
): Promise<RawService> {
  const { service, token, remedies } = await findService(input);
  const options = { deadlineMs, onRetry, remedies };
  const { connectRawService } = await import('../api/raw-service.ts');
  if (token === null) {
    const { needsNoToken } = await import('../api/open-operation.ts');
    if (!(await needsNoToken(service, operation, options))) throw notLoggedIn(service);
  }
  return connectRawService(service, token, options);
}

/** Connects to the control plane with this token, or without one for a login. */
export async function connectAdmin(
  service: ServiceAddress,
  token: Secret | null,
  options: AdminOptions & Pick<ClientOptions, 'remedies'> = {},
): Promise<AdminService> {
  const { connectAdminService } = await import('../api/admin-service.ts');
  return connectAdminService(service, token, { onRetry, ...options });
}

/** The logins at this control plane that a user approves in the console. */
export async function connectDeviceLogins(service: ServiceAddress): Promise<DeviceLogins> {
  const { connectDeviceLogins: connect } = await import('../api/device-login.ts');
  return connect(service, { onRetry });
}

/** The folder of an administrator's login (XDG base directories). */
export function loginFolder({ environment }: Input): string {
  return join(environment.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'cpn');
}

/** Formats a profile's user, after the text `before`. Empty without a reported user. */
export function describeProfile({ email, role, organization }: Profile, before = ''): string {
  const name = organization?.name ?? null;
  const place = [role, name === null ? null : `of ${name}`].filter((part) => part !== null).join(' ');
  const whole = [email, place].filter((part) => part !== null && part !== '').join(', ');
  return whole === '' ? '' : `${before}${whole}`;
}

/** Returns the id of a network by id or name. A name may move to another network. */
export async function findNetwork(service: AdminService, named: string): Promise<Id> {
  return findNamed(await service.listNetworks(), named, 'network').id;
}

/** As {@link findNetwork}. Without a name, the only network. */
export async function findTheNetwork(service: AdminService, named: string | undefined): Promise<Id> {
  if (named !== undefined) return findNetwork(service, named);
  const networks = await service.listNetworks();
  const [only, ...more] = networks;
  if (only === undefined) throw new WrongUsage('there is no network yet; create one with "cpn network create"');
  if (more.length > 0)
    throw new WrongUsage(`there are ${networks.length} networks; name one: ${describeList(networks, naming)}`);
  return only.id;
}

/** Reads a network by id or name, including its suspended and expired peers. */
export async function readWholeNetwork(service: AdminService, named: string): Promise<Network> {
  const network = await service.readNetwork(await findNetwork(service, named));
  const out = await service.listPeersOut(network.id);
  const ids = new Set(out.map(({ id }) => id));
  const peers = [...network.peers.filter(({ id }) => !ids.has(id)), ...out];
  return { ...network, peers: peers.toSorted((a, b) => comparePeerIds(a.id, b.id)) };
}

/** Adds the users whose own devices the peers of a network are. */
export async function withUsers(service: AdminService, network: Network): Promise<Network> {
  const owned = await service.listOwnedPeers(network.id);
  if (owned.length === 0) return network;
  const users = new Map(owned.flatMap(({ id, user }) => (user ? [[String(id), user] as const] : [])));
  const add = (peer: Network['peers'][number]) => {
    const user = users.get(String(peer.id));
    return user ? { ...peer, user } : peer;
  };
  return { ...network, peers: network.peers.map(add) };
}

/** Observations of each peer, by its id as text. Null if not collected, or if the request fails. */
export async function readPeerHealth(
  service: AdminService,
  network: Id,
): Promise<ReadonlyMap<string, PeerHealth> | null> {
  try {
    const health = await service.readHealth(network);
    return health && new Map(health.map((peer) => [String(peer.id), peer]));
  } catch (error) {
    // The list of peers is useful without it.
    warn(expectCpnError(error).message);
    return null;
  }
}

/**
 * An id takes precedence: peers choose names, and two named by each other's id must be removable.
 * @throws WrongUsage without a match, or if several have the name
 */
export function findNamed<Thing extends NamedNetwork>(list: readonly Thing[], named: string, what: string): Thing {
  const found = matchNamed(list, named, { ...naming, what });
  if (found === null) {
    throw new WrongUsage(`there is no ${what} ${quote(named)}; there are: ${describeList(list, naming)}`);
  }
  return found;
}

interface NamedNetwork {
  readonly id: number | string;
  readonly name: string;
}

export const naming: Omit<Naming<NamedNetwork>, 'what'> = {
  ownName: ({ id }) => String(id),
  names: ({ name }) => [name],
  describe: ({ id, name }) => `${quote(name)} (${id})`,
  remedy: 'give an id',
};

function notLoggedIn({ url }: ServiceAddress): WrongUsage {
  return new WrongUsage(`not logged in at ${url}; run "cpn login --api ${url} --email EMAIL"`);
}

async function findService(input: Input): Promise<AdminAccess> {
  const { readLogin } = await import('../store/login-file.ts');
  const login = await readLogin(loginFolder(input), warn);
  const variable = input.environment.CPN_API_TOKEN;
  const named = (await readServiceAddress(input)) ?? login?.service;
  if (named === undefined) throw new WrongUsage('not logged in; run "cpn login --api URL"');
  const isLogin = login?.service.url === named.url;
  const listener = isLogin ? login.service.listener : undefined;
  const service = listener === undefined ? named : { ...named, listener };
  const proxy = (await readProxy(input)) ?? (isLogin ? login.service.proxy : undefined);
  const given = await readCaFile(input);
  const authorities = given === undefined && isLogin ? login.service.authorities : given;
  const reach = (address: ServiceAddress) =>
    withEnvironmentProxy(
      withAuthorities(proxy === undefined ? address : { ...address, proxy }, authorities),
      input.environment,
    );
  if (variable !== undefined) {
    const token = await readToken(variable, 'CPN_API_TOKEN');
    return { service: reach(service), token, remedies: { 401: replaceVariable } };
  }
  // A token is sent only to the control plane that issued it.
  const access = isLogin ? login : { service, token: null };
  return { service: reach(access.service), token: access.token, remedies: {} };
}

const replaceVariable =
  'replace the token in CPN_API_TOKEN with one of "cpn token create", or unset CPN_API_TOKEN to use the stored login';

const onRetry: NonNullable<ClientOptions['onRetry']> = ({ problem, delayMs }) =>
  printRemark(`${problem}; retrying in ${delayMs} ms`);
