import { WrongUsage } from '../../core/errors/index.ts';
import { parseServiceAddress, type ServiceAddress, withAuthorities } from '../../core/net/service-address.ts';
import { readCaFile } from './ca-file.ts';
import type { Input } from './input.ts';
import { readProxy } from './proxy.ts';

/**
 * The control plane of `--api`, CPN_API or CPN_API_URL, with the proxy of `--proxy` and the CAs of
 * `--ca-file`. Undefined if no address is given.
 */
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
