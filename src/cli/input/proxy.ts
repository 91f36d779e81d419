import { findEnvironmentProxy, parseProxy } from '../../core/net/proxy.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import type { Environment, Input } from './input.ts';
import { readSecretFile } from './secrets.ts';

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
