import { insertChange, makeNonce } from '../store/changes.ts';
import { type NetworkFields, reviseNetwork } from '../store/networks.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';
import { appendEvents, type NewEvent } from './append-events.ts';
import type { Context } from './context.ts';

/**
 * Increments the revision of a network and sets the given fields. It comes before every change in
 * that network. The returned function records the changed or removed peer. Without that call, no
 * update is lost: connectors get the whole map instead of a delta.
 */
export type Revise = (network: number, fields?: NetworkFields) => Promise<RecordPeerChange>;
export type RecordPeerChange = (peer: number) => Promise<void>;

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
 * After the commit, ends waits for the networks in all processes. May run `work` more than once.
 */
export async function withRevision<Result>(
  context: Context,
  work: (db: Db, revise: Revise, append: AppendEvent) => Promise<Result>,
): Promise<Result> {
  const { db, random, notifier, healthNotifier, announce } = context;
  const { result, revised, appended } = await transact(db, async (transaction) => {
    const revised = new Set<number>();
    const appended = new Map<number, NewEvent[]>();
    const append = (network: number, event: NewEvent) => {
      appended.set(network, [...(appended.get(network) ?? []), event]);
    };
    const revise: Revise = async (network, fields) => {
      const nonce = makeNonce(random);
      const revision = await reviseNetwork(transaction, network, nonce, fields);
      revised.add(network);
      const remember = async (peer: number | null) => {
        if (revision !== undefined) await insertChange(transaction, network, { revision, nonce, peer });
      };
      if (fields) await remember(null);
      return remember;
    };
    const result = await work(transaction, revise, append);
    for (const network of revised) await announce(transaction, network, 'map');
    for (const [network, events] of appended) await appendEvents(context, transaction, network, events);
    return { result, revised, appended };
  });
  for (const network of revised) notifier.notify(network);
  for (const network of appended.keys()) healthNotifier.notify(network);
  return result;
}
