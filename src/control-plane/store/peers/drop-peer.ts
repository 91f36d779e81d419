import { returnAddress } from '../networks.ts';
import { keepGoneName } from '../rules.ts';
import type { Db } from '../tables.ts';
import { insertFormerIdentity } from './enrollments.ts';
import { deletePeer } from './peers.ts';

/** Deletes a peer, voids its token, and returns its address to the range. */
export async function dropPeer(now: Date, transaction: Db, network: number, id: number): Promise<void> {
  const removed = await deletePeer(transaction, network, id);
  if (!removed) return;
  const { name, address, identity_key } = removed;
  await keepGoneName(transaction, network, { id, name });
  if (identity_key !== null) await insertFormerIdentity(transaction, network, identity_key, now.toISOString());
  await returnAddress(transaction, network, address);
}
