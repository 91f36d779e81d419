import type { Db } from '../../../src/control-plane/store/tables.ts';
import type { Member } from '../service/push-messages.ts';

/** The tags of a network: each peer has one of a role and one of a site. */
export const roles = Array.from({ length: 50 }, (_, number) => `role-${number}`);
export const sites = Array.from({ length: 40 }, (_, number) => `site-${number}`);

/** Gives peers their tags. Their hosts enforce rules. */
export async function fillTags(db: Db, members: readonly Member[]): Promise<void> {
  const now = new Date().toISOString();
  const stated = { follows_relay: 1, enforces_rules: 1 };
  await db.transaction().execute(async (transaction) => {
    for (const [place, { network, peer }] of members.entries()) {
      const tags = [roles[place % roles.length], sites[Math.floor(place / roles.length) % sites.length]];
      const fields = { tags: JSON.stringify(tags), ...stated };
      await transaction.updateTable('peers').set(fields).where('id', '=', peer).execute();
      // Without the same here, the control plane corrects the map.
      const seen = { last_seen: now, announced: 'online' as const, ...stated };
      await transaction
        .insertInto('peer_health')
        .values({ peer_id: peer, network_id: network, ...seen })
        .execute();
    }
  });
}
