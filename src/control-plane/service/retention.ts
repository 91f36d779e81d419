import { deleteEntriesBefore, keepNewestOf } from '../store/audit.ts';
import type { Context } from './context.ts';

const dayMs = 24 * 3600 * 1000;
/** Whoever guesses passwords shall not fill the disk: anybody can make an entry of this kind. */
const maxRefusedLogins = 100_000;

/** Forgets what of the audit is older than so many days. */
export async function pruneAudit({ db, now }: Pick<Context, 'db' | 'now'>, days: number): Promise<void> {
  await deleteEntriesBefore(db, new Date(now().getTime() - days * dayMs).toISOString());
  await keepNewestOf(db, 'login.refused', maxRefusedLogins);
}

/** Prunes the audit now, and once a day until it is told to stop. A failure is `onFailure`'s, and the next day's to mend. */
export function pruneAuditDaily(
  context: Pick<Context, 'db' | 'now'>,
  days: number,
  onFailure: (error: unknown) => void,
): { stop(): Promise<void> } {
  let pruning: Promise<void> = Promise.resolve();
  const prune = () => {
    pruning = pruneAudit(context, days).catch(onFailure);
  };
  prune();
  const timer = setInterval(prune, dayMs);
  timer.unref();
  return {
    stop: () => {
      clearInterval(timer);
      return pruning;
    },
  };
}
