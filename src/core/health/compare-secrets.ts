import type { ActualPeer } from '../host-state/actual.ts';
import type { NetworkMap, Peer } from '../map/model.ts';

/** Whether a peer has this host's network secret. The service's report is the only evidence. */
export type SecretMatch = 'shared' | 'missing_here' | 'missing_there' | 'different' | 'unknown';

/** Why no handshake with some peers completes. */
export interface SecretMismatch {
  /** `unanswered` comes from WireGuard's counters, if the service lists no tags. */
  readonly difference: 'missing_here' | 'missing_there' | 'different' | 'unanswered';
  /** The names of the peers. */
  readonly peers: readonly string[];
}

export interface SecretView {
  readonly map: NetworkMap;
  /** The tag of this host's own secret; null if it has none. */
  readonly tag: string | null;
  /** WireGuard's observation of the peers; empty without an interface. */
  readonly observed: readonly Pick<ActualPeer, 'publicKey' | 'latestHandshake' | 'rxBytes'>[];
}

/** Compares this host's secret with a peer's; null if neither is known to have one. */
export function compareSecret(peer: Peer, { map, tag }: Pick<SecretView, 'map' | 'tag'>): SecretMatch | null {
  const theirs = peer.secretTag ?? null;
  if (theirs !== null && tag !== null) return theirs === tag ? 'shared' : 'different';
  if (theirs !== null) return 'missing_here';
  if (tag === null) return null;
  return listsTags(map) ? 'missing_there' : 'unknown';
}

/**
 * Finds the peers with which no handshake completes because the secrets differ. It compares tags,
 * or WireGuard's counters if the service lists no tags. The kernel counts the bytes of an incoming
 * initiation, but the response is valid only with the same preshared key (whitepaper, section 5.4).
 */
export function findSecretMismatches(view: SecretView, others: readonly Peer[]): SecretMismatch[] {
  const differences = ['missing_here', 'missing_there', 'different', 'unanswered'] as const;
  const differ = (difference: SecretMismatch['difference']) => (peer: Peer) =>
    difference === 'unanswered'
      ? !listsTags(view.map) && hasUnansweredHandshakes(peer, view)
      : compareSecret(peer, view) === difference;
  return differences
    .map((difference) => ({ difference, peers: others.filter(differ(difference)).map(({ name }) => name) }))
    .filter(({ peers }) => peers.length > 0);
}

/**
 * Finds the peers that lose handshakes if the secret's tag changes from `before` to `after`; null
 * for none. If the service lists no tags, these are all peers.
 */
export function findPeersCutOff(
  map: NetworkMap,
  before: string | null,
  after: string | null,
  others: readonly Peer[],
): readonly Peer[] {
  if (before === after) return [];
  if (!listsTags(map)) return others;
  const isCompatible = (peer: Peer, tag: string | null) => (peer.secretTag ?? null) === tag;
  return others.filter((peer) => isCompatible(peer, before) && !isCompatible(peer, after));
}

/** A service that lists identities also lists tags: both came with the same version. */
function listsTags({ peers }: NetworkMap): boolean {
  return peers.some(({ secretTag, identity }) => secretTag !== undefined || identity !== undefined);
}

function hasUnansweredHandshakes({ publicKey }: Peer, { observed }: SecretView): boolean {
  const peer = observed.find((each) => each.publicKey === publicKey);
  return peer !== undefined && peer.latestHandshake === null && peer.rxBytes > 0;
}
