import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Event, EventType } from '../../contract/event.ts';
import { failureFields } from '../errors.ts';
import type { Context } from '../service/context.ts';
import {
  claimDeliveries,
  countDeliveries,
  deleteDelivery,
  hasDueDelivery,
  postponeDelivery,
  type WebhookDelivery,
} from '../store/deliveries.ts';
import { transact } from '../store/transact.ts';
import { createSend } from './send-webhook.ts';
import type { Webhook } from './webhook-settings.ts';

/** The number of messages that one process sends concurrently. */
const width = 8;
const pollMs = 1_000;
/** How long a message belongs to its sending process. A killed process loses it then. */
const claimMs = 60_000;
const firstDelayMs = 5_000;
const maxDelayMs = 3_600_000;
const givenUpMs = 24 * 3_600_000;
/** The time that attempts under way have when the control plane closes. */
const closingMs = 2_000;

/**
 * Sends pending events to the webhook until `stop`, at least once each, also events of other
 * processes. Retries a rejected event at growing intervals for a day.
 */
export function startDeliveries(
  { db, readTime }: Pick<Context, 'db' | 'readTime'>,
  webhook: Webhook,
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
  onFailure: () => void,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const ending = new AbortController();
  const send = createSend(webhook);
  const { host } = new URL(webhook.url.reveal());
  let [isFailing, isBroken] = [false, false];

  const deliver = async (delivery: WebhookDelivery, at: Date) => {
    const { id, event_id: event, body, attempts } = delivery;
    const outcome = await send({ id: messageId(delivery), body }, at, ending.signal);
    if (outcome === null) {
      await deleteDelivery(db, id);
      if (isFailing) log.info('webhook delivers again');
      isFailing = false;
      return;
    }
    onFailure();
    const { reason, retryAfterMs } = outcome;
    const now = (await readTime(db)).getTime();
    const end = Date.parse(delivery.created_at) + givenUpMs;
    if (now >= end) {
      await deleteDelivery(db, id);
      log.warn({ event, ...subjectOf(body), attempts, reason }, 'webhook event given up');
      return;
    }
    if (!isFailing) log.warn({ event, reason }, 'webhook not delivered, retrying for 24 hours');
    isFailing = true;
    const delayMs = Math.max(retryAfterMs, delayAfter(attempts));
    await postponeDelivery(db, delivery, new Date(Math.min(now + delayMs, end)).toISOString());
  };

  /** Sends due deliveries, and returns how many. */
  const deliverDue = async (): Promise<number> => {
    const at = await readTime(db);
    const now = at.toISOString();
    if (!(await hasDueDelivery(db, now))) return 0;
    const until = new Date(at.getTime() + claimMs).toISOString();
    const claimed = await transact(db, (transaction) => claimDeliveries(transaction, { now, until, limit: width }));
    const results = await Promise.allSettled(claimed.map((each) => deliver(each, at)));
    const failed = results.find((each) => each.status === 'rejected');
    if (failed) throw failed.reason;
    return claimed.length;
  };

  const run = async () => {
    const waiting = await countDeliveries(db).catch(() => undefined);
    log.info({ webhook: host, waiting: waiting?.count }, 'sending events to the webhook');
    while (!stopping.signal.aborted) {
      const count = await deliverDue().then(
        (count) => {
          if (isBroken) log.info('webhook events read again');
          isBroken = false;
          return count;
        },
        (error: unknown) => {
          if (!isBroken) log.error(failureFields(error), 'webhook events not read');
          isBroken = true;
          return 0;
        },
      );
      if (count === 0) await sleep(pollMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
    }
  };

  const running = run();
  return {
    stop: () => {
      stopping.abort();
      setTimeout(() => ending.abort(), closingMs).unref();
      return running;
    },
  };
}

/** The same id for all attempts. A restored backup repeats event ids, but not their times. */
function messageId({ event_id, created_at }: WebhookDelivery): string {
  return `evt_${event_id}_${Date.parse(created_at)}`;
}

function subjectOf(body: string) {
  const { type, data }: { type: EventType; data: Event } = JSON.parse(body);
  return { type, network: data.network, peer: data.peer?.name, route: data.route ?? undefined };
}

/** The delay after this many attempts. Varies, so that failed events do not return together. */
function delayAfter(attempts: number): number {
  return Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(attempts - 1, 30)) * (1 - Math.random() / 4);
}
