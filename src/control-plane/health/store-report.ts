import type { RefusedConnection, Report } from '../../contract/health.ts';
import { identifyRefused } from '../../core/rules/refused.ts';
import type { Caller, PeerCaller } from '../domain/caller.ts';
import { Forbidden } from '../errors.ts';
import { appendEvents, type NewEvent } from '../service/append-events.ts';
import type { Context } from '../service/context.ts';
import { requireNetwork } from '../service/networks.ts';
import { type AttemptCounts, createAttemptCounts } from '../service/peer-change-limit.ts';
import { requireAuthor } from '../service/require-author.ts';
import { makeNonce } from '../store/changes.ts';
import { findPeerHealth, reviseHealth, savePeerHealth } from '../store/health.ts';
import { listPeersAmong, listPeersAt } from '../store/peers/peer-lists.ts';
import type { StoredPeer } from '../store/peers/peers.ts';
import { type Statements, saveStatements, statedFields } from '../store/statements.ts';
import type { Db } from '../store/tables.ts';
import { findTraffic, saveTraffic } from '../store/traffic.ts';
import { transact } from '../store/transact.ts';
import { type MergedReport, mergeReport, readReport } from './merge-report.ts';
import { addTraffic, formatTraffic, parseTraffic, sumRates } from './traffic-history.ts';

/** Merges a report into earlier ones of this host. True if it may change verdicts or the map. */
export async function storeReport(
  context: Context,
  caller: Caller,
  network: number,
  peer: number,
  report: Report,
): Promise<boolean> {
  const { db, random, readTime, announce, healthNotifier } = context;
  const { range, routes } = await requireNetwork(db, caller, network);
  if (caller.kind !== 'peer' || caller.peerId !== peer) throw new Forbidden('a peer may report only for itself');
  const named = [
    ...(report.paths ?? []).flatMap(({ peer, via }) => [peer, via ?? peer]),
    ...(report.routes ?? []).flatMap(({ connector }) => connector ?? []),
    ...(report.pin_mismatches ?? []),
    ...(report.probes ?? []).map(({ peer }) => peer),
  ];
  const counts = createAttemptCounts();
  const isNewer = await transact(db, async (transaction) => {
    counts.restart();
    await requireAuthor(context, transaction, caller);
    await reviseHealth(transaction, network, makeNonce(random));
    const stored = await findPeerHealth(transaction, peer);
    const ids = [...new Set([peer, ...named])];
    const present = await listPeersAmong(transaction, network, { ids, withOwnRoutes: false });
    const reported_at = (await readTime(transaction)).toISOString();
    const scope = {
      sender: peer,
      at: reported_at,
      peers: new Set(present.map(({ id }) => id)),
      prefixes: new Set<string>([range, ...routes]),
    };
    const before = readReport(stored?.report ?? null);
    const merged = mergeReport(before, report, scope);
    await savePeerHealth(transaction, peer, { report: JSON.stringify(merged), reported_at });
    const listed = present.find(({ id }) => id === peer);
    const earlier = stored ?? listed;
    // Without room a statement does not count, so that a host cannot change the map at will.
    const accept = (field: (typeof statedFields)[number]): 0 | 1 => {
      if (report[field] !== true) return 0;
      if (earlier?.[field] === 1) return 1;
      if (!context.reportEventLimit.hasRoom(peer)) return 0;
      counts.add(context.reportEventLimit.take(peer, true));
      return 1;
    };
    const stated: Statements = { follows_relay: accept('follows_relay'), enforces_rules: accept('enforces_rules') };
    const differs = (from: Pick<StoredPeer, (typeof statedFields)[number]> | undefined) =>
      statedFields.some((field) => stated[field] !== from?.[field]);
    if (differs(earlier)) await saveStatements(transaction, peer, stated);
    if (context.keepsPresence) await addToHistory(transaction, peer, before, stored?.reported_at ?? null, reported_at);
    const changes = findEvents(before, merged, caller, present).filter(() => {
      const isWithin = context.reportEventLimit.hasRoom(peer);
      counts.add(context.reportEventLimit.take(peer, true));
      return isWithin;
    });
    const refusals = await findRefusals(context, transaction, caller, report.refused ?? [], counts);
    const events = [...changes, ...refusals];
    if (events.length > 0) await appendEvents(context, transaction, network, events);
    else await announce(transaction, network, 'health');
    return decisive(before) !== decisive(merged) || differs(listed);
  });
  healthNotifier.notify(network);
  return isNewer;
}

/** Returns the events of refused connections, as far as the limits allow. */
async function findRefusals(
  { refusalLimit, refusedConnectionLimit }: Pick<Context, 'refusalLimit' | 'refusedConnectionLimit'>,
  db: Db,
  { peerId: id, name, networkId }: PeerCaller,
  refused: readonly RefusedConnection[],
  counts: AttemptCounts,
): Promise<NewEvent[]> {
  const found = refused.filter((connection) => {
    const key = `${id} ${identifyRefused(connection)}`;
    if (!refusalLimit.hasRoom(id) || !refusedConnectionLimit.hasRoom(key)) return false;
    counts.add(refusalLimit.take(id, true));
    counts.add(refusedConnectionLimit.take(key, true));
    return true;
  });
  if (found.length === 0) return [];
  const peers = await listPeersAt(db, networkId, [...new Set(found.flatMap(({ from, to }) => [from, to]))]);
  const nameEnd = (address: string) => {
    const end = peers.find((peer) => peer.address === address);
    return end === undefined ? address : { id: end.id, name: end.name };
  };
  return found.map(({ from, to, protocol, port }) => ({
    type: 'access.refused',
    peer: { id, name },
    details: { from: nameEnd(from), to: nameEnd(to), protocol, port },
  }));
}

/** Adds the traffic since the last report, whose rates applied until now. */
async function addToHistory(
  db: Db,
  peer: number,
  { paths }: MergedReport,
  from: string | null,
  to: string,
): Promise<void> {
  if (from === null) return;
  const rates = sumRates(paths);
  // An idle host writes nothing.
  if (rates.received + rates.sent === 0) return;
  const stored = await findTraffic(db, peer);
  const history = addTraffic(stored === null ? null : parseTraffic(stored), rates, Date.parse(from), Date.parse(to));
  if (history !== null) await saveTraffic(db, peer, formatTraffic(history), to);
}

/** The parts of a report that determine verdicts. */
function decisive({ paths, routes, probes }: MergedReport): string {
  return JSON.stringify([paths.map(({ peer, path }) => `${peer} ${path}`).sort(), routes, probes]);
}

/** The events that a report causes: changes from the earlier reports. */
function findEvents(
  before: MergedReport,
  merged: MergedReport,
  { peerId: id, name }: PeerCaller,
  present: readonly Pick<StoredPeer, 'id' | 'name'>[],
): NewEvent[] {
  const peer = { id, name };
  const mismatches = merged.pin_mismatches.filter((each) => !before.pin_mismatches.includes(each));
  const events = mismatches.flatMap((mismatch): NewEvent[] => {
    const other = present.find((each) => each.id === mismatch);
    if (!other) return [];
    return [{ type: 'pin.mismatch', peer: { id: other.id, name: other.name }, details: { reported_by: peer } }];
  });
  const { problem } = merged;
  if (before.problem === null && problem !== null)
    events.push({ type: 'reconcile.failing', peer, details: { problem } });
  if (before.problem !== null && problem === null) events.push({ type: 'reconcile.recovered', peer });
  return events;
}
