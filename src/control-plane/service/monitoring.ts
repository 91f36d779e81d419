import { setTimeout as sleep } from 'node:timers/promises';
import { Unavailable } from '../errors.ts';
import { countBehind } from '../store/audit-receivers.ts';
import { writeCheck } from '../store/database.ts';
import { countDeliveries } from '../store/deliveries.ts';
import { countAnnounced } from '../store/health.ts';
import type { Context } from './context.ts';

/** A successful write counts this long: anyone may call the check, and each write is synced. */
const writeGrainMs = 1_000;

type Checked = Pick<Context, 'db' | 'now' | 'isListening'>;

/**
 * Within `deadlineMs` the database must reply and accept a write, and changes by other processes
 * must arrive, else Unavailable is thrown. Concurrent checks share one query.
 */
export function createReadinessCheck({ db, now, isListening }: Checked, deadlineMs = 2_000) {
  let pending: Promise<unknown> | undefined;
  let written = Number.NEGATIVE_INFINITY;
  const readAndWrite = async () => {
    await db.selectFrom('organizations').select('id').limit(1).execute();
    if (performance.now() - written < writeGrainMs) return;
    await writeCheck(db, now().toISOString());
    written = performance.now();
  };
  const check = () => {
    pending ??= readAndWrite().finally(() => {
      pending = undefined;
    });
    return pending;
  };
  return async (): Promise<void> => {
    const given = new AbortController();
    const late = sleep(deadlineMs, false, { signal: given.signal }).catch(() => false);
    const answered = check().then(
      () => true,
      (error) => {
        throw error instanceof Unavailable ? error : new Unavailable('the database does not answer', 1, error);
      },
    );
    const inTime = await Promise.race([answered, late]).finally(() => given.abort());
    if (!inTime) throw new Unavailable(`the database did not answer within ${deadlineMs / 1000} s`);
    if (!isListening()) throw new Unavailable('listener lost: changes of other processes do not arrive');
  };
}

export async function measure(
  { db, readTime }: Pick<Context, 'db' | 'readTime'>,
  receivers: readonly { readonly name: string; readonly label: string }[],
) {
  const states = await countAnnounced(db);
  const { count, oldest } = await countDeliveries(db);
  const ageMs = oldest === null ? 0 : (await readTime(db)).getTime() - Date.parse(oldest);
  const audit = [];
  for (const { name, label } of receivers) audit.push({ label, count: await countBehind(db, name) });
  return {
    audit,
    hosts: { online: states.get('online') ?? 0, offline: states.get('offline') ?? 0 },
    deliveries: { count, ageSeconds: Math.max(0, ageMs / 1000) },
  };
}
