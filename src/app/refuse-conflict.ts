import type { Actual } from '../core/actual.ts';
import { AddressRefused, WrongUsage } from '../core/errors.ts';
import { refuseOwn } from '../core/guard.ts';
import { ownKeys } from '../core/own-peer.ts';
import { reachOutside } from '../core/reach-outside.ts';
import type { Joined, State } from '../store/state.ts';
import { gatherGround } from './ground.ts';
import { forget, removeFromService } from './leave.ts';
import { isJoined } from './select.ts';
import type { Tools } from './tools.ts';

/**
 * Undoes an enrolment that cannot stand beside those of before: a second one in the same network, or one whose address would hide
 * a peer of another network. Nothing of it stays.
 *
 * @param seen this host, to whose names `state` has the addresses
 * @param former the membership in whose place this one comes, with which it cannot conflict
 * @throws WrongUsage when it was undone, and AddressRefused when it was because of an address that no host could do with
 */
export async function refuseConflict(tools: Tools, state: Joined, seen: Actual, former: Joined | null): Promise<void> {
  const { states: all } = await tools.store.list();
  const states = all.filter((other) => other.interface !== former?.interface);
  const others = states.filter(isJoined).filter((other) => other.interface !== state.interface);
  const conflict = findTwin(state, others) ?? findHidden(state, others);
  const harm = await findHarm(tools, state, seen, states);
  if (conflict === null && harm === null) return;
  // What failed is the step that is under way, not the way back from it.
  await removeFromService({ ...tools, progress: () => {} }, state);
  await forget(tools, state);
  throw conflict === null ? harm : new WrongUsage(conflict);
}

/** Only an address that is new here can do harm: one that this host had may be its own resolver's. */
async function findHarm(
  tools: Tools,
  state: Joined,
  seen: Actual,
  states: readonly State[],
): Promise<AddressRefused | null> {
  const { resolved, membership } = state;
  const { map, peer } = membership;
  const endpoints = map.peers.flatMap(({ endpoint }) => reachOutside(endpoint, { map, resolved })?.host ?? []);
  const ground = await gatherGround(tools, state, seen, states, { saved: null });
  const reason = refuseOwn(peer.address, ground, endpoints);
  return reason === null ? null : new AddressRefused(map.name, peer.address, reason);
}

/** A host is in a network once. */
function findTwin(state: Joined, others: readonly Joined[]): string | null {
  const twin = others.find((other) => isTwin(state, other));
  return twin ? describeTwin(twin) : null;
}

export function isTwin({ service, membership: { map } }: Joined, other: Joined): boolean {
  return service.url === other.service.url && other.membership.map.id === map.id;
}

export function describeTwin(twin: Joined): string {
  const { map } = twin.membership;
  return `this host is in network ${map.name} already, as ${twin.interface}; "cpn leave ${twin.interface}" first`;
}

/** An address that this host has itself leads nowhere else: who bears it in another network would be out of reach. */
function findHidden({ membership: { map, peer } }: Joined, others: readonly Joined[]): string | null {
  for (const { interface: link, membership, ...keys } of others) {
    const own = ownKeys(keys);
    const hidden = membership.map.peers.find(
      ({ address, publicKey }) => address === peer.address && !own.includes(publicKey),
    );
    if (!hidden) continue;
    const there = `peer ${hidden.name} of network ${membership.map.name} (${link})`;
    return `network ${map.name} gave this host ${peer.address}, which is the address of ${there}, and would hide it; join again with another key for another address, or "cpn leave ${link}" first`;
  }
  return null;
}
