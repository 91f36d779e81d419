import type { Report } from '../../contract/health.ts';
import type { Caller } from '../domain/caller.ts';
import { Forbidden } from '../errors.ts';
import type { Context } from '../service/context.ts';
import { requireNetwork } from '../service/networks.ts';
import { makeNonce } from '../store/changes.ts';
import { findPeerHealth, reviseHealth, savePeerHealth } from '../store/health.ts';
import { listTokenMarks } from '../store/peer-lists.ts';
import { transact } from '../store/transact.ts';
import { mergeReport, readReport } from './merge-report.ts';

/** Merges a report of a host into its earlier ones. It changes nothing but what is stored of this host. */
export async function storeReport(
  context: Context,
  caller: Caller,
  network: number,
  peer: number,
  report: Report,
): Promise<void> {
  const { db, random, readTime, announce, healthNotifier } = context;
  const { range, routes } = await requireNetwork(db, caller, network);
  if (caller.kind !== 'peer' || caller.peerId !== peer) throw new Forbidden('a peer may report only for itself');
  context.reportLimit.take(peer, false);
  const named = [
    ...(report.paths ?? []).flatMap(({ peer, via }) => [peer, via ?? peer]),
    ...(report.routes ?? []).flatMap(({ connector }) => connector ?? []),
    ...(report.pin_mismatches ?? []),
  ];
  await transact(db, async (transaction) => {
    await reviseHealth(transaction, network, makeNonce(random));
    const stored = await findPeerHealth(transaction, peer);
    const present = named.length === 0 ? [] : await listTokenMarks(transaction, network, [...new Set(named)]);
    const scope = {
      sender: peer,
      peers: new Set(present.map(([id]) => id)),
      prefixes: new Set<string>([range, ...routes]),
    };
    const merged = mergeReport(readReport(stored?.report ?? null), report, scope);
    const reported_at = (await readTime(transaction)).toISOString();
    await savePeerHealth(transaction, peer, { report: JSON.stringify(merged), reported_at });
    await announce(transaction, network, 'health');
  });
  healthNotifier.notify(network);
}
