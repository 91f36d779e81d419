import { saveRelay } from '../store/networks.ts';
import { findRelays } from '../store/peers/peer-lists.ts';
import { findPeer } from '../store/peers/peers.ts';
import type { Db } from '../store/tables.ts';
import type { NewEvent } from './append-events.ts';
import { chooseRelay, findObstacle, keepsRules, type RelayCandidate } from './choose-relay.ts';

/** True if `nameRelay` would name another relay. */
export async function isRelayDue(db: Db, network: number, now: Date): Promise<boolean> {
  return (await findChange(db, network, now)) !== null;
}

/**
 * Names another relay in the transaction of a change that takes the current one out of service, or
 * that adds the first candidate. Returns the event, or null without a change.
 *
 * @param events the events of the same transaction; they have the name of a removed relay
 */
export async function nameRelay(
  transaction: Db,
  network: number,
  events: readonly NewEvent[],
  now: Date,
): Promise<NewEvent | null> {
  const change = await findChange(transaction, network, now);
  if (change === null) return null;
  const { range, relay, kept, next } = change;
  const former = relay === null ? undefined : await findPeer(transaction, network, relay);
  await saveRelay(transaction, network, next?.id ?? null);
  const to = next && { id: next.id, name: next.name };
  const removed = events.find(({ peer }) => peer?.id === relay)?.peer;
  const from = relay === null ? null : { id: relay, name: former?.name ?? removed?.name ?? null };
  const obstacle = former === undefined ? 'left the network' : (findObstacle(range, former) ?? describeState(kept));
  const why = from === null ? 'the network had none' : `${from.name ?? `peer ${from.id}`} ${obstacle}`;
  return { type: 'relay.changed', peer: to, details: { from, to, why } };
}

function describeState(kept: Pick<RelayCandidate, 'announced' | 'keepsRules'> | undefined): string {
  if (kept?.keepsRules === false) return 'does not enforce rules';
  return kept?.announced === null ? 'was never online' : 'is offline';
}

async function findChange(db: Db, network: number, now: Date) {
  const found = await findRelays(db, network);
  // The network was deleted in this transaction.
  if (found === undefined) return null;
  const { range, relay, isClosed, connectors } = found;
  const able = connectors
    .filter((peer) => findObstacle(range, peer) === null)
    .map((peer) => ({ ...peer, keepsRules: keepsRules(isClosed, peer) }));
  const id = chooseRelay(relay, able, now.getTime());
  const kept = able.find((peer) => peer.id === relay);
  return id === relay ? null : { range, relay, kept, next: able.find((peer) => peer.id === id) ?? null };
}
