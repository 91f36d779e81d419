import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';
import { withRevision } from '../../../src/control-plane/service/with-revision.ts';
import type { Db } from '../../../src/control-plane/store/tables.ts';
import { now, readTime, withRows } from '../store/stored-rows.ts';

/** A context over the database, and what it announced and notified of, in order. */
function openContext(db: Db) {
  const [notifier, healthNotifier] = [new ChangeNotifier(), new ChangeNotifier()];
  const noted: string[] = [];
  notifier.subscribe((network) => noted.push(`map of ${network}`));
  healthNotifier.subscribe((network) => noted.push(`health of ${network}`));
  const announce = async (_: Db, network: number, topic: string) => void noted.push(`announced ${topic} of ${network}`);
  const context = {
    db,
    random: randomBytes,
    now: () => new Date(now),
    readTime,
    announce,
    webhookTypes: new Set(),
    notifier,
    healthNotifier,
  };
  return { context: context as unknown as Context, noted };
}

const conflict = () => Object.assign(new Error('could not serialize access'), { code: '40001', severity: 'ERROR' });

test('a change that runs again after a conflict is one revision, with each event once and in order', () =>
  withRows(async ({ db, network, addNetwork }) => {
    const other = await addNetwork();
    const { context, noted } = openContext(db);
    let attempts = 0;
    await withRevision(context, async (_db, revise, append) => {
      attempts += 1;
      // Only the attempt that failed changes the other network.
      if (attempts === 1) {
        await revise(other);
        append(other, { type: 'network.updated' });
      }
      await (await revise(network))(7);
      append(network, { type: 'key.rotated' });
      append(network, { type: 'network.updated' });
      noted.splice(0);
      if (attempts === 1) throw conflict();
    });
    const networks = await db.selectFrom('networks').select(['id', 'revision']).orderBy('id').execute();
    expect(networks).toEqual([
      { id: network, revision: 2 },
      { id: other, revision: 1 },
    ]);
    const events = await db.selectFrom('events').select(['network_id', 'type']).orderBy('id').execute();
    expect(events).toEqual(['key.rotated', 'network.updated'].map((type) => ({ network_id: network, type })));
    expect(noted).toEqual([
      ...['map', 'health'].map((topic) => `announced ${topic} of ${network}`),
      ...['map', 'health'].map((topic) => `${topic} of ${network}`),
    ]);
  }));

test('of a change that fails nothing is stored, and readers are not notified', () =>
  withRows(async ({ db, network }) => {
    const { context, noted } = openContext(db);
    const failing = withRevision(context, async (_db, revise, append) => {
      await revise(network, { name: 'lab' });
      append(network, { type: 'network.updated' });
      throw new Error('a rule is broken');
    });
    await expect(failing).rejects.toThrow('a rule is broken');
    const stored = await db.selectFrom('networks').select(['name', 'revision']).execute();
    expect([stored, await db.selectFrom('events').selectAll().execute(), noted]).toEqual([
      [{ name: 'office', revision: 1 }],
      [],
      [],
    ]);
  }));
