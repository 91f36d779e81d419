import { setTimeout as sleep } from 'node:timers/promises';
import { Unavailable } from '../errors.ts';
import type { Context } from './context.ts';

/** Looks whether requests can be served; says what is wrong by {@link Unavailable} when not. */
export type CheckReadiness = () => Promise<void>;

/** The database must answer within `deadlineMs`. While it has not answered one look, others wait for that same one. */
export function createReadinessCheck({ db }: Pick<Context, 'db'>, deadlineMs = 2_000): CheckReadiness {
  let looking: Promise<unknown> | undefined;
  const look = () => {
    looking ??= db
      .selectFrom('organizations')
      .select('id')
      .limit(1)
      .execute()
      .finally(() => {
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
