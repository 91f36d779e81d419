import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Event } from '../../../src/contract/event.ts';
import { DataCenter } from '../../../test/e2e/data-center.ts';
import { kinds, measureOutages, type Outage } from '../../../test/e2e/outages.ts';
import { startControlPlane } from '../../../test/lab/control-plane.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Lab } from '../../../test/lab/lab.ts';
import type { Process } from '../../../test/lab/process.ts';
import type { Comparison } from '../comparison.ts';
import { spreadOf } from '../spread.ts';
import { isAlarm } from './alarm.ts';

/** Seconds that a message may take, for 95 of a hundred deaths. */
const limit = 5;
const port = 9000;
const labsAtOnce = 2;
/** The control plane holds back events about a route of which it has stored ten. */
const deathsInLab = 8;

/** An event that the receiver of the webhook got. */
interface Received {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly event: Event;
}

/** A death, and how long the receiver waited for its event. */
interface Measured extends Pick<Outage, 'kind' | 'lost' | 'at'> {
  /** Seconds until the control plane stored the event, and until the receiver had it. */
  readonly stored: number;
  readonly received: number;
  /** Of the webhook meanwhile, without a cause. */
  readonly alarms: readonly Event[];
}

/**
 * How long after the death of the connector in service the receiver of the webhook has
 * `route.failed_over`, so many times.
 */
export async function compareFailoverEvents(rounds = 32): Promise<Comparison[]> {
  const measured: Measured[] = [];
  let left = rounds;
  const ends = await Promise.allSettled(
    Array.from({ length: labsAtOnce }, async () => {
      while (left > 0) {
        const share = Math.min(deathsInLab, left);
        left -= share;
        for await (const each of measureEvents(share)) {
          measured.push(each);
          process.stderr.write(describe(each, measured.length));
        }
      }
    }),
  );
  if (measured.length > 0) {
    const { p50, p95, max } = spreadOf(measured.map(({ received }) => received));
    process.stderr.write(`${measured.length} deaths: ${[p50, p95, max].map((each) => each.toFixed(2)).join(', ')} s\n`);
  }
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return [
    {
      what: 'a dead connector until a webhook receives route.failed_over',
      ...{ baseline: '', unit: 's', theirs: [], ours: measured.map(({ received }) => received) },
      target: { atMost: limit, share: 0.95, text: `p95 ≤ ${limit} s` },
    },
    {
      what: 'alarms without a cause meanwhile',
      ...{ baseline: '', unit: 'events', theirs: [], ours: [measured.flatMap(({ alarms }) => alarms).length] },
      target: { atMost: 0, text: '0' },
    },
  ];
}

async function* measureEvents(rounds: number): AsyncGenerator<Measured> {
  const center = await DataCenter.start(startWithWebhook);
  try {
    const receiver = center.controlPlane.host.spawn(['node', join(import.meta.dirname, 'receiver.ts'), `${port}`]);
    await receiver.waitForLine(/^listening$/);
    const deaths = Array.from({ length: rounds }, (_, round) => {
      return { kind: kinds[round % kinds.length] ?? 'upstream', moment: 'settled' } as const;
    });
    let last = 0;
    for await (const { kind, lost, at } of measureOutages(center, deaths)) {
      // Two hosts measure each death.
      if (at === last) continue;
      last = at;
      const isIt = ({ event }: Received) =>
        event.type === 'route.failed_over' && (event.details.from as Event['peer'])?.name === lost;
      const found = await eventually(`the event of ${lost}`, () => readReceived(receiver, at).find(isIt));
      const alarms = readReceived(receiver, at).flatMap(({ event }) => (isAlarm(event) ? [event] : []));
      const stored = (Date.parse(found.event.at) - at) / 1000;
      yield { kind, lost, at, stored, received: (found.at - at) / 1000, alarms };
    }
  } finally {
    await center.stop();
  }
}

async function startWithWebhook(lab: Lab) {
  const secret = join(lab.folder, 'webhook-secret');
  await writeFile(secret, `whsec_${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  const webhook = ['--webhook', `http://127.0.0.1:${port}/`, '--webhook-allow', '127.0.0.1'];
  return startControlPlane(lab, undefined, [...webhook, '--webhook-secret-file', secret]);
}

function readReceived(receiver: Process, since: number): Received[] {
  const lines = [...receiver.output.stdout.matchAll(/^received (\d+) (\{.*\})$/gm)];
  return lines.flatMap(([, at, body = '']) =>
    Number(at) < since ? [] : [{ at: Number(at), event: (JSON.parse(body) as { readonly data: Event }).data }],
  );
}

function describe({ kind, lost, at, stored, received, alarms }: Measured, number: number): string {
  const seconds = `stored after ${stored.toFixed(2)} s, received after ${received.toFixed(2)} s`;
  const more = alarms.map((event) => `  without a cause: ${JSON.stringify(event)}\n`).join('');
  return `${number}: ${kind}, ${lost} at ${new Date(at).toISOString()}: ${seconds}\n${more}`;
}
