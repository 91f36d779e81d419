import { diffConfig, type SectionDiff } from '../../core/wg-quick/diff.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Evaluation } from './evaluate-network.ts';

/** What makes the changes of a pass readable for people; JSON output has none of it. */
export interface Explanation {
  /** Names of the peers of the map before and after, by public key. */
  readonly names: ReadonlyMap<string, string>;
  /** How the wg-quick file differed, without secrets; empty where there was none. */
  readonly fileDiff: readonly SectionDiff[];
}

export function explainChanges({ membership }: Joined, planned: Evaluation | null): Explanation {
  const peers = [...membership.map.peers, ...(planned?.state.membership.map.peers ?? [])];
  return {
    names: new Map(peers.map(({ publicKey, name }) => [publicKey, name])),
    fileDiff: planned?.savedText ? diffConfig(planned.savedText, planned.config) : [],
  };
}
