import { countDeliveries } from '../store/deliveries.ts';
import { countAnnounced } from '../store/health.ts';
import type { Context } from './context.ts';

/** Reads the metrics that come from the database, for all networks together. */
export async function measure({ db, readTime }: Pick<Context, 'db' | 'readTime'>) {
  const states = await countAnnounced(db);
  const { count, oldest } = await countDeliveries(db);
  const ageMs = oldest === null ? 0 : (await readTime(db)).getTime() - Date.parse(oldest);
  return {
    hosts: { online: states.get('online') ?? 0, offline: states.get('offline') ?? 0 },
    deliveries: { count, ageSeconds: Math.max(0, ageMs / 1000) },
  };
}
