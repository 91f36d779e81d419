import type { ActualPeer } from '../host-state/actual.ts';
import type { NetworkMap, Peer } from '../map/model.ts';

/**
 * Whether a peer has the network secret of this host. The only evidence is what the service
 * reports.
 */
export type SecretMatch = 'shared' | 'missing_here' | 'missing_there' | 'different' | 'unknown';

/** Why no handshake with some peers completes, and how to fix it. */
export interface SecretMismatch {
  readonly detail: string;
  readonly remedy: string;
}

/** The host from which the secrets of a network are compared. */
export interface SecretView {
  readonly map: NetworkMap;
  /** The tag of this host's own secret; null if it has none. */
  readonly tag: string | null;
  /** WireGuard's observation of the peers; empty without an interface. */
  readonly observed: readonly Pick<ActualPeer, 'publicKey' | 'latestHandshake' | 'rxBytes'>[];
}

const noHandshake = 'no handshake comes about';

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
  const having = (match: SecretMatch) => others.filter((peer) => compareSecret(peer, view) === match);
  const unanswered = listsTags(view.map) ? [] : others.filter((peer) => hasUnansweredHandshakes(peer, view));
  return [
    ...describeMismatch(having('missing_here'), {
      detail: ({ names, have }) => `${names} ${have} a network secret and this host has none: ${noHandshake}`,
      remedy: 'type here: cpn set --network-secret-file PATH, with the file that they have',
    }),
    ...describeMismatch(having('missing_there'), {
      detail: ({ names, have }) => `${names} ${have} no network secret and this host has one: ${noHandshake}`,
      remedy: 'type there: cpn set --network-secret-file PATH, with the file that this host has',
    }),
    ...describeMismatch(having('different'), {
      detail: ({ names, have }) => `${names} ${have} another network secret than this host: ${noHandshake}`,
      remedy: 'type on every host: cpn set --network-secret-file PATH, with the same file',
    }),
    ...describeMismatch(unanswered, {
      detail: ({ names }) =>
        `${names} began handshakes of which none was completed: most likely a network secret on one side only, or two that differ`,
      remedy:
        'type on every host: cpn set --network-secret-file PATH, with the same file; or with "none" in place of PATH',
    }),
  ];
}

/**
 * Finds the peers with which a change of this host's secret ends handshakes. If the service lists
 * no tags, these are all peers.
 *
 * @param before the tag of the secret in use; null for none
 * @param after the tag of the next secret
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

export function describeSecretMismatch({ detail, remedy }: SecretMismatch): string {
  return `${detail}; ${remedy}`;
}

/** A service that lists identities also lists tags: both came with the same version. */
function listsTags({ peers }: NetworkMap): boolean {
  return peers.some(({ secretTag, identity }) => secretTag !== undefined || identity !== undefined);
}

function hasUnansweredHandshakes({ publicKey }: Peer, { observed }: SecretView): boolean {
  const peer = observed.find((each) => each.publicKey === publicKey);
  return peer !== undefined && peer.latestHandshake === null && peer.rxBytes > 0;
}

interface Words {
  detail(who: { readonly names: string; readonly have: 'has' | 'have' }): string;
  readonly remedy: string;
}

/** The number of names that keep a line readable. A count stands for the others. */
const mostNames = 5;

function describeMismatch(peers: readonly Peer[], { detail, remedy }: Words): SecretMismatch[] {
  if (peers.length === 0) return [];
  const named = peers.slice(0, mostNames).map(({ name }) => name);
  const rest = peers.length > mostNames ? [`${peers.length - mostNames} more`] : [];
  const names = [...named, ...rest].join(', ');
  return [{ detail: detail({ names, have: peers.length === 1 ? 'has' : 'have' }), remedy }];
}
