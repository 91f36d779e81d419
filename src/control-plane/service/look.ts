import { nextMoment, type Seen } from '../seen.ts';
import { findNetwork, type StoredNetwork } from '../store/networks.ts';
import type { Context } from './context.ts';
import { createMembers } from './members.ts';

/** What was seen of a network at one look that many share. */
export interface Look {
  /** Undefined when it is no more, or is another organization's. */
  readonly network: (StoredNetwork & Seen) | undefined;
  /** Who is in it, the marks of their tokens by their ids, not before the look; read when the first asks for it. */
  readonly peers: () => Promise<ReadonlyMap<number, number>>;
}

/** Looks at a network of an organization. What was committed before the call is seen. */
export type LookAt = (organization: number, network: number) => Promise<Look>;

/**
 * Looks once for all who ask before the look begins, which is when all have asked who were woken together, or whose requests
 * came together: so a change costs one reading, however many wait for it.
 */
export function createLooks({ db }: Context): LookAt {
  const readMembers = createMembers({ db });
  const coming = new Map<string, Promise<Look>>();
  return (organization, id) => {
    const key = `${organization} ${id}`;
    const joined = coming.get(key);
    if (joined) return joined;
    const mine = nextTurn().then(async () => {
      coming.delete(key);
      const found = await findNetwork(db, organization, id);
      const network = found && { ...found, at: nextMoment() };
      let peers: Promise<ReadonlyMap<number, number>> | undefined;
      const readPeers = async () => (network ? readMembers(id, network) : new Map<number, number>());
      return {
        network,
        peers: () => {
          peers ??= readPeers();
          return peers;
        },
      };
    });
    coming.set(key, mine);
    return mine;
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
