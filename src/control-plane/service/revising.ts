import { insertChange } from '../store/changes.ts';
import { type NetworkFields, reviseNetwork } from '../store/networks.ts';
import { makeNonce } from '../store/revision.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';
import type { Context } from './context.ts';

/**
 * Counts the revision of a network up and sets the fields given; comes before every change in that network. What it gives is
 * called with the id of the peer that the revision is about, one that is removed too. Nobody is told less when that is
 * forgotten: the whole map goes out then, instead of what changed.
 */
export type Revise = (network: number, fields?: NetworkFields) => Promise<Touch>;
export type Touch = (peer: number) => Promise<void>;

/**
 * Works in one transaction, and once it is committed wakes who waits for the networks that it revised, here and in other processes.
 * The work may be done several times over, as {@link transact} says.
 */
export async function revising<Result>(
  { db, random, waiters, announce }: Context,
  work: (db: Db, revise: Revise) => Promise<Result>,
): Promise<Result> {
  const { result, revised } = await transact(db, async (transaction) => {
    const revised = new Set<number>();
    const result = await work(transaction, async (network, fields) => {
      const nonce = makeNonce(random);
      const revision = await reviseNetwork(transaction, network, nonce, fields);
      revised.add(network);
      const remember = async (peer: number | null) => {
        if (revision !== undefined) await insertChange(transaction, network, { revision, nonce, peer });
      };
      if (fields) await remember(null);
      return remember;
    });
    for (const network of revised) await announce(transaction, network);
    return { result, revised };
  });
  for (const network of revised) waiters.wake(network);
  return result;
}
