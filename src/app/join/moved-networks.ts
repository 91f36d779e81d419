import { findOwnPeer } from '../../core/map/own-peer.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/**
 * Returns the other networks of this host: those joined at the address of a join (`here`), and
 * those joined `elsewhere`. If the control plane of one of the latter has moved to the join's
 * address, the join would create a second peer of this host.
 *
 * The service at that address receives no token of theirs, and takes over no network: it may be an
 * impostor. It receives digests of public keys with addresses, which are useless without the keys,
 * and can refuse the join. Only a user moves a network, with `cpn set --api`.
 */
export async function findOtherNetworks(tools: Pick<Tools, 'store'>, { interface: link, service }: State) {
  const { states } = await tools.store.list();
  const others = states.filter(isJoined).filter((other) => other.interface !== link);
  const isHere = (other: Joined) => other.service.url === service.url;
  return { here: others.filter(isHere), elsewhere: others.filter((other) => !isHere(other)) };
}

/** True if the network lists this host with its key and address from another service's network. */
export function isMovedNetwork({ service, membership }: Joined, other: Joined): boolean {
  if (service.url === other.service.url) return false;
  return findOwnPeer(membership.map, other)?.address === other.membership.peer.address;
}

/** Describes why a join into possibly one of these networks is refused, and the next command. */
export function describePossibleMove(networks: readonly Joined[], { service: { url } }: State): string {
  const known = networks.map(({ interface: link, service }) => `as ${link}, joined at ${service.url}`);
  const [only, ...more] = networks;
  const link = only && more.length === 0 ? only.interface : 'IF';
  const clear = url.startsWith('http:') ? ', and over plain http the token goes in clear text' : '';
  return `${url} lists this host in the network of this key already (${known.join('; or ')}); if the control plane of ${link} moved there, "cpn set ${link} --api ${url}" keeps the key pair and sends it this host's token${clear}`;
}
