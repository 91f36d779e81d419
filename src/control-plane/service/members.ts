import { listChanges } from '../store/changes.ts';
import { listPeerIds, listPeerIdsAmong } from '../store/peers.ts';
import { createTurns } from '../turns.ts';
import type { Context } from './context.ts';

/** Who is in a network, at a revision or later. */
interface Members {
  readonly revision: number;
  readonly ids: Set<number>;
}

/** Who is in a network now, where `revision` was seen of it: nobody is among them who was removed in that revision or before. */
export type ReadMembers = (network: number, revision: number) => Promise<ReadonlySet<number>>;

/** Ids of the networks that were asked for last; an id takes some 40 bytes. */
const keptIds = 1_000_000;

/** Reads all who are in a network once, and from then on only of those whom a change was about whether they are. */
export function createMembers({ db }: Pick<Context, 'db'>, most = keptIds): ReadMembers {
  const kept = new Map<number, Members>();
  const takeTurn = createTurns();
  let count = 0;
  const forget = (network: number, members: Members) => {
    if (kept.delete(network)) count -= members.ids.size + 1;
  };
  const keep = (network: number, members: Members) => {
    kept.set(network, members);
    count += members.ids.size + 1;
    for (const [oldest, others] of kept) {
      if (count <= most) return;
      forget(oldest, others);
    }
  };
  const bringUpToDate = async (network: number, revision: number, known: Members | undefined): Promise<Members> => {
    const changes = known ? await listChanges(db, network, known.revision) : [];
    const remembered = new Set(changes.map((change) => change.revision));
    const latest = Math.max(revision, ...remembered);
    // A revision of which nothing is remembered may be about anybody.
    if (!known || remembered.size !== latest - known.revision) {
      return { revision, ids: new Set(await listPeerIds(db, network)) };
    }
    const changed = new Set(changes.flatMap(({ peer }) => peer ?? []));
    const there = new Set(changed.size === 0 ? [] : await listPeerIdsAmong(db, network, [...changed]));
    for (const id of changed) {
      if (there.has(id)) known.ids.add(id);
      else known.ids.delete(id);
    }
    return { revision: latest, ids: known.ids };
  };
  return (network, revision) =>
    takeTurn(String(network), async () => {
      const known = kept.get(network);
      if (known && known.revision >= revision) return known.ids;
      // Until it is right again nobody has it: what fails half-way is read anew.
      if (known) forget(network, known);
      const members = await bringUpToDate(network, revision, known);
      keep(network, members);
      return members.ids;
    });
}
