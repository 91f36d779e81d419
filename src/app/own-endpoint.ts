import { isIP } from 'node:net';
import { parseAddress } from '../core/cidr.ts';
import { type Endpoint, unusableAddress } from '../core/endpoint.ts';
import { WrongUsage } from '../core/errors.ts';
import type { JoinRequest } from './begin-join.ts';
import type { Tools } from './tools.ts';

/** WireGuard's customary port, for `--endpoint auto` without `--listen-port`. */
const customaryPort = 51820;

/**
 * The endpoint under which this host is to be dialled. `auto` is the address from which it reaches the control plane;
 * it is for hosts whose own address is the public one, not for those behind NAT.
 */
export async function findOwnEndpoint(
  tools: Tools,
  { endpoint, service, options }: Pick<JoinRequest, 'endpoint' | 'service' | 'options'>,
): Promise<Endpoint | null> {
  if (endpoint !== 'auto') return endpoint;
  const name = new URL(service.url).hostname.replace(/^\[|\]$/g, '');
  const [destination] = isIP(name) ? [parseAddress(name)] : await tools.host.resolve(name, 3_000);
  const source = destination === undefined ? null : await tools.host.sourceAddress(destination);
  if (source === null || unusableAddress(source) !== null) {
    throw new WrongUsage(
      `--endpoint auto found no address of this host that peers can dial (towards ${name}: ${source ?? 'no route'}); name one with --endpoint HOST:PORT, or leave it out behind NAT`,
    );
  }
  return { host: source, port: options.listenPort ?? customaryPort };
}
