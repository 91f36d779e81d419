import { nameOnce } from '../../../core/names/hosts-label.ts';
import { toLabel } from '../../../core/names/label.ts';
import type { Db } from '../tables.ts';

/**
 * For the migration that made names unique in a network. The oldest of peers with one label keeps
 * its name; the others get a suffix, which the audit log records.
 */
export async function labelPeers(db: Db): Promise<void> {
  const rows = await db
    .selectFrom('peers')
    .innerJoin('networks', 'networks.id', 'peers.network_id')
    .select(['peers.id', 'peers.name', 'peers.network_id as network', 'networks.organization_id as organization'])
    .orderBy('peers.id')
    .execute();
  const at = new Date().toISOString();
  for (const [network, peers] of Map.groupBy(rows, (row) => row.network)) {
    const taken = new Set<string>();
    // Collect the kept names first, so that no suffixed name collides with another peer's.
    const keeps = peers.filter(({ name }) => !taken.has(toLabel(name)) && taken.add(toLabel(name)));
    const kept = new Set(keeps.map(({ id }) => id));
    for (const { id, name, organization } of peers) {
      const isKept = kept.has(id) || toLabel(name) === '';
      const given = isKept ? name : nameOnce(name, (label) => taken.has(label));
      taken.add(toLabel(given));
      await db
        .updateTable('peers')
        .set({ name: given, label: toLabel(given) || null })
        .where('id', '=', id)
        .execute();
      if (isKept) continue;
      await db
        .insertInto('audit_entries')
        .values({
          organization_id: organization,
          at,
          actor_kind: 'system',
          actor_id: null,
          actor_name: null,
          action: 'peer.update',
          target_kind: 'peer',
          target_id: id,
          target_name: given,
          address: null,
          details: JSON.stringify({ network, name: given, name_before: name }),
        })
        .execute();
    }
  }
}
