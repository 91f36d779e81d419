import { type ChainedEntry, type ChainPlace, chainStart, digestEntry, hashLink } from './chain.ts';

export interface ChainLink extends ChainPlace {
  readonly digest: string;
  /** Null if retention removed it. */
  readonly entry: ChainedEntry | null;
}

/** An entry that another system received, with the digest of what it received. */
export interface ExportedLink extends ChainPlace {
  readonly id: ChainedEntry['id'];
  readonly digest: string;
}

/** The first entry that does not fit. */
export interface Misfit {
  readonly seq: number;
  /** The id of the entry; null if it is missing. */
  readonly entry: ChainedEntry['id'];
  readonly problem: string;
}

export interface ChainVerdict {
  readonly misfit: Misfit | null;
  /** The entries whose content was compared with the chain. */
  readonly verified: number;
  /** The entries that retention removed, within the links. */
  readonly pruned: number;
  /** The first and last link; null for an empty chain. */
  readonly first: number | null;
  readonly last: number | null;
  /** The exported entries that were compared, and those older than the first link. */
  readonly compared: number;
  readonly older: number;
}

/** The action of the entry that states what retention removed, up to the link `through`. */
export const pruneAction = 'audit.prune';

/**
 * Verifies the links of an organization, which come in the order of their numbers. The first link
 * is the anchor: retention removed all before it.
 *
 * @param exported entries that the links must contain
 */
export function createVerifier(exported: readonly ExportedLink[] = []) {
  const awaited = new Map(exported.map((each) => [each.seq, each]));
  let misfit: Misfit | null = null;
  let [verified, pruned, compared, older] = [0, 0, 0, 0];
  let first: number | null = null;
  let last: ChainPlace | null = null;
  let [prunedThrough, statedThrough] = [0, 0];

  const compare = (link: ChainLink): string | null => {
    const other = awaited.get(link.seq);
    if (other === undefined) return null;
    compared += 1;
    awaited.delete(link.seq);
    if (other.hash !== link.hash) return `it or an earlier entry differs from the exported entry ${other.id}`;
    return other.digest === link.digest ? null : `it differs from the exported entry ${other.id}`;
  };

  const findProblem = (link: ChainLink): string | null => {
    const { seq, hash, digest, entry } = link;
    if (last !== null && seq !== last.seq + 1) return `the links from ${last.seq + 1} to ${seq - 1} are missing`;
    const isAnchor = last === null && seq !== 1;
    const isIntact = isAnchor || hashLink(last?.hash ?? chainStart, seq, digest) === hash;
    if (!isIntact || (entry !== null && digestEntry(entry) !== digest)) return 'it was changed';
    return compare(link);
  };

  return {
    /** Takes the next link. False after a misfit. */
    take(link: ChainLink): boolean {
      if (misfit !== null) return false;
      const problem = findProblem(link);
      if (problem !== null) {
        misfit = { seq: link.seq, entry: link.entry?.id ?? null, problem };
        return false;
      }
      const { seq, hash, entry } = link;
      if (last === null) prunedThrough = seq - 1;
      first ??= seq;
      last = { seq, hash };
      if (entry === null) [pruned, prunedThrough] = [pruned + 1, seq];
      else verified += 1;
      const through = entry?.action === pruneAction ? entry.details.through : null;
      if (typeof through === 'number') statedThrough = Math.max(statedThrough, through);
      return true;
    },
    /** The verdict after the last link. */
    finish(): ChainVerdict {
      if (misfit === null && prunedThrough > statedThrough) {
        const problem = `it is missing, and no entry ${pruneAction} covers it`;
        misfit = { seq: prunedThrough, entry: null, problem };
      }
      const rest = [...awaited.values()].toSorted((one, other) => one.seq - other.seq);
      older = rest.filter(({ seq }) => first !== null && seq < first).length;
      const [beyond] = rest.slice(older);
      if (misfit === null && beyond !== undefined) {
        const problem = `it is missing: the chain ends at ${last?.seq ?? 0}, before the exported entry ${beyond.id}`;
        misfit = { seq: beyond.seq, entry: beyond.id, problem };
      }
      return { misfit, verified, pruned, first, last: last?.seq ?? null, compared, older };
    },
  };
}
