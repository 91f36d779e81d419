import { isIP } from 'node:net';
import { InvalidValue, quote } from '../../core/errors/index.ts';
import type { Peer } from '../../core/map/model.ts';
import { findNamed, type Naming } from '../../core/names/find-named.ts';
import { type Address, parseAddress } from '../../core/net/cidr.ts';
import { parseHost } from '../../core/net/endpoint.ts';
import type { Joined } from '../../store/state/state.ts';
import { resolveDeadline } from '../reconcile/names/resolve-names.ts';
import type { Tools } from '../tools.ts';

/** An address, and its origin if it was not given directly. */
export interface FoundAddress {
  readonly address: Address;
  /** Such as `the address of edge-1 in network office`; null for an address that was given. */
  readonly origin: string | null;
}

/**
 * Finds the address for a text: an address, the name of a peer in any of the networks, or a name
 * that this host's resolver resolves. The first of several addresses is used.
 *
 * @throws InvalidValue for any other text
 * @throws WrongUsage for a name that several peers have
 */
export async function findAddress(
  tools: Pick<Tools, 'host'>,
  states: readonly Joined[],
  text: string,
): Promise<FoundAddress> {
  if (isIP(text) !== 0) return { address: parseAddress(text), origin: null };
  const peers = states.flatMap(({ interface: link, membership: { map } }) =>
    map.peers.map(({ id, name, address }) => ({ id, name, address, link, network: map.name })),
  );
  const peer = findNamed(peers, text, naming);
  if (peer) return { address: peer.address, origin: `the address of ${text} in network ${peer.network}` };
  const [address, ...more] = await tools.host.resolve(readName(text), resolveDeadline);
  if (address === undefined) throw notFound(text);
  const rest = more.length === 0 ? '' : `; it has ${more.join(', ')} too`;
  return { address, origin: `the address that the resolver gives for ${text}${rest}` };
}

const naming: Naming<Pick<Peer, 'id' | 'name' | 'address'> & { readonly link: string }> = {
  what: 'peer',
  names: ({ name }) => [name],
  describe: ({ id, name, address, link }) => `${quote(name)} (${id}, ${address}) in ${link}`,
  remedy: 'give one of the addresses',
};

function readName(text: string): string {
  try {
    return parseHost(text);
  } catch {
    throw notFound(text);
  }
}

function notFound(text: string): InvalidValue {
  const rule = 'is neither an IP address, nor a peer of a joined network, nor a name that resolves on this host';
  return new InvalidValue('address', text, rule, 'write it like 10.77.0.5');
}
