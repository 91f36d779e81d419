import { homedir } from 'node:os';
import { join } from 'node:path';
import type { AdminService } from '../api/service.ts';
import { WrongUsage } from '../core/errors.ts';
import type { ServiceAddress } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';
import type { Input } from './input.ts';
import { progress } from './output.ts';
import { readSecret } from './secrets.ts';
import { readServiceAddress } from './service-address.ts';

/** The control plane as the logged-in administrator: by CPN_API_TOKEN where it is set, else by the stored login. */
export async function openAdmin(input: Input): Promise<AdminService> {
  const { readLogin } = await import('../store/login-file.ts');
  const login = await readLogin(loginFolder(input));
  const given = input.environment.CPN_API_TOKEN;
  const service = readServiceAddress(input) ?? login?.service;
  if (service === undefined) throw new WrongUsage('not logged in; run "cpn login --api URL --email EMAIL"');
  if (given !== undefined) return connectAdmin(service, await readSecret(given, 'CPN_API_TOKEN'));
  // A token goes to the control plane that gave it, and to no other.
  if (login === null || login.service.url !== service.url) {
    throw new WrongUsage(`not logged in at ${service.url}; run "cpn login --api ${service.url} --email EMAIL"`);
  }
  return connectAdmin(login.service, login.token);
}

/** The control plane as somebody who has no token yet, or has just been given one. */
export async function connectAdmin(service: ServiceAddress, token: Secret | null): Promise<AdminService> {
  const { connectAdminService } = await import('../api/admin-service.ts');
  return connectAdminService(service, token, {
    onRetry: ({ problem, delayMs }) => progress(`${problem}; trying again in ${delayMs} ms`),
  });
}

/** Where an administrator's login is kept (XDG base directories). */
export function loginFolder({ environment }: Input): string {
  return join(environment.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'cpn');
}

/** The id of the network that a person names by id or name; looked up, because a name may change hands. */
export async function findNetwork(service: AdminService, named: string): Promise<number> {
  const networks = await service.listNetworks();
  const [found, ...more] = networks.filter(({ id, name }) => String(id) === named || name === named);
  if (found === undefined) {
    const known = networks.map(({ id, name }) => `${name} (${id})`).join(', ') || 'none';
    throw new WrongUsage(`there is no network ${JSON.stringify(named)}; there are: ${known}`);
  }
  if (more.length > 0)
    throw new WrongUsage(`${more.length + 1} networks are called ${JSON.stringify(named)}; name one by its id`);
  return found.id;
}
