import { setTimeout as sleep } from 'node:timers/promises';
import { Unavailable } from '../errors.ts';
import { writeCheck } from '../store/write-checks.ts';
import type { Context } from './context.ts';

/** Looks whether requests can be served; says what is wrong by {@link Unavailable} when not. */
export type CheckReadiness = () => Promise<void>;

/** How long a write that succeeded stands for another: everybody may ask, and each write is synced to the disk. */
const writeGrainMs = 1_000;

/**
 * The database must answer, and take a write, within `deadlineMs`. While it has not answered one look, others wait for that same one.
 */
export function createReadinessCheck({ db, now }: Pick<Context, 'db' | 'now'>, deadlineMs = 2_000): CheckReadiness {
  let looking: Promise<unknown> | undefined;
  let written = Number.NEGATIVE_INFINITY;
  const readAndWrite = async () => {
    await db.selectFrom('organizations').select('id').limit(1).execute();
    if (performance.now() - written < writeGrainMs) return;
    await writeCheck(db, now().toISOString());
    written = performance.now();
  };
  const look = () => {
    looking ??= readAndWrite().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  return async () => {
    const given = new AbortController();
    const late = sleep(deadlineMs, false, { signal: given.signal }).catch(() => false);
    const answered = look().then(
      () => true,
      (error) => {
        throw error instanceof Unavailable ? error : new Unavailable('the database does not answer', 1, error);
      },
    );
    const inTime = await Promise.race([answered, late]).finally(() => given.abort());
    if (!inTime) throw new Unavailable(`the database did not answer within ${deadlineMs / 1000} s`);
  };
}
