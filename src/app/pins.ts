import type { NetworkMap, Options } from '../core/model.ts';
import { ownKeys } from '../core/own-peer.ts';
import { type Holder, holdPins, recastPins } from '../core/pins.ts';
import type { Joined, Membership, State } from '../store/state.ts';
import { isJoined } from './select.ts';

/** Whose pins those of a state are, and what becomes of a peer that is told otherwise than they say. */
export function holderOf({ membership, options, keyPair, rotation }: Joined): Holder {
  return { rule: options.pin, self: { id: membership.peer.id, keys: ownKeys({ keyPair, rotation }) } };
}

/** The state of a host whose enrolment was answered: every peer that it is told of is pinned as told. */
export function withMembership(state: State, membership: Membership): Joined {
  const joined: Joined = { ...state, membership };
  return { ...joined, ...recast(joined, holdPins(membership.map, [], holderOf(joined))) };
}

/** The state with other options; another rule for pins holds at once for what is told already. */
export function withOptions(state: State, options: Options): State {
  // Without names in the hosts file none is held: that is how a person lets go of those that peers had.
  const changed: State = { ...state, options, labels: options.hosts ? state.labels : [] };
  if (!isJoined(changed) || options.pin === state.options.pin) return changed;
  const held = { map: changed.membership.map, pins: changed.pins };
  return { ...changed, ...recast(changed, recastPins(held, holderOf(changed))) };
}

function recast({ membership }: Joined, { map, pins }: { map: NetworkMap; pins: Joined['pins'] }) {
  return { membership: { ...membership, map }, pins };
}
