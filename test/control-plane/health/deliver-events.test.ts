import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { Unavailable } from '../../../src/control-plane/errors.ts';
import { startDeliveries } from '../../../src/control-plane/health/deliver-events.ts';
import { readDatabaseTime } from '../../../src/control-plane/store/database.ts';
import { eventually } from '../../lab/eventually.ts';
import { hour, makeNetwork, type Plane, startPlane, withDatabase } from '../harness.ts';
import {
  accept,
  ignore,
  type Receiver,
  refuse,
  secretPath,
  signingSecret,
  startReceiver,
  webhookAt,
} from './receiver.ts';

/** A control plane that sends to the receiver, and a network. */
async function start(receiver: Receiver, options: { events?: string[]; now?: () => Date } = {}) {
  const { events = [], ...others } = options;
  const plane = await startPlane({ webhook: webhookAt(receiver.url, events), ...others });
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  const rename = (name: string) => plane.call('PATCH', `/api/networks/${network}`, { token, body: { name } });
  return { plane, token, network, rename };
}

const deliveries = ({ dataDir }: Plane) =>
  withDatabase(dataDir, (db) => db.selectFrom('deliveries').selectAll().orderBy('id').execute());

const untilDelivered = (plane: Plane) =>
  eventually('nothing is left to send', async () => (await deliveries(plane)).length === 0);

/** Passes once so many attempts failed and are over, and gives when the next one is, in seconds by the clock of the plane. */
async function untilFailed(plane: Plane, attempts: number): Promise<number> {
  const now = plane.clock.now().getTime();
  const delays = await eventually(`attempt ${attempts} is over`, async () => {
    const rows = await deliveries(plane);
    const delay = (Date.parse(rows[0]?.next_at ?? '') - now) / 1000;
    // A row that is being sent is due in 60 s.
    return rows[0]?.attempts === attempts && delay !== 60 && delay;
  });
  return delays as number;
}

function expectNoSecret(text: string): void {
  expect(text).not.toContain(signingSecret.slice('whsec_'.length));
  expect(text).not.toContain(secretPath);
}

test('an event comes signed, as the library of the receiver verifies it', async () => {
  const receiver = await startReceiver();
  const { plane, network, rename } = await start(receiver, { now: () => new Date() });
  await rename('lab');
  await receiver.has(1);
  await untilDelivered(plane);
  const [{ headers, body, url }] = receiver.received as [Receiver['received'][number]];
  const verified = new Webhook(signingSecret).verify(body, headers as Record<string, string>) as {
    timestamp: string;
    data: { id: number };
  };
  expect(verified).toMatchObject({ type: 'network.updated', data: { network, peer: null, details: { name: 'lab' } } });
  expect([url, headers['webhook-id'], headers['content-type']]).toEqual([
    `/${secretPath}`,
    `evt_${verified.data.id}_${Date.parse(verified.timestamp)}`,
    'application/json',
  ]);
  expect(() =>
    new Webhook(signingSecret).verify(body.replace('lab', 'LAB'), headers as Record<string, string>),
  ).toThrow();
  expectNoSecret(plane.log());
});

test('the same number of an event in another history of the database comes under another id', async () => {
  const receiver = await startReceiver();
  for (const at of [1_000_000_000_000, 1_000_000_000_001]) {
    await (await start(receiver, { now: () => new Date(at) })).rename('lab');
  }
  const [one, other] = (await receiver.has(2)).map(({ data }) => data.id);
  expect(one).toBe(other);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
});

test('other types than those named are not sent', async () => {
  const receiver = await startReceiver();
  const { plane, rename } = await start(receiver, { events: ['peer.online'] });
  await rename('lab');
  expect(await deliveries(plane)).toEqual([]);
});

test('what is refused is sent again, at growing intervals, under the same id', async () => {
  const receiver = await startReceiver(refuse);
  const { plane, rename } = await start(receiver);
  await rename('lab');
  for (const [attempts, seconds] of [5, 10, 20].entries()) {
    const delay = await untilFailed(plane, attempts + 1);
    expect(delay).toBeGreaterThan(seconds * 0.7);
    expect(delay).toBeLessThanOrEqual(seconds);
    plane.clock.advance(20_000);
  }
  receiver.answer(accept);
  await untilDelivered(plane);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(plane.log().match(/webhook not delivered, retrying for 24 hours/g)).toHaveLength(1);
  expect(plane.log()).toContain('webhook delivers again');
  expectNoSecret(plane.log());
});

test.each([
  ['its own delay', 0, '7', 7, 7],
  ['the delay that grew', 0, '1', 3.75, 5],
  ['an hour at the most', 40, '1', 2700, 3600],
  ['its own delay, an hour at the most', 0, '99999', 3600, 3600],
])('what is refused with a Retry-After waits for %s', async (_what, before, header, least, most) => {
  const receiver = await startReceiver((response) => response.writeHead(503, { 'retry-after': header }).end());
  const { plane } = await start(receiver);
  const at = plane.clock.now().toISOString();
  const delivery = { event_id: 1, body: '{"type":"t","data":{}}', created_at: at, attempts: before, next_at: at };
  await withDatabase(plane.dataDir, (db) => db.insertInto('deliveries').values(delivery).execute());
  const delay = await untilFailed(plane, before + 1);
  expect(delay).toBeGreaterThanOrEqual(least);
  expect(delay).toBeLessThanOrEqual(most);
});

test('is given up after 24 hours, with one line in the log', async () => {
  const receiver = await startReceiver(refuse);
  const { plane, network, rename } = await start(receiver);
  await rename('lab');
  await untilFailed(plane, 1);
  plane.clock.advance(24 * hour - 1000);
  expect(await untilFailed(plane, 2)).toBe(1);
  plane.clock.advance(1000);
  await untilDelivered(plane);
  expect(receiver.received).toHaveLength(3);
  expect(plane.log().match(/webhook event given up/g)).toHaveLength(1);
  const subject = `"type":"network.updated","network":${network}`;
  expect(plane.log()).toContain(`${subject},"attempts":3,"reason":"status 500"`);
});

test('the log says where events go and how many wait at the start, and an outage of the database in one line', async () => {
  const receiver = await startReceiver(refuse);
  const { plane, rename } = await start(receiver);
  await rename('lab');
  await untilFailed(plane, 1);
  const lines: unknown[] = [];
  const add = (...line: unknown[]) => void lines.push(line);
  let reads = 0;
  const readTime = async () => {
    reads += 1;
    if (reads <= 2) throw new Unavailable('the database does not answer');
    return plane.clock.now();
  };
  await withDatabase(plane.dataDir, async (db) => {
    const log = { info: add, warn: add, error: add };
    const second = startDeliveries({ db, readTime }, webhookAt(receiver.url), log, () => {});
    await eventually('the database is read again', async () => reads > 3);
    await second.stop();
  });
  expect(lines).toEqual([
    [{ webhook: `127.0.0.1:${receiver.port}`, waiting: 1 }, 'sending events to the webhook'],
    [{ error: 'the database does not answer; try again in 1 s' }, 'webhook events not read'],
    ['webhook events read again'],
  ]);
  expect(plane.log()).toContain(`"webhook":"127.0.0.1:${receiver.port}","waiting":0`);
});

test('a receiver that is silent holds up neither requests nor the end of the control plane', async () => {
  const receiver = await startReceiver(ignore);
  const { plane, rename } = await start(receiver);
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await rename(name);
  await receiver.has(4);
  expect((await rename('g')).status).toBe(200);
  await plane.server.close();
  expect(plane.log()).toContain('"reason":"the control plane stops"');
  expect(await deliveries(plane)).toHaveLength(7);
});

test('two processes send each event once', async () => {
  const receiver = await startReceiver();
  receiver.answer((response) => setTimeout(() => accept(response, receiver.received[0] as never), 20));
  const { plane, rename } = await start(receiver, { now: () => new Date() });
  await withDatabase(plane.dataDir, async (db) => {
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const second = startDeliveries({ db, readTime: readDatabaseTime }, webhookAt(receiver.url), log, () => {});
    onTestFinished(() => second.stop());
    for (let count = 0; count < 40; count += 1) await rename(`name ${count}`);
    await receiver.has(40);
    await untilDelivered(plane);
    await second.stop();
  });
  const names = receiver.received.map(({ body }) => JSON.parse(body).data.details.name);
  expect(names.sort()).toEqual(Array.from({ length: 40 }, (_, count) => `name ${count}`).sort());
});

test('what a process that ended has claimed is sent by another after a minute', async () => {
  const receiver = await startReceiver();
  const { plane, rename } = await start(receiver, { events: ['network.updated'] });
  // As another process leaves it that was killed: claimed, a moment before this one sees it.
  const at = plane.clock.now();
  await withDatabase(plane.dataDir, (db) =>
    db
      .insertInto('deliveries')
      .values({
        event_id: 7,
        body: '{"type":"left"}',
        created_at: at.toISOString(),
        attempts: 1,
        next_at: new Date(at.getTime() + 60_000).toISOString(),
      })
      .execute(),
  );
  await rename('lab');
  expect((await receiver.has(1)).map(({ type }) => type)).toEqual(['network.updated']);
  plane.clock.advance(60_000);
  expect((await receiver.has(2))[1]?.type).toBe('left');
});
