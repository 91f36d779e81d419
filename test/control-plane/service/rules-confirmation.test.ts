import { expect, test } from 'vitest';
import { restoreRules } from '../../../src/control-plane/service/rules/confirm-rules.ts';
import { eventually } from '../../lab/eventually.ts';
import {
  closePlane,
  contextOver,
  makeFolder,
  makeNetwork,
  openPlane,
  type Plane,
  startPlane,
  withDatabase,
} from '../harness.ts';

const rule = (name: string) => ({ name, from: ['any'], to: ['any'], protocol: 'any', ports: [] });

async function start(plane: Plane) {
  const token = await plane.signIn('admin');
  const network = await makeNetwork(plane, token);
  const path = `/api/networks/${network}`;
  return {
    ...{ plane, token, network, path },
    set: (body: object) => plane.call('PUT', `${path}/rules`, { token, body: { mode: 'closed', ...body } }),
    confirm: (headers = {}) => plane.call('POST', `${path}/rules/confirm`, { token, headers }),
    read: async () => (await plane.call('GET', `${path}/rules`, { token })).body.data,
    readMap: async () => (await plane.call('GET', path, { token })).body.data,
    audit: async (action: string) =>
      (await plane.call('GET', `/api/audit?action=${action}`, { token })).body.data.filter(
        ({ target }: { target: { id: number } }) => target.id === network,
      ),
  };
}

const names = ({ rules }: { rules: { name: string }[] }) => rules.map(({ name }) => name);

test('rules without a confirmation give way to the last confirmed ones, and the service is the author', async () => {
  const { plane, set, read, readMap, confirm, audit, path, token } = await start(await startPlane());
  await set({ rules: [rule('first')] });
  const second = await set({ rules: [rule('second')], confirm_within_seconds: 60 });
  expect(second.body.data.confirm_until).toBe('2030-01-01T00:01:00.000Z');
  const third = await set({ rules: [rule('third')], confirm_within_seconds: 30 });
  expect(third.body.data.confirm_until).toBe('2030-01-01T00:00:30.000Z');
  const { revision } = await readMap();
  plane.clock.advance(30_000);
  await eventually('the first rules are back', async () => names(await read()).join() === 'first');
  expect(await read()).not.toHaveProperty('confirm_until');
  expect(await readMap()).toMatchObject({ revision: revision + 1, rules: { rules: [rule('first')] } });
  expect(await audit('rules.restore')).toEqual([
    expect.objectContaining({
      actor: { kind: 'system', id: null, name: null },
      details: { mode: 'closed', rules: 1, tests: 0 },
    }),
  ]);
  const events = (await plane.call('GET', `${path}/events`, { token })).body.data;
  expect(events.map(({ type }: { type: string }) => type).slice(-1)).toEqual(['rules.restored']);
  const late = await confirm();
  expect([late.status, late.body.message]).toEqual([
    409,
    'the rules were not confirmed in time: the earlier ones returned at 2030-01-01T00:00:30.000Z',
  ]);
  expect((await set({ rules: [rule('second')] })).status).toBe(200);
  expect((await confirm()).status).toBe(200);
});

test('confirmed rules stay, and are confirmed once', async () => {
  const { plane, set, confirm, read, audit } = await start(await startPlane());
  const { headers } = await set({ rules: [rule('first')], confirm_within_seconds: 60 });
  const stale = await confirm({ 'if-match': '"0-none"' });
  expect(stale.status).toBe(412);
  const confirmed = await confirm({ 'if-match': headers.get('etag') ?? '' });
  expect(confirmed.status).toBe(200);
  expect(confirmed.body.data).not.toHaveProperty('confirm_until');
  expect((await confirm()).status).toBe(200);
  expect(await audit('rules.confirm')).toHaveLength(1);
  plane.clock.advance(60_000);
  const restore = () => withDatabase(plane.dataDir, (db) => restoreRules(contextOver(db, plane)));
  expect(await restore()).toBeNull();
  expect(names(await read())).toEqual(['first']);
});

test('the same rules again get another deadline, or are confirmed', async () => {
  const { plane, set, read, readMap, audit } = await start(await startPlane());
  const rules = [rule('first')];
  await set({ rules, confirm_within_seconds: 60 });
  const { revision } = await readMap();
  plane.clock.advance(20_000);
  const again = await set({ rules, confirm_within_seconds: 60 });
  expect(again.body.data.confirm_until).toBe('2030-01-01T00:01:20.000Z');
  await set({ rules });
  expect(await read()).not.toHaveProperty('confirm_until');
  expect(await audit('rules.confirm')).toHaveLength(1);
  expect((await readMap()).revision).toBe(revision);
});

test('the earlier rules return after a restart, and of several control planes one restores them', async () => {
  const dataDir = makeFolder();
  const first = await openPlane({ dataDir });
  const { set, path, token } = await start(first);
  await set({ rules: [rule('second')], confirm_within_seconds: 60 });
  await closePlane(first);
  const later = await openPlane({ dataDir });
  const read = async () => (await later.call('GET', `${path}/rules`, { token })).body.data;
  try {
    expect(names(await read())).toEqual(['second']);
    later.clock.advance(60_000);
    await withDatabase(dataDir, async (db) => {
      const context = contextOver(db, later);
      await Promise.all([restoreRules(context), restoreRules(context)]);
    });
    expect(await read()).toMatchObject({ mode: 'open', rules: [] });
    const audit = await later.call('GET', '/api/audit?action=rules.restore', { token });
    expect(audit.body.data).toHaveLength(1);
  } finally {
    await closePlane(later);
  }
});
