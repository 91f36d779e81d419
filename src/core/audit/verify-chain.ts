import { type ChainedEntry, type ChainPlace, chainStart, digestEntry, hashLink } from './chain.ts';

export interface ChainLink extends ChainPlace {
  readonly digest: string;
  /** Null if retention removed it. */
  readonly entry: ChainedEntry | null;
}

/** An entry that another system received, with the digest of what it received. */
export interface ExportedLink extends ChainPlace, Pick<ChainedEntry, 'id' | 'at' | 'action'> {
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

/** What retention removed up to a link: entries before an instant, or entries with an action. */
interface Statement {
  readonly through: number;
  readonly before: string | null;
  readonly action: string | null;
}

/** Null for a statement about the future, or about itself. */
function readStatement({ seq, entry }: ChainLink): Statement | null {
  if (entry?.action !== pruneAction) return null;
  const { through, before, action } = entry.details;
  if (typeof through !== 'number' || through >= seq) return null;
  if (typeof before === 'string') return before < entry.at ? { through, before, action: null } : null;
  return typeof action === 'string' ? { through, before: null, action } : null;
}

const isCovered = ({ seq, at, action }: ExportedLink) => {
  return (each: Statement) => seq <= each.through && (each.before === null ? action === each.action : at < each.before);
};

/**
 * Verifies the links of an organization, which come in the order of their numbers. The first link
 * is the anchor: retention removed all before it.
 *
 * @param exported entries that the links must contain
 */
export function createVerifier(exported: readonly ExportedLink[] = []) {
  const awaited = Map.groupBy(exported, ({ seq }) => seq);
  const removed: ExportedLink[] = [];
  const statements: Statement[] = [];
  let misfit: Misfit | null = null;
  let [verified, pruned, compared] = [0, 0, 0];
  let first: number | null = null;
  let last: ChainPlace | null = null;
  let prunedThrough = 0;

  const compare = (link: ChainLink): string | null => {
    for (const other of awaited.get(link.seq) ?? []) {
      compared += 1;
      if (other.hash !== link.hash) return `it or an earlier entry differs from the exported entry ${other.id}`;
      if (other.digest !== link.digest) return `it differs from the exported entry ${other.id}`;
      if (link.entry === null) removed.push(other);
    }
    awaited.delete(link.seq);
    return null;
  };

  const findProblem = (link: ChainLink): string | null => {
    const { seq, hash, digest, entry } = link;
    if (last !== null && seq !== last.seq + 1) return `the links from ${last.seq + 1} to ${seq - 1} are missing`;
    const isAnchor = last === null && seq !== 1;
    const isIntact = isAnchor || hashLink(last?.hash ?? chainStart, seq, digest) === hash;
    if (!isIntact || (entry !== null && digestEntry(entry) !== digest)) return 'it was changed';
    return compare(link);
  };

  /** The exported entries that neither retention nor the end of the chain explains. */
  const findMissing = (): Misfit | null => {
    const rest = [...awaited.values()].flat().toSorted((one, other) => one.seq - other.seq);
    const older = rest.filter(({ seq }) => first !== null && seq < first);
    removed.push(...older);
    const lost = removed.find((each) => !statements.some(isCovered(each)));
    if (lost !== undefined) {
      const problem = `the exported entry ${lost.id} is missing, and no entry ${pruneAction} covers it`;
      return { seq: lost.seq, entry: lost.id, problem };
    }
    const beyond = rest[older.length];
    if (beyond === undefined) return null;
    const problem = `it is missing: the chain ends at ${last?.seq ?? 0}, before the exported entry ${beyond.id}`;
    return { seq: beyond.seq, entry: beyond.id, problem };
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
      const statement = readStatement(link);
      if (statement !== null) statements.push(statement);
      return true;
    },
    /** The verdict after the last link. */
    finish(): ChainVerdict {
      if (misfit === null && statements.every(({ through }) => through < prunedThrough) && prunedThrough > 0) {
        const problem = `it is missing, and no entry ${pruneAction} covers it`;
        misfit = { seq: prunedThrough, entry: null, problem };
      }
      misfit ??= findMissing();
      const older = exported.filter(({ seq }) => first !== null && seq < first).length;
      return { misfit, verified, pruned, first, last: last?.seq ?? null, compared, older };
    },
  };
}
