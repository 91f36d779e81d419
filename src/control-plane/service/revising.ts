import { type NetworkFields, reviseNetwork } from '../store/networks.ts';
import type { Db } from '../store/tables.ts';
import type { Context } from './context.ts';

/** Counts the revision of a network up and sets the fields given; comes before every change in that network. */
export type Revise = (network: number, fields?: NetworkFields) => Promise<void>;

/** Works in one transaction, and once it is committed wakes who waits for the networks that it revised. */
export async function revising<Result>(
  { db, waiters }: Context,
  work: (db: Db, revise: Revise) => Promise<Result>,
): Promise<Result> {
  const revised = new Set<number>();
  const result = await db.transaction().execute((transaction) =>
    work(transaction, async (network, fields) => {
      await reviseNetwork(transaction, network, fields);
      revised.add(network);
    }),
  );
  for (const network of revised) waiters.wake(network);
  return result;
}
