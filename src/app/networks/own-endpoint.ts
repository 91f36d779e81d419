import { WrongUsage } from '../../core/errors/index.ts';
import type { Options } from '../../core/map/options.ts';
import { hostPrefix, tryParseAddress } from '../../core/net/cidr.ts';
import { type Endpoint, unusableAddress } from '../../core/net/endpoint.ts';
import { dialledHost } from '../../core/net/proxy.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { isPrivate } from '../../core/routing/public-prefixes.ts';
import type { Tools } from '../tools.ts';

/** WireGuard's usual port, for `--endpoint auto` without `--listen-port`. */
const defaultPort = 51820;

interface EndpointChoice {
  readonly endpoint: Endpoint | 'auto' | null;
  readonly service: ServiceAddress;
  readonly options: Pick<Options, 'listenPort'>;
}

/**
 * Returns the endpoint at which peers dial this host. `auto` is the address from which it reaches
 * the control plane or the proxy to it: for hosts with a public address, not for those behind NAT.
 * A private address towards a public control plane is refused.
 */
export async function findOwnEndpoint(
  tools: Pick<Tools, 'host'>,
  { endpoint, service, options }: EndpointChoice,
): Promise<Endpoint | null> {
  if (endpoint !== 'auto') return endpoint;
  const name = dialledHost(service);
  const [destination] = [tryParseAddress(name) ?? (await tools.host.resolve(name, 3_000))].flat();
  const source = destination === undefined ? null : await tools.host.sourceAddress(destination);
  if (source === null || unusableAddress(source) !== null) {
    throw new WrongUsage(
      `--endpoint auto found no address of this host that peers can dial (towards ${name}: ${source ?? 'no route'}); name one with --endpoint HOST:PORT, or leave it out behind NAT`,
    );
  }
  if (isPrivate(hostPrefix(source)) && destination !== undefined && !isPrivate(hostPrefix(destination))) {
    throw new WrongUsage(
      `--endpoint auto found ${source}, a private address, while ${name} is a public one: peers elsewhere cannot dial it; name a public one with --endpoint HOST:PORT, or leave it out behind NAT`,
    );
  }
  return { host: source, port: options.listenPort ?? defaultPort };
}
