import { isIP } from 'node:net';
import { InvalidValue } from '../core/errors/index.ts';
import { type Address, parseAddress } from '../core/net/cidr.ts';
import { parseHost } from '../core/net/endpoint.ts';
import type { Joined } from '../store/state/state.ts';
import { resolveDeadline } from './reconcile/resolve-names.ts';
import type { Tools } from './tools.ts';

/** An address, and how it was come by where it was not given itself. */
export interface FoundAddress {
  readonly address: Address;
  /** Such as `the address of edge-1 in network office`; null for an address that was given. */
  readonly origin: string | null;
}

/**
 * The address that a person means: an address, the name of a peer in one of the networks, or a name that this host's resolver
 * knows, of whose addresses the first is taken.
 *
 * @throws InvalidValue for what is none of these, and for a name that several peers have
 */
export async function findAddress(tools: Tools, states: readonly Joined[], text: string): Promise<FoundAddress> {
  if (isIP(text) !== 0) return { address: parseAddress(text), origin: null };
  const [named, ...others] = states.flatMap(({ membership: { map } }) =>
    map.peers.filter((peer) => peer.name === text).map(({ address }) => ({ address, network: map.name })),
  );
  if (named && others.length > 0) {
    const places = [named, ...others].map(({ address, network }) => `${address} in ${network}`).join(', ');
    throw new InvalidValue('address', text, `is the name of several peers (${places})`, 'give one of the addresses');
  }
  if (named) return { address: named.address, origin: `the address of ${text} in network ${named.network}` };
  const [address, ...more] = await tools.host.resolve(readName(text), resolveDeadline);
  if (address === undefined) throw notFound(text);
  const rest = more.length === 0 ? '' : `; it has ${more.join(', ')} too`;
  return { address, origin: `the address that the resolver gives for ${text}${rest}` };
}

function readName(text: string): string {
  try {
    return parseHost(text);
  } catch {
    throw notFound(text);
  }
}

function notFound(text: string): InvalidValue {
  const rule = 'is no IP address, no peer of a network of this host, and no name that its resolver knows';
  return new InvalidValue('address', text, rule, 'write it like 10.77.0.5');
}
