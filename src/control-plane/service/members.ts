import { isFresh, nextMoment, type Seen } from '../seen.ts';
import { listChanges } from '../store/changes.ts';
import { listPeerMarks, listPeerMarksAmong } from '../store/peers.ts';
import type { Revision } from '../store/revision.ts';
import { createTurns } from '../turns.ts';
import type { Context } from './context.ts';

/** Who is in a network, at a revision or later. */
interface Members {
  readonly revision: Revision;
  /** The moment before they were read. */
  readonly read: number;
  readonly marks: Map<number, number>;
}

/**
 * The peers that are in a network now, the marks of their tokens by their ids, where a revision was seen of it. A peer that was removed
 * in that revision or before is not among them.
 */
export type ReadMembers = (network: number, seen: Seen) => Promise<ReadonlyMap<number, number>>;

/** Peers of the networks that were asked for last; one takes some 60 bytes. */
const keptIds = 1_000_000;

/** Reads all who are in a network once, and from then on only of those whom a change was about whether they are. */
export function createMembers({ db }: Pick<Context, 'db'>, most = keptIds): ReadMembers {
  const kept = new Map<number, Members>();
  const takeTurn = createTurns();
  let count = 0;
  const forget = (network: number, members: Members) => {
    if (kept.delete(network)) count -= members.marks.size + 1;
  };
  const keep = (network: number, members: Members) => {
    kept.set(network, members);
    count += members.marks.size + 1;
    for (const [oldest, others] of kept) {
      if (count <= most) return;
      forget(oldest, others);
    }
  };
  const bringUpToDate = async (network: number, seen: Seen, known: Members | undefined): Promise<Members> => {
    const read = nextMoment();
    const changes = known ? await listChanges(db, network, known.revision) : null;
    const remembered = new Map(changes?.map((change) => [change.revision, change]));
    const latest = Math.max(seen.revision, ...remembered.keys());
    // A revision of which nothing is remembered may be about anybody.
    if (!known || changes === null || remembered.size !== latest - known.revision.revision) {
      return { revision: seen, read, marks: new Map(await listPeerMarks(db, network)) };
    }
    const changed = new Set(changes.flatMap(({ peer }) => peer ?? []));
    const there = changed.size === 0 ? [] : await listPeerMarksAmong(db, network, [...changed]);
    for (const id of changed) known.marks.delete(id);
    for (const [id, mark] of there) known.marks.set(id, mark);
    return { revision: remembered.get(latest) ?? known.revision, read, marks: known.marks };
  };
  return (network, seen) =>
    takeTurn(String(network), async () => {
      const known = kept.get(network);
      if (known && isFresh(known, seen)) return known.marks;
      // Until it is right again nobody has it: what fails half-way is read anew.
      if (known) forget(network, known);
      const members = await bringUpToDate(network, seen, known);
      keep(network, members);
      return members.marks;
    });
}
