import { WrongUsage } from '../core/errors.ts';
import type { Joined } from '../store/state.ts';
import { forget, removeFromService } from './leave.ts';
import { isJoined } from './select.ts';
import type { Tools } from './tools.ts';

/**
 * Undoes an enrolment that cannot stand beside those of before: a second one in the same network, or one whose address would hide
 * a peer of another network. Nothing of it stays.
 *
 * @throws WrongUsage when it was undone
 */
export async function refuseConflict(tools: Tools, state: Joined): Promise<void> {
  const { states } = await tools.store.list();
  const others = states.filter(isJoined).filter((other) => other.interface !== state.interface);
  const conflict = findTwin(state, others) ?? findHidden(state, others);
  if (conflict === null) return;
  await removeFromService(tools, state);
  await forget(tools, state);
  throw new WrongUsage(conflict);
}

/** A host is in a network once. */
function findTwin({ service, membership: { map } }: Joined, others: readonly Joined[]): string | null {
  const twin = others.find((other) => service.url === other.service.url && other.membership.map.id === map.id);
  if (!twin) return null;
  return `this host is in network ${map.name} already, as ${twin.interface}; "cpn leave ${twin.interface}" first`;
}

/** An address that this host has itself leads nowhere else: who bears it in another network would be out of reach. */
function findHidden({ membership: { map, peer } }: Joined, others: readonly Joined[]): string | null {
  for (const { interface: link, keyPair, membership } of others) {
    const hidden = membership.map.peers.find(
      ({ address, publicKey }) => address === peer.address && publicKey !== keyPair.publicKey,
    );
    if (!hidden) continue;
    const there = `peer ${hidden.name} of network ${membership.map.name} (${link})`;
    return `network ${map.name} gave this host ${peer.address}, which is the address of ${there}, and would hide it; join again with another key for another address, or "cpn leave ${link}" first`;
  }
  return null;
}
