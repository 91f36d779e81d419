import { deleteEntriesBefore, keepNewestOf } from '../store/audit.ts';
import type { Context } from './context.ts';

const dayMs = 24 * 3600 * 1000;
/** Actions that any caller, or any user, can repeat without end: their entries must not fill the disk. */
const repeatable = ['login.refused', 'login', 'logout', 'token.create', 'token.revoke'] as const;
const mostOfEach = 100_000;

/** Forgets what of the audit is older than so many days. */
export async function pruneAudit({ db, now }: Pick<Context, 'db' | 'now'>, days: number): Promise<void> {
  await deleteEntriesBefore(db, new Date(now().getTime() - days * dayMs).toISOString());
  for (const action of repeatable) await keepNewestOf(db, action, mostOfEach);
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
