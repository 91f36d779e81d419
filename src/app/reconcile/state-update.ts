import type { PublicKey } from '../../core/crypto/keys.ts';
import type { PathMtu } from '../../core/health/path-mtu.ts';
import { isConfirmationDue } from '../../core/map/map-age.ts';
import { identifyMap } from '../../core/map/map-validation.ts';
import { comparePeerIds, type NetworkMap, type PeerFailure, type PeerId } from '../../core/map/model.ts';
import { resolvesNames } from '../../core/map/options.ts';
import { findOwnPeer, ownKeys } from '../../core/map/own-peer.ts';
import { keepLabels } from '../../core/names/hosts-label.ts';
import { type Resolved, sameResolved } from '../../core/names/resolved-names.ts';
import type { Address } from '../../core/net/cidr.ts';
import { isCheckedByListener } from '../../core/net/service-address.ts';
import { applyPins, completePins } from '../../core/pins/pins.ts';
import type { Joined } from '../../store/state/state.ts';
import { holderOf } from '../pins.ts';
import { withDeletion, withoutDeletion } from './deleted-network.ts';
import { namesOf } from './names/resolve-names.ts';

/** Received or observed changes of a network that are not on disk yet; null without a change. */
export interface StateUpdate {
  /** As received, before pins and checks. */
  readonly map: NetworkMap | null;
  /** True if the service sent the map twice, as a map without most peers requires. */
  readonly isRepeated?: boolean;
  /** Peers that the service states as removed. */
  readonly removed?: readonly PeerId[];
  /** When the service confirmed this or the saved map, in milliseconds since 1970 by its clock. */
  readonly confirmedAt?: number;
  /** When the service stated, for the second time, that the network was deleted, in ISO 8601. */
  readonly deletedAt?: string;
  /** Set if the service has a network again that it had stated as deleted. */
  readonly isBack?: true;
  /** The user of the program that replied on loopback without TLS. */
  readonly listener?: number;
  /** The public key of this host at the time of the request. */
  readonly requestedAs?: PublicKey | null;
  readonly resolved: Resolved | null;
  /** The peers to avoid. */
  readonly failed?: readonly PeerFailure[] | null;
  /** The measurement of paths; null for no limit, undefined for nothing new. */
  readonly pathMtu?: PathMtu | null | undefined;
  /** Addresses of names at which peers were silent. They are not saved. */
  readonly silent?: readonly Address[] | undefined;
}

export const noUpdate: StateUpdate = { map: null, resolved: null };

/** Returns the updated state; `state` itself if nothing differs, or if it was refused before. */
export function applyUpdate(before: Joined, update: StateUpdate): Joined {
  const { map, requestedAs = null, resolved, failed = null, pathMtu, confirmedAt, listener } = update;
  if (update.deletedAt !== undefined) return withDeletion(before, update.deletedAt);
  const state = update.isBack ? withoutDeletion(before) : before;
  // A map from before this host's rotation does not list the new key.
  const isOtherKey = requestedAs !== null && !ownKeys(state).includes(requestedAs);
  const isOutdated = map === null || (isOtherKey && findOwnPeer(map, state) === undefined);
  const listed = isOutdated ? state : withMap(state, map);
  const checked = withListener(withConfirmation(withFailures(listed, failed), confirmedAt), listener);
  const isMeasured = pathMtu !== undefined && JSON.stringify(pathMtu) !== JSON.stringify(state.pathMtu);
  const mapped = isMeasured ? { ...checked, pathMtu } : checked;
  if (resolved === null) return mapped;
  const names = new Set(namesOf(mapped));
  const entries = Object.entries({ ...mapped.resolved, ...resolved }).filter(([name]) => names.has(name));
  const merged = Object.fromEntries(entries);
  return sameResolved(merged, mapped.resolved) ? mapped : { ...mapped, resolved: merged };
}

function withConfirmation(state: Joined, at: number | undefined): Joined {
  if (state.membership.map.maxAge === undefined && state.confirmed !== undefined) {
    const { confirmed: _, ...others } = state;
    return others;
  }
  return at !== undefined && isConfirmationDue(state, at) ? { ...state, confirmed: Math.round(at) } : state;
}

/** Records the first listener if the state has none: it is old, or none was visible at the join. */
function withListener(state: Joined, listener: number | undefined): Joined {
  const { service } = state;
  if (listener === undefined || service.listener !== undefined || !isCheckedByListener(service.url)) return state;
  return { ...state, service: { ...service, listener } };
}

/** Drops peers that the map no longer lists. */
function withFailures(state: Joined, failures: readonly PeerFailure[] | null): Joined {
  const candidates = failures ?? state.failed;
  if (candidates.length === 0 && state.failed.length === 0) return state;
  const listed = new Set(state.membership.map.peers.map((peer) => peer.id));
  const failed = candidates
    .filter(({ peer }) => listed.has(peer))
    .toSorted((one, other) => comparePeerIds(one.peer, other.peer));
  return JSON.stringify(failed) === JSON.stringify(state.failed) ? state : { ...state, failed };
}

/** A host that joined before nonces existed has the same revision without a nonce. */
function withNonce(state: Joined, { nonce }: NetworkMap): Joined {
  const { membership } = state;
  if (nonce === undefined || nonce === membership.map.nonce) return state;
  return { ...state, membership: { ...membership, map: { ...membership.map, nonce } } };
}

function withMap(state: Joined, received: NetworkMap): Joined {
  const { membership } = state;
  const { map: known } = membership;
  if (received.revision !== null && received.revision === known.revision) return withNonce(state, received);
  const holder = holderOf(state);
  const { map, pins } = applyPins(received, completePins({ map: known, pins: state.pins }, holder), holder);
  const name = identifyMap(map);
  if (name === state.refused) return state;
  if (name !== identifyMap(known)) {
    const labels = resolvesNames(state.options) ? keepLabels(state.labels, { known, listed: received, used: map }) : [];
    return { ...state, membership: { ...membership, map }, pins, labels, refused: null };
  }
  return pins === state.pins ? state : { ...state, pins };
}
