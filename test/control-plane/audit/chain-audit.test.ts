import { expect, test } from 'vitest';
import { chainAll, startChaining } from '../../../src/control-plane/audit/chain-audit.ts';
import type { ServeOptions } from '../../../src/control-plane/serve.ts';
import { chainEntries } from '../../../src/control-plane/service/audit-chain.ts';
import { pruneAudit } from '../../../src/control-plane/service/retention.ts';
import type { Db } from '../../../src/control-plane/store/tables.ts';
import { transact } from '../../../src/control-plane/store/transact.ts';
import { createVerifier } from '../../../src/core/audit/verify-chain.ts';
import { eventually } from '../../lab/eventually.ts';
import { hour, logIn, makeNetwork, type Plane, startPlane, withDatabase } from '../harness.ts';

const day = 24 * hour;
const quietLog = { info: () => {}, error: () => {} };

const countUnchained = (plane: Plane) =>
  withDatabase(
    plane.dataDir,
    async (db) => (await db.selectFrom('audit_entries').select('id').where('chain_seq', 'is', null).execute()).length,
  );
const untilChained = (plane: Plane) =>
  eventually('all entries are chained', async () => (await countUnchained(plane)) === 0);
/** Chains in place of the control plane, which does not write meanwhile. */
const chain = (plane: Plane) => withDatabase(plane.dataDir, (db) => chainAll(db, new AbortController().signal));

async function verify(plane: Plane, token: string, limit = 1_000) {
  const verifier = createVerifier();
  for (let after = 0; ; ) {
    const { body } = await plane.call('GET', `/api/audit/chain?after=${after}&limit=${limit}`, { token });
    const fits = body.data.every((link: Parameters<typeof verifier.take>[0]) => verifier.take(link));
    if (body.data.length === 0 || !fits) return verifier.finish();
    after = body.data.at(-1).seq;
  }
}

const change = (plane: Plane, work: (db: Db) => Promise<unknown>) => withDatabase(plane.dataDir, work);

async function startWithNetworks(count: number, options: Partial<ServeOptions> = {}) {
  const plane = await startPlane(options);
  const token = await (options.chainMs === undefined ? plane.signIn('owner') : logIn(plane));
  for (let made = 0; made < count; made += 1) await makeNetwork(plane, token, { name: `n${made}` });
  return { plane, token };
}

test('entries are chained after their request, and each has its place', async () => {
  const { plane, token } = await startWithNetworks(5, { chainMs: 100 });
  await untilChained(plane);
  expect(await verify(plane, token, 2)).toMatchObject({ misfit: null, verified: 7, first: 1, last: 7 });
  const { body } = await plane.call('GET', '/api/audit', { token });
  expect(body.data.map(({ chain }: { chain: { seq: number } }) => chain.seq)).toEqual([7, 6, 5, 4, 3, 2, 1]);
});

test('each organization has a chain of its own, which others do not see', async () => {
  const { plane, token } = await startWithNetworks(2);
  const other = await plane.signIn('owner', await plane.addOrganization('other'));
  await makeNetwork(plane, other, { name: 'theirs' });
  await chain(plane);
  expect(await verify(plane, token)).toMatchObject({ misfit: null, last: 3 });
  expect(await verify(plane, other)).toMatchObject({ misfit: null, first: 1, last: 1 });
  const member = await plane.signIn('member');
  expect((await plane.call('GET', '/api/audit/chain', { token: member })).status).toBe(403);
});

test.each([
  [
    'changed',
    (db: Db) => db.updateTable('audit_entries').set({ actor_name: 'eve' }).where('chain_seq', '=', 3).execute(),
  ],
  ['removed', (db: Db) => db.deleteFrom('audit_entries').where('chain_seq', '=', 3).execute()],
])('an entry that was %s in the database is found', async (_, work) => {
  const { plane, token } = await startWithNetworks(5);
  await chain(plane);
  await change(plane, work);
  expect((await verify(plane, token)).misfit?.seq).toBe(_ === 'changed' ? 3 : 4);
});

test('several processes write one chain', async () => {
  const { plane, token } = await startWithNetworks(40);
  await change(plane, async (db) => {
    const writers = [1, 2, 3].map(() => startChaining({ db }, quietLog, 10));
    await untilChained(plane);
    await Promise.all(writers.map((each) => each.stop()));
  });
  expect(await verify(plane, token)).toMatchObject({ misfit: null, verified: 41, last: 41 });
});

test('retention leaves a chain that fits, with the statement of what it removed', async () => {
  const { plane } = await startWithNetworks(6);
  await chain(plane);
  plane.clock.advance(40 * day);
  const token = await plane.signIn('owner');
  for (const name of ['late', 'later']) await makeNetwork(plane, token, { name });
  await chain(plane);
  const readTime = async () => plane.clock.now();
  await change(plane, (db) => pruneAudit({ db, readTime }, { days: 30, mostOfEach: 1, batch: 3 }));
  await chain(plane);
  const verdict = await verify(plane, token);
  // Seven are too old, and one of the two networks is surplus: its link is the anchor.
  expect(verdict).toMatchObject({ misfit: null, first: 8 });
  const { body } = await plane.call('GET', '/api/audit', { token });
  const actions = body.data.map(({ action }: { action: string }) => action);
  expect(actions.filter((each: string) => each === 'network.create')).toHaveLength(1);
  const stated = body.data.filter(({ action }: { action: string }) => action === 'audit.prune');
  expect(stated.map(({ details }: { details: object }) => details)).toEqual(
    expect.arrayContaining([
      { before: new Date(plane.clock.now().getTime() - 30 * day).toISOString(), through: 7 },
      { action: 'network.create', through: 8 },
    ]),
  );
  // A deletion that retention did not state is found in the same log.
  await change(plane, (db) => db.deleteFrom('audit_entries').where('action', '=', 'network.create').execute());
  expect((await verify(plane, token)).misfit).not.toBeNull();
});

test('an entry of a large batch is chained once', async () => {
  const { plane, token } = await startWithNetworks(3);
  await change(plane, async (db) => {
    const { id } = await db.selectFrom('organizations').select('id').executeTakeFirstOrThrow();
    let count: number;
    do count = await transact(db, (transaction) => chainEntries(transaction, id, 1));
    while (count > 0);
  });
  await chain(plane);
  expect(await verify(plane, token)).toMatchObject({ misfit: null, last: 4 });
});
