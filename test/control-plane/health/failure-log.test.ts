import pino from 'pino';
import { expect, test } from 'vitest';
import { Unavailable } from '../../../src/control-plane/errors.ts';
import { Evaluator } from '../../../src/control-plane/health/evaluate.ts';
import { FailureLog } from '../../../src/control-plane/health/failure-log.ts';
import { savePeerHealth } from '../../../src/control-plane/store/health.ts';
import { eventually } from '../../lab/eventually.ts';
import { contextOver, withDatabase } from '../harness.ts';
import { soon, startOffice } from './office.ts';

const unavailable = () => new Unavailable('the database does not answer');

function openLog() {
  const lines: { msg: string; error?: string; err?: { stack: string } }[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { failures: new FailureLog(log), lines, messages: () => lines.map(({ msg }) => msg) };
}

test('a failure is logged when it begins, when its reason changes, and when all parts work again', () => {
  const { failures, lines, messages } = openLog();
  failures.note('tick', null);
  for (let attempt = 0; attempt < 3; attempt += 1) {
    for (const part of ['tick', 'presence', 7]) failures.note(part, unavailable());
  }
  expect(lines).toHaveLength(1);
  expect(lines[0]?.error).toMatch(/^the database does not answer/);
  expect(lines[0]).not.toHaveProperty('err');
  failures.note('tick', new TypeError('a bug'));
  expect(lines[1]?.err?.stack).toContain('TypeError: a bug');
  for (const part of ['tick', 7, 'presence', 'tick']) failures.note(part, null);
  expect(messages()).toEqual(['health not updated', 'health not updated', 'health updated again']);
});

test('an outage of the database is two lines, and what could not be written is written after it', async () => {
  const { plane, network, one } = await startOffice({ healthTimes: { ...soon, flushMs: 1e9, tickMs: 1e9 } });
  // Its own evaluation of the enrolments could come first.
  await plane.server.close();
  const { failures, messages } = openLog();
  await withDatabase(plane.dataDir, async (db) => {
    await savePeerHealth(db, one.id, { last_seen: plane.clock.now().toISOString() });
    let announced = 0;
    const announce = async () => {
      announced += 1;
      if (announced < 5) throw unavailable();
    };
    const context = contextOver(db, plane, { announce });
    const presence = { silenceOf: (peer: number) => (peer === one.id ? 0 : null), setOnline: () => {} };
    const evaluator = new Evaluator(context, presence, { keepsPresence: true, tickMs: 20, settleMs: 1, failures });
    evaluator.schedule(network);
    await eventually('it ends', () => messages().includes('health updated again'));
    await evaluator.stop();
    const events = await db
      .selectFrom('events')
      .select('type')
      .where('type', 'in', ['peer.online', 'peer.offline'])
      .execute();
    expect(events).toEqual([{ type: 'peer.online' }]);
  });
  expect(messages()).toEqual(['health not updated', 'health updated again']);
});
