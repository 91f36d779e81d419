import { chooseRelay, findObstacle, keepsRules } from '../service/choose-relay.ts';
import type { Context } from '../service/context.ts';
import { isRelayDue } from '../service/name-relay.ts';
import { withRevision } from '../service/with-revision.ts';
import { lockOrganizationOf } from '../store/networks.ts';
import { applyStatements, listChangedStatements, statedFields } from '../store/statements.ts';
import type { Observation } from './observe.ts';

/** A revision marks at most this many hosts. The next evaluation marks the rest. */
const mostHosts = 500;

/** True if the map lacks a change of the relay, or of what hosts state in their reports. */
export function isRevisionDue({ network: { range, relay }, isClosed, peers }: Observation, now: Date): boolean {
  const able = peers.flatMap(({ peer, health }) =>
    findObstacle(range, peer) === null
      ? { ...peer, announced: health?.announced ?? null, keepsRules: keepsRules(isClosed, peer) }
      : [],
  );
  if (chooseRelay(relay, able, now.getTime()) !== relay) return true;
  return peers.some(
    ({ peer, health }) => health !== undefined && statedFields.some((field) => health[field] !== peer[field]),
  );
}

/**
 * Applies the last events and reports to the map, with one revision: names another relay if the
 * current one is dead, and marks the hosts that use the relay or enforce rules. Of several
 * processes, only the first to lock the network finds a change.
 */
export async function reviseRelay(context: Context, network: number): Promise<void> {
  await withRevision(context, async (transaction, revise) => {
    if ((await lockOrganizationOf(transaction, network)) === undefined) return;
    const changed = await listChangedStatements(transaction, network, mostHosts);
    if (changed.length === 0 && !(await isRelayDue(transaction, network, context.now()))) return;
    const recordChange = await revise(network);
    await applyStatements(transaction, network, changed);
    await recordChange(...changed);
  });
}
