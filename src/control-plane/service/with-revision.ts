import { insertChanges, makeNonce } from '../store/changes.ts';
import { type NetworkFields, reviseNetwork } from '../store/networks.ts';
import { clearFollowing } from '../store/statements.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';
import { appendEvents, type NewEvent } from './append-events.ts';
import type { Context } from './context.ts';
import { nameRelay } from './name-relay.ts';

/**
 * Increments the revision of a network and sets the given fields. It comes before every change in
 * that network. The returned function records changed or removed peers. Without that call, no
 * update is lost: connectors get the whole map instead of a delta.
 */
export type Revise = (network: number, fields?: NetworkFields) => Promise<RecordPeerChange>;
export type RecordPeerChange = (...peers: readonly number[]) => Promise<void>;

/** Stores an event with the change. */
export type AppendEvent = (network: number, event: NewEvent) => void;

export function peerEvent(
  type: NewEvent['type'],
  { id, name }: { readonly id: number; readonly name: string },
  details: NewEvent['details'] = {},
): NewEvent {
  return { type, peer: { id, name }, details };
}

/**
 * Names another relay of each revised network, if the change took the current one out of service.
 * A host that is not online cannot follow it, and so loses its mark as a follower, unless it enrols
 * with this change.
 * After the commit, ends waits for the networks in all processes. May run `work` more than once.
 */
export async function withRevision<Result>(
  context: Context,
  work: (db: Db, revise: Revise, append: AppendEvent) => Promise<Result>,
): Promise<Result> {
  const { db, now, random, notifier, healthNotifier, announce } = context;
  const { result, revised, appended } = await transact(db, async (transaction) => {
    const revised = new Map<number, (peers: readonly (number | null)[]) => Promise<void>>();
    const appended = new Map<number, NewEvent[]>();
    const append = (network: number, event: NewEvent) => {
      appended.set(network, [...(appended.get(network) ?? []), event]);
    };
    const revise: Revise = async (network, fields) => {
      const nonce = makeNonce(random);
      const revision = await reviseNetwork(transaction, network, nonce, fields);
      const remember = async (peers: readonly (number | null)[]) => {
        if (revision !== undefined) await insertChanges(transaction, network, { revision, nonce }, peers);
      };
      revised.set(network, remember);
      if (fields) await remember([null]);
      return (...peers) => remember(peers);
    };
    const result = await work(transaction, revise, append);
    const named: number[] = [];
    for (const network of revised.keys()) {
      const event = await nameRelay(transaction, network, appended.get(network) ?? [], now());
      if (event !== null) {
        append(network, event);
        named.push(network);
      }
      await announce(transaction, network, 'map');
    }
    for (const [network, events] of appended) await appendEvents(context, transaction, network, events);
    // After the events, which lock the network's health before its peers as reports do.
    for (const network of named) {
      const enrolled = appended.get(network)?.find(({ type }) => type === 'peer.enrolled')?.peer?.id ?? null;
      await revised.get(network)?.([null, ...(await clearFollowing(transaction, network, enrolled))]);
    }
    return { result, revised, appended };
  });
  for (const network of revised.keys()) notifier.notify(network);
  for (const network of appended.keys()) healthNotifier.notify(network);
  return result;
}
