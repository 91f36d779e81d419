import { isIP } from 'node:net';
import { InvalidValue, quote } from '../../core/errors/index.ts';
import type { NamedPeer } from '../../core/explain/check-name.ts';
import type { Peer } from '../../core/map/model.ts';
import { findNamed, type Naming } from '../../core/names/find-named.ts';
import { peerDomain } from '../../core/names/hosts-block.ts';
import { assignLabels } from '../../core/names/hosts-label.ts';
import { isBelow } from '../../core/names/split-dns.ts';
import { type Address, parseAddress } from '../../core/net/cidr.ts';
import { parseHost } from '../../core/net/endpoint.ts';
import type { Joined } from '../../store/state/state.ts';
import { labelNetwork } from '../reconcile/evaluate-network.ts';
import { resolveDeadline } from '../reconcile/names/resolve-names.ts';
import type { Tools } from '../tools.ts';

/** An address, and its origin if it was not given directly. */
export interface FoundAddress {
  /** Null for a name without an address. */
  readonly address: Address | null;
  /** Such as `the address of edge-1 in network office`; null for an address that was given. */
  readonly origin: string | null;
  /** The name that was looked up; null for an address, or the name of a peer in its network. */
  readonly name: LookedUpName | null;
}

/** A DNS name, and what the resolver of this host gives for it. */
export interface LookedUpName {
  /** In lower case, without a trailing dot. */
  readonly name: string;
  readonly answer: readonly Address[];
  /** The peer that has the name; null for a name of another domain. */
  readonly peer: NamedPeer | null;
}

/**
 * Finds the address for a text: an address, the name of a peer in any of the networks, or a DNS
 * name. The first of several addresses is used. The name of a peer below `cpn.internal` has the
 * address of the network's map, whether this host resolves it or not.
 *
 * @throws InvalidValue for any other text, and for a name of one label that does not resolve
 * @throws WrongUsage for a name that several peers have
 */
export async function findAddress(
  tools: Pick<Tools, 'host'>,
  states: readonly Joined[],
  text: string,
): Promise<FoundAddress> {
  if (isIP(text) !== 0) return { address: parseAddress(text), origin: null, name: null };
  const peers = states.flatMap(({ interface: link, membership: { map } }) =>
    map.peers.map(({ id, name, address }) => ({ id, name, address, link, network: map.name })),
  );
  const peer = findNamed(peers, text, naming);
  if (peer) return { address: peer.address, origin: `the address of ${text} in network ${peer.network}`, name: null };
  const name = readName(text);
  const answer = await tools.host.resolve(name, resolveDeadline);
  const named = findPeerByName(states, name);
  const lookedUp = { name, answer, peer: named };
  if (named) {
    const origin = `the address of ${named.peer} in network ${named.network}`;
    return { address: named.address, origin, name: lookedUp };
  }
  const [address, ...more] = answer;
  if (address === undefined) {
    if (!name.includes('.')) throw notFound(text);
    return { address: null, origin: null, name: lookedUp };
  }
  const rest = more.length === 0 ? '' : `; it has ${more.join(', ')} too`;
  return { address, origin: `the address that the resolver gives for ${text}${rest}`, name: lookedUp };
}

/** Finds the peer for a name such as `nas.office.cpn.internal`; null for another name. */
function findPeerByName(states: readonly Joined[], name: string): NamedPeer | null {
  if (!isBelow(name, peerDomain)) return null;
  for (const state of states) {
    const { map } = state.membership;
    const domain = `${labelNetwork(state, states)}.${peerDomain}`;
    if (!isBelow(name, domain)) continue;
    const labelled = assignLabels(map.peers, state.labels).find(({ labels }) =>
      labels.some((label) => name === `${label}.${domain}`),
    );
    const peer = map.peers.find(({ id }) => id === labelled?.peer);
    if (peer) return { peer: peer.name, network: map.name, link: state.interface, address: peer.address };
  }
  return null;
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
