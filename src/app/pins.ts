import type { NetworkMap } from '../core/map/model.ts';
import { type Options, resolvesNames } from '../core/map/options.ts';
import { ownKeys } from '../core/map/own-peer.ts';
import { applyPins, type PinContext, reapplyPins } from '../core/pins/pins.ts';
import type { Joined, Membership, State } from '../store/state/state.ts';
import { isJoined } from './select.ts';

/** The owner of a state's pins, and the rule for a peer that differs from its pin. */
export function holderOf({ membership, options, keyPair, rotation }: Joined): PinContext {
  return { rule: options.pin, self: { id: membership.peer.id, keys: ownKeys({ keyPair, rotation }) } };
}

/** Returns the state of a host after a successful enrolment: every peer is pinned as received. */
export function withMembership(state: State, membership: Membership): Joined {
  const joined: Joined = { ...state, membership };
  return { ...joined, ...recast(joined, applyPins(membership.map, [], holderOf(joined))) };
}

/** A new pin rule applies immediately. */
export function withOptions(state: State, options: Options): State {
  // Turning names off drops all labels: this is how a user resets them.
  const changed: State = { ...state, options, labels: resolvesNames(options) ? state.labels : [] };
  if (!isJoined(changed) || options.pin === state.options.pin) return changed;
  const held = { map: changed.membership.map, pins: changed.pins };
  return { ...changed, ...recast(changed, reapplyPins(held, holderOf(changed))) };
}

function recast({ membership }: Joined, { map, pins }: { map: NetworkMap; pins: Joined['pins'] }) {
  return { membership: { ...membership, map }, pins };
}
