import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { AuditEntry } from '../../contract/audit.ts';
import { failureFields } from '../errors.ts';
import { toAuditEntry } from '../service/audit.ts';
import type { Context } from '../service/context.ts';
import { readChained } from '../store/audit-chain.ts';
import { holdReceiver, listBehind, movePosition, registerReceiver, releaseReceiver } from '../store/audit-receivers.ts';
import { chainAll } from './chain-audit.ts';

/** An entry as receivers get it. The id is the same each time that it is sent. */
export interface AuditMessage {
  readonly id: string;
  readonly entry: AuditEntry;
  /** JSON. */
  readonly body: string;
}

/** What became of a batch: how many of its first messages arrived, and why the next one did not. */
export interface Sent {
  readonly count: number;
  /** Null if all arrived. Without secrets. */
  readonly failure: null | {
    readonly reason: string;
    readonly retryAfterMs: number;
    /** True if the receiver refuses this message, and perhaps no other. */
    readonly isRefusal: boolean;
  };
}

/** Where the audit goes, in addition to the database. */
export interface AuditReceiver {
  /** Identifies it in the database, without secrets. A new name receives from then on. */
  readonly name: string;
  /** For the log. */
  readonly label: string;
  /** False for an entry that it must not receive. */
  accepts(entry: AuditEntry): boolean;
  /** Sends messages in their order. The signal ends a wait. */
  send(messages: readonly AuditMessage[], signal: AbortSignal): Promise<Sent>;
}

const pollMs = 1_000;
/** Few, so that a slow webhook ends them while this process holds the receiver. */
const batchSize = 10;
/** How long a process may be silent before another one sends. A batch takes less. */
const holdMs = 120_000;
const firstDelayMs = 1_000;
const maxDelayMs = 60_000;
/** How long a message that the receiver refuses holds up the others. */
const refusedMs = 24 * 3_600_000;

/**
 * Sends the audit to a receiver until `stop`, at least once and in the order of each chain. While a
 * receiver fails, its entries wait in the database; other receivers get theirs.
 */
export function startSending(
  { db, readTime }: Pick<Context, 'db' | 'readTime'>,
  receiver: AuditReceiver,
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
  onFailure: () => void,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const { name, label } = receiver;
  const holder = randomUUID();
  let failures = 0;
  let refused: { readonly id: string; readonly since: number } | null = null;

  const hold = async () => {
    const at = await readTime(db);
    const until = new Date(at.getTime() + holdMs).toISOString();
    return holdReceiver(db, { name, holder, now: at.toISOString(), until });
  };

  /** True if the message was refused for so long that it is given up. */
  const isGivenUp = async (message: AuditMessage): Promise<boolean> => {
    const now = (await readTime(db)).getTime();
    if (refused?.id !== message.id) refused = { id: message.id, since: now };
    return now - refused.since >= refusedMs;
  };

  /** Sends a batch of one organization. Returns the delay before the next attempt; 0 for none. */
  const sendBatch = async (organization: number, after: number): Promise<number> => {
    const rows = await readChained(db, organization, after, batchSize);
    const messages = rows.map(toAuditEntry).map(toMessage);
    const wanted = messages.filter(({ entry }) => receiver.accepts(entry));
    const { count, failure } = wanted.length === 0 ? { count: 0, failure: null } : await receiver.send(wanted, signal);
    const failed = failure === null ? undefined : wanted[count];
    const isSkipped = failed !== undefined && failure?.isRefusal === true && (await isGivenUp(failed));
    if (isSkipped)
      log.error({ receiver: label, entry: failed.entry.id, reason: failure?.reason }, 'audit entry given up');
    const arrived = failed === undefined ? messages : messages.slice(0, messages.indexOf(failed) + (isSkipped ? 1 : 0));
    const last = arrived.at(-1)?.entry.chain?.seq;
    if (last !== undefined) await movePosition(db, name, organization, last);
    if (failure === null || isSkipped) {
      if (failures > 0) log.info({ receiver: label }, 'audit is sent again');
      failures = 0;
      return 0;
    }
    if (signal.aborted) return 0;
    onFailure();
    if (failures === 0)
      log.warn({ receiver: label, entry: failed?.entry.id, reason: failure.reason }, 'audit not sent, retrying');
    failures += 1;
    return Math.max(failure.retryAfterMs, Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(failures - 1, 10)));
  };

  /** Returns the delay before the next call. */
  const sendAll = async (): Promise<number> => {
    const behind = await listBehind(db, name);
    if (behind.length === 0) return pollMs;
    for (const { organization, seq } of behind) {
      if (!(await hold())) return pollMs;
      const delay = await sendBatch(organization, seq);
      if (delay > 0 || signal.aborted) return delay;
    }
    return 0;
  };

  const register = async () => {
    // A database of an earlier version has no chain, and its entries are no news.
    await chainAll(db, signal);
    await registerReceiver(db, name);
  };

  const run = async () => {
    let isBroken = false;
    let isRegistered = false;
    while (!signal.aborted) {
      let delay = pollMs;
      try {
        if (!isRegistered) await register();
        isRegistered = true;
        delay = await sendAll();
        if (isBroken) log.info({ receiver: label }, 'audit read again');
        isBroken = false;
      } catch (error) {
        if (!isBroken) log.error({ ...failureFields(error), receiver: label }, 'audit not read');
        isBroken = true;
      }
      if (delay > 0) await sleep(delay, undefined, { signal, ref: false }).catch(() => {});
    }
    await releaseReceiver(db, name, holder).catch(() => undefined);
  };
  const running = run();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

function toMessage(entry: AuditEntry): AuditMessage {
  const body = JSON.stringify({ type: `audit.${entry.action}`, timestamp: entry.at, data: entry });
  // A restored backup repeats ids of entries, but not their times.
  return { id: `aud_${entry.id}_${Date.parse(entry.at)}`, entry, body };
}
