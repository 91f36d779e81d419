import { WrongUsage } from '../../core/errors/index.ts';
import { parseServiceAddress, type ServiceAddress } from '../../core/net/service-address.ts';
import type { Input } from './input.ts';

/** The control plane that `--api`, CPN_API or CPN_API_URL name; undefined when none does. */
export function readServiceAddress(input: Input): ServiceAddress | undefined {
  const given = input.text('api') ?? input.environment.CPN_API_URL;
  if (given === undefined) return undefined;
  return parseServiceAddress(given, input.switch('insecure-http'));
}

/** Like {@link readServiceAddress}, where there must be one. */
export function needServiceAddress(input: Input): ServiceAddress {
  const address = readServiceAddress(input);
  if (address === undefined)
    throw new WrongUsage('--api is missing; name the control plane with --api URL or CPN_API_URL');
  return address;
}
