import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ClientOptions } from '../api/client-options.ts';
import type { RawRequest, RawService } from '../api/raw-service.ts';
import type { Remedies } from '../api/refusal.ts';
import type { AdminService, Profile } from '../api/service.ts';
import { quote, WrongUsage } from '../core/errors.ts';
import type { Id, ServiceAddress } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';
import type { Input } from './input.ts';
import { remark, warn } from './output.ts';
import { readSecret } from './secrets.ts';
import { readServiceAddress } from './service-address.ts';

/** Where an administrator's requests go, and with which token. */
interface Access {
  readonly service: ServiceAddress;
  readonly token: Secret;
  /** What to do where the service does not take the token, if it is not the one of the stored login. */
  readonly remedies: Remedies;
}

/** The control plane as the logged-in administrator: by CPN_API_TOKEN where it is set, else by the stored login. */
export async function openAdmin(input: Input): Promise<AdminService> {
  return (await openAdminAt(input)).admin;
}

/** As {@link openAdmin}, with where it is, for what is to be enrolled there. */
export async function openAdminAt(input: Input): Promise<{ admin: AdminService; address: ServiceAddress }> {
  const { service, token, remedies } = await findAccess(input);
  return { admin: await connectAdmin(service, token, { remedies }), address: service };
}

/**
 * The control plane for any operation, as {@link openAdmin}; a call may take so many milliseconds. Without a login, an operation that
 * the service describes as one for everyone goes without a token.
 */
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

/** The control plane as somebody who has no token yet, or has just been given one. */
export async function connectAdmin(
  service: ServiceAddress,
  token: Secret | null,
  options: Pick<ClientOptions, 'remedies' | 'attempts' | 'deadlineMs'> = {},
): Promise<AdminService> {
  const { connectAdminService } = await import('../api/admin-service.ts');
  return connectAdminService(service, token, { onRetry, ...options });
}

/** Where an administrator's login is kept (XDG base directories). */
export function loginFolder({ environment }: Input): string {
  return join(environment.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'cpn');
}

/** Who somebody is, as far as the service says; `before` stands in front of it where it says anything. */
export function describeProfile({ email, role, organization }: Profile, before = ''): string {
  const name = organization?.name ?? null;
  const place = [role, name === null ? null : `of ${name}`].filter((part) => part !== null).join(' ');
  const whole = [email, place].filter((part) => part !== null && part !== '').join(', ');
  return whole === '' ? '' : `${before}${whole}`;
}

/** The id of the network that a person names by id or name; looked up, because a name may change hands. */
export async function findNetwork(service: AdminService, named: string): Promise<Id> {
  return findNamed(await service.listNetworks(), named, 'network').id;
}

/** The one of `list` that a person names by id or name; a WrongUsage where there is none, or more than one. */
export function findNamed<Thing extends { readonly id: number | string; readonly name: string }>(
  list: readonly Thing[],
  named: string,
  what: string,
): Thing {
  const byId = list.find(({ id }) => String(id) === named);
  // A peer gives itself its name, and may have chosen the id of another.
  const other = byId && list.find((each) => each !== byId && each.name === named);
  if (other) {
    const which = `${quote(named)} is the id of ${quote(byId.name)}, and the name of the one with the id ${other.id}`;
    throw new WrongUsage(`${which}; name the one by its name, or the other by its id`);
  }
  const [found, ...more] = byId ? [byId] : list.filter(({ name }) => name === named);
  if (found === undefined) throw new WrongUsage(`there is no ${what} ${quote(named)}; there are: ${listNames(list)}`);
  if (more.length > 0) {
    const ids = [found, ...more].slice(0, mostNamed).map(({ id }) => id);
    throw new WrongUsage(
      `${more.length + 1} ${what}s are called ${quote(named)}; name one by its id: ${ids.join(', ')}`,
    );
  }
  return found;
}

const mostNamed = 20;

function listNames(list: readonly { readonly id: number | string; readonly name: string }[]): string {
  const names = list.slice(0, mostNamed).map(({ id, name }) => `${name} (${id})`);
  const more = list.length > names.length ? ` and ${list.length - names.length} more` : '';
  return names.length === 0 ? 'none' : `${names.join(', ')}${more}`;
}

async function findAccess(input: Input): Promise<Access> {
  const { service, token, remedies } = await findService(input);
  if (token === null) throw notLoggedIn(service);
  return { service, token, remedies };
}

function notLoggedIn({ url }: ServiceAddress): WrongUsage {
  return new WrongUsage(`not logged in at ${url}; run "cpn login --api ${url} --email EMAIL"`);
}

/** The control plane that is meant, with the token for it; null where there is none. */
async function findService(input: Input): Promise<Omit<Access, 'token'> & { token: Secret | null }> {
  const { readLogin } = await import('../store/login-file.ts');
  const login = await readLogin(loginFolder(input), warn);
  const given = input.environment.CPN_API_TOKEN;
  const service = readServiceAddress(input) ?? login?.service;
  if (service === undefined) throw new WrongUsage('not logged in; run "cpn login --api URL --email EMAIL"');
  if (given !== undefined) {
    return { service, token: await readSecret(given, 'CPN_API_TOKEN'), remedies: { 401: replaceVariable } };
  }
  // A token goes to the control plane that gave it, and to no other.
  return { ...(login?.service.url === service.url ? login : { service, token: null }), remedies: {} };
}

const replaceVariable =
  'replace the token in CPN_API_TOKEN by one of "cpn token create", or unset CPN_API_TOKEN to use the login of "cpn login"';

const onRetry: NonNullable<ClientOptions['onRetry']> = ({ problem, delayMs }) =>
  remark(`${problem}; trying again in ${delayMs} ms`);
