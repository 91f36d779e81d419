import {
  clampInstances,
  findCloned,
  type Instance,
  type Instances,
  observeInstance,
} from '../../core/health/verdict/instances.ts';
import { appendEvents } from '../service/append-events.ts';
import type { Context } from '../service/context.ts';
import { makeNonce } from '../store/changes.ts';
import { listInstances, reviseHealth, savePeerHealth } from '../store/health.ts';
import { listPeersAmong } from '../store/peers/peer-lists.ts';
import { transact } from '../store/transact.ts';

/** The starts of a peer's daemon that made requests here, in the order of the requests. */
export interface PeerInstances {
  readonly peer: number;
  readonly network: number;
  readonly instances: readonly Instance[];
}

/**
 * Compares daemon starts with the stored ones of all processes, and stores new ones; a host that
 * keeps running causes no write. Emits an event when a peer begins to be cloned.
 *
 * @param now the current time by the clock of `found`
 * @returns since when each peer is cloned, by that clock, or null
 */
export async function observeInstances(
  context: Context,
  found: readonly PeerInstances[],
  now: number,
): Promise<ReadonlyMap<number, number | null>> {
  if (found.length === 0) return new Map();
  const { db, readTime } = context;
  const known = await listInstances(
    db,
    found.map(({ peer }) => peer),
  );
  // Instants are stored by the clock of the database.
  const ahead = (await readTime(db)).getTime() - now;
  const cloned = new Map<number, number | null>();
  for (const each of found) {
    const requests = each.instances.map((instance) => ({ ...instance, since: instance.since + ahead }));
    const stored = known.get(each.peer) ?? null;
    const before = stored && clampInstances(stored, now + ahead);
    const { instances, begins } = addAll(before, requests);
    if (begins) await stateClone(context, each, requests, now + ahead);
    else if (instances !== stored) await savePeerHealth(db, each.peer, { instances: JSON.stringify(instances) });
    const since = findCloned(instances, now + ahead);
    cloned.set(each.peer, since === null ? null : since - ahead);
  }
  return cloned;
}

function addAll(known: Instances | null, requests: readonly Instance[]) {
  let instances = known;
  let begins = false;
  for (const request of requests) {
    const update = observeInstance(instances, request);
    ({ instances } = update);
    begins ||= update.begins;
  }
  return { instances, begins };
}

/** Emits the event once, even if several processes detect it: the first locks the health row. */
async function stateClone(
  context: Context,
  { peer, network }: PeerInstances,
  requests: readonly Instance[],
  at: number,
): Promise<void> {
  const { db, random, healthNotifier } = context;
  await transact(db, async (transaction) => {
    await reviseHealth(transaction, network, makeNonce(random));
    const stored = (await listInstances(transaction, [peer])).get(peer) ?? null;
    const { instances, begins } = addAll(stored && clampInstances(stored, at), requests);
    await savePeerHealth(transaction, peer, { instances: JSON.stringify(instances) });
    const [listed] = await listPeersAmong(transaction, network, { ids: [peer], withOwnRoutes: false });
    if (!begins || listed === undefined || instances === null) return;
    const among = [instances.current, ...instances.previous].flatMap(({ address }) => address ?? []);
    const addresses = [...new Set(among)];
    const details = addresses.length > 0 ? { addresses } : {};
    await appendEvents(context, transaction, network, [
      { type: 'peer.cloned', peer: { id: peer, name: listed.name }, details },
    ]);
  });
  healthNotifier.notify(network);
}
