import type { NetworkMap, SkippedPeer } from './model.ts';
import type { OwnHost } from './own-peer.ts';
import { ownKeys } from './own-peer.ts';

type SkippedFacts = Pick<SkippedPeer, 'id' | 'name' | 'reason'>;

export function describeSkipped({ id, name, reason }: SkippedFacts): string {
  const known = [name, id === null ? null : `(${id})`].filter((part) => part !== null).join(' ');
  return `peer ${known || 'without name and id'} is skipped: ${reason}`;
}

/** The most sentences; a last one has the number of further peers. */
export const mostDescribed = 10;

export function describeMoreSkipped(more: number): string {
  return `${more} more peers are skipped, because they cannot be used`;
}

/** Describes the peers of a map that cannot be used. */
export function describeAllSkipped(skipped: readonly SkippedFacts[] = []): string[] {
  const more = skipped.length - mostDescribed;
  return [...skipped.slice(0, mostDescribed).map(describeSkipped), ...(more > 0 ? [describeMoreSkipped(more)] : [])];
}

/** Finds the skipped peer that is this host, or has this host's id, its address or a key of it. */
export function findOwnSkipped(map: NetworkMap, self: OwnHost): SkippedPeer | undefined {
  const keys: readonly string[] = ownKeys(self);
  const { id, address } = self.membership?.peer ?? {};
  return map.skipped?.find(
    (peer) =>
      (peer.id !== null && peer.id === id) ||
      (peer.address !== null && peer.address === address) ||
      (peer.publicKey !== null && keys.includes(peer.publicKey)),
  );
}
