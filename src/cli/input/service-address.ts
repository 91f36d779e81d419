import { WrongUsage } from '../../core/errors/index.ts';
import { findEnvironmentProxy, parseProxy } from '../../core/net/proxy.ts';
import { parseServiceAddress, type ServiceAddress, withAuthorities } from '../../core/net/service-address.ts';
import type { Environment, Input } from './input.ts';
import { readFileOnce, readSecretFile } from './secrets.ts';

/** From `--api`, CPN_API or CPN_API_URL, with `--proxy` and `--ca-file`. Undefined if not given. */
export async function readServiceAddress(input: Input): Promise<ServiceAddress | undefined> {
  const given = input.text('api') ?? input.environment.CPN_API_URL;
  if (given === undefined) return undefined;
  const service = parseServiceAddress(given, input.switch('insecure-http'));
  const proxy = await readProxy(input);
  return withAuthorities(proxy === undefined ? service : { ...service, proxy }, await readCaFile(input));
}

/** As {@link readServiceAddress}, but requires an address. `prompt` may supply it. */
export async function needServiceAddress(
  input: Input,
  prompt: () => Promise<string | null> = async () => null,
): Promise<ServiceAddress> {
  const address = await readServiceAddress(input);
  const typed = address === undefined ? await prompt() : null;
  if (typed !== null) return needServiceAddress(input.above({ CPN_API_URL: typed }));
  if (address === undefined)
    throw new WrongUsage('--api is missing; name the control plane with --api URL or CPN_API_URL');
  return address;
}

/** Bytes, enough for some 40 certificates. */
const mostBytes = 64 * 1024;

/** CAs in PEM. Null for `none`, undefined if not given. @throws InvalidValue without any CA */
export async function readCaFile(input: Input): Promise<readonly string[] | null | undefined> {
  const path = input.text('ca-file');
  if (path === undefined) return undefined;
  if (path === 'none') return null;
  const from = `${input.nameOf('ca-file')} ${path}`;
  const content = await readFileOnce(path, 'the file of --ca-file', ({ size }) => {
    if (size <= mostBytes) return;
    const remedy = 'name the CA of the control plane alone; those of this machine are trusted without --ca-file';
    throw new WrongUsage(`${from} is larger than ${mostBytes / 1024} KiB; ${remedy}`);
  });
  const { parseAuthorities } = await import('../../core/tls/authority-file.ts');
  return parseAuthorities(content, from, Date.now());
}

/** The value of `--proxy` or CPN_PROXY. Undefined if neither is given. */
export async function readProxy(input: Input): Promise<NonNullable<ServiceAddress['proxy']> | undefined> {
  const given = input.text('proxy');
  if (given === undefined || given === 'none') return given;
  const name = input.nameOf('proxy');
  if (!given.startsWith('file:')) return parseProxy(given, name);
  return parseProxy((await readSecretFile(given.slice('file:'.length), 'the proxy')).reveal(), name);
}

/** Adds the environment's proxy, unless the service has a setting. @throws InvalidValue */
export function withEnvironmentProxy(service: ServiceAddress, environment: Environment): ServiceAddress {
  if (service.proxy !== undefined) return service;
  const proxy = findEnvironmentProxy(service.url, environment);
  return proxy === null ? service : { ...service, proxy };
}
