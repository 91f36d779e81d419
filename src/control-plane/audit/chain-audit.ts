import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { failureFields } from '../errors.ts';
import { chainEntries } from '../service/audit-chain.ts';
import type { Context } from '../service/context.ts';
import { listUnchained } from '../store/audit-chain.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';

const usualPollMs = 1_000;
/** Entries in one transaction. SQLite makes no other change during it. */
const atOnce = 200;
/** Lets other changes come between two transactions. */
const pauseMs = 20;

/** Chains all entries that were committed before. */
export async function chainAll(db: Db, signal: AbortSignal): Promise<void> {
  for (const organization of await listUnchained(db)) {
    let count: number;
    do {
      count = await transact(db, (transaction) => chainEntries(transaction, organization, atOnce));
      if (count === atOnce) await sleep(pauseMs);
    } while (count === atOnce && !signal.aborted);
  }
}

/**
 * Chains the audit entries of all processes from now until `stop`. Several processes may do it:
 * each locks the chain that it extends.
 */
export function startChaining(
  { db }: Pick<Context, 'db'>,
  log: Pick<Logger, 'info' | 'error'>,
  pollMs = usualPollMs,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  let isFailing = false;
  const run = async () => {
    while (!signal.aborted) {
      await sleep(pollMs, undefined, { signal, ref: false }).catch(() => {});
      if (signal.aborted) return;
      try {
        await chainAll(db, signal);
        if (isFailing) log.info('audit entries are chained again');
        isFailing = false;
      } catch (error) {
        if (!isFailing) log.error(failureFields(error), 'audit entries not chained');
        isFailing = true;
      }
    }
  };
  const running = run();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}
