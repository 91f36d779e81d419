import { type CloneWarning, describeAlternating, describeOwnClone } from '../../core/health/describe-clone.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';

/** That this host, or a peer, may be on two hosts. */
export function findCloneWarnings(
  { interface: link, membership }: Joined,
  { sync, alternating }: { readonly sync: Pick<Notes['sync'], 'clonedSince'> } & Pick<Notes, 'alternating'>,
): readonly CloneWarning[] {
  const own = sync.clonedSince === undefined ? [] : [describeOwnClone(link, sync.clonedSince)];
  const peers = membership.map.peers.flatMap(({ publicKey, name }) => {
    const endpoints = Object.hasOwn(alternating, publicKey) ? alternating[publicKey] : undefined;
    return endpoints === undefined ? [] : [describeAlternating(name, endpoints)];
  });
  return [...own, ...peers];
}
