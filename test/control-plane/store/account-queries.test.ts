import { describe, expect, test } from 'vitest';
import {
  listKeysMadeBy,
  listUsersMadeBy,
  revokeKeysMadeBy,
} from '../../../src/control-plane/store/accounts/made-by-user.ts';
import {
  countTokens,
  deleteExpiredTokens,
  deleteTokens,
  findTokenHolder,
  findValidToken,
  recordTokenUse,
} from '../../../src/control-plane/store/accounts/personal-tokens.ts';
import {
  deleteExpiredSessions,
  endOldestSessions,
  endSessions,
  findSessionHolder,
  findSessionProof,
  listSessions,
  recordSessionUse,
} from '../../../src/control-plane/store/accounts/sessions.ts';
import {
  findOnlyOrganization,
  listOwners,
  lockUserWithPassword,
  setPasswordOfOwner,
} from '../../../src/control-plane/store/accounts/users.ts';
import { findKeyOfEntry, listEntries, type NewEntry } from '../../../src/control-plane/store/audit.ts';
import { hasUse, listKeys, takeUse } from '../../../src/control-plane/store/enrollment-keys.ts';
import { ago, day, type Rows, withRows } from './stored-rows.ts';

const [past, present, future] = [ago(1), ago(0), ago(-1)];
const whole = { after: null, skip: 0, limit: 1000 };

const addSession = ({ db }: Rows, user_id: number, token_hash: string, expires_at: string, others: object = {}) =>
  db
    .insertInto('sessions')
    .values({ user_id, name: token_hash, token_hash, created_at: ago(day), expires_at, ...others })
    .execute();
const hour = 3600 * 1000;
/** Sessions end a day and a millisecond after their login, and an hour after their last use. */
const bounds = { now: present, openedAfter: ago(day + 1), usedAfter: ago(hour) };
const addToken = ({ db }: Rows, user_id: number, token_hash: string, expires_at: string | null) =>
  db
    .insertInto('personal_tokens')
    .values({ user_id, name: token_hash, token_hash, created_at: ago(day), expires_at })
    .execute();
const namesOf = (rows: readonly { name: string }[]) => rows.map(({ name }) => name);

describe('a credential', () => {
  test('of a session is valid before its end, for its own user alone', () =>
    withRows(async (rows) => {
      const { db } = rows;
      const [user, other] = [await rows.addUser(), await rows.addUser()];
      const sessions = [
        ['past', past, { last_used_at: past }],
        ['present', present, { last_used_at: past }],
        ['future', future, { last_used_at: past }],
        ['old', future, { last_used_at: past, created_at: ago(day + 1) }],
        ['idle', future, { last_used_at: ago(hour) }],
        ['never used', future, {}],
        ['new', future, { created_at: past }],
      ] as const;
      for (const [name, end, others] of sessions) await addSession(rows, user, name, end, others);
      await addSession(rows, other, 'other', future, { last_used_at: past });
      const found = sessions.map(async ([hash]) => (await findSessionHolder(db, hash, bounds))?.caller.userId);
      const none = undefined;
      expect(await Promise.all(found)).toEqual([none, none, user, none, none, none, user]);
      const listed = await listSessions(db, user, bounds);
      expect(listed).toMatchObject([
        { name: 'future', last_used_at: past },
        { name: 'new', last_used_at: past },
      ]);
      const starts = [1, 2, 3, 4, 5, 6, 7, 8].map((id) => findSessionProof(db, user, id, bounds));
      expect(await Promise.all(starts)).toEqual([none, none, ago(day), none, none, none, past, none]);
      await deleteExpiredSessions(db, bounds);
      expect(namesOf(await db.selectFrom('sessions').select('name').orderBy('id').execute())).toEqual([
        'future',
        'new',
        'other',
      ]);
      expect(await endSessions(db, user)).toBe(2);
    }));

  test('of a session has its last use noted unless one is since then', () =>
    withRows(async (rows) => {
      const { db } = rows;
      const user = await rows.addUser();
      await addSession(rows, user, 'never used', future);
      await addSession(rows, user, 'used', future, { last_used_at: past });
      await addSession(rows, user, 'new', future, { created_at: past });
      for (const id of [1, 2, 3]) await recordSessionUse(db, id, present, past);
      const rowsLeft = await db.selectFrom('sessions').select('last_used_at').orderBy('id').execute();
      expect(rowsLeft.map(({ last_used_at }) => last_used_at)).toEqual([present, past, null]);
    }));

  test('of a session ends with a newer one beyond the maximum, the oldest first', () =>
    withRows(async (rows) => {
      const [user, other] = [await rows.addUser(), await rows.addUser()];
      await addSession(rows, other, 'other', future);
      for (const name of ['a', 'b', 'c', 'd']) await addSession(rows, user, name, future);
      const left = async () => namesOf(await rows.db.selectFrom('sessions').select('name').orderBy('id').execute());
      await endOldestSessions(rows.db, user, 4);
      expect(await left()).toEqual(['other', 'a', 'b', 'c', 'd']);
      await endOldestSessions(rows.db, user, 2);
      expect(await left()).toEqual(['other', 'c', 'd']);
    }));

  test('that is a personal token is valid before its end if it has one, for its own user alone', () =>
    withRows(async (rows) => {
      const { db } = rows;
      const [user, other] = [await rows.addUser(), await rows.addUser()];
      const tokens = [
        ['past', past],
        ['present', present],
        ['future', future],
        ['endless', null],
      ] as const;
      for (const [name, end] of tokens) await addToken(rows, user, name, end);
      await addToken(rows, other, 'other', null);
      const found = tokens.map(async ([hash]) => (await findTokenHolder(db, hash, present))?.caller.userId);
      expect(await Promise.all(found)).toEqual([undefined, undefined, user, user]);
      const valid = [1, 2, 3, 4, 5].map(async (id) => (await findValidToken(db, user, id, present)) !== undefined);
      expect(await Promise.all(valid)).toEqual([false, false, true, true, false]);
      await deleteExpiredTokens(db, user, past);
      expect([await countTokens(db, user), await countTokens(db, other)]).toEqual([3, 1]);
      expect(namesOf(await deleteTokens(db, user, present))).toEqual(['future', 'endless']);
      expect([await countTokens(db, user), await countTokens(db, other)]).toEqual([0, 1]);
    }));

  test('that is a personal token has its last use noted unless one is since then', () =>
    withRows(async (rows) => {
      const user = await rows.addUser();
      const uses = [null, ago(2), past, present];
      for (const [index, last_used_at] of uses.entries()) {
        await addToken(rows, user, `t${index}`, null);
        await rows.db
          .updateTable('personal_tokens')
          .set({ last_used_at })
          .where('id', '=', index + 1)
          .execute();
        await recordTokenUse(rows.db, index + 1, future, past);
      }
      const tokens = await rows.db.selectFrom('personal_tokens').select('last_used_at').orderBy('id').execute();
      expect(tokens.map((each) => each.last_used_at)).toEqual([future, future, past, present]);
    }));

  test('that is a password is that of the user alone, and an owner alone can have it reset', () =>
    withRows(async ({ db, organization, addUser }) => {
      const [owner, member] = [await addUser(), await addUser()];
      await db
        .updateTable('users')
        .set({ email: 'ada@example.net', password_hash: 'one' })
        .where('id', '=', owner)
        .execute();
      await db.updateTable('users').set({ email: 'bob@example.net', role: 'admin' }).where('id', '=', member).execute();
      expect((await lockUserWithPassword(db, owner, 'one'))?.id).toBe(owner);
      expect([await lockUserWithPassword(db, owner, 'none'), await lockUserWithPassword(db, member, 'one')]).toEqual([
        ...[undefined, undefined],
      ]);
      expect(await listOwners(db, organization)).toEqual(['ada@example.net']);
      expect(await setPasswordOfOwner(db, 'bob@example.net', 'two', '2030-01-01T00:00:00.000Z')).toBeUndefined();
      expect(await setPasswordOfOwner(db, 'ada@example.net', 'two', '2030-01-01T00:00:00.000Z')).toMatchObject({
        id: owner,
      });
      expect((await lockUserWithPassword(db, owner, 'two'))?.id).toBe(owner);
    }));
});

test('the organization of an unknown user is certain while there is one alone', () =>
  withRows(async ({ db, organization, addOrganization }) => {
    expect(await findOnlyOrganization(db)).toBe(organization);
    await addOrganization();
    expect(await findOnlyOrganization(db)).toBeUndefined();
  }));

const addKey = async ({ db, network }: Rows, name: string, fields: object = {}) => {
  const key = {
    network_id: network,
    name,
    token_hash: name,
    max_uses: 2,
    uses: 1,
    created_at: ago(day),
    expires_at: future,
  };
  const row = await db
    .insertInto('enrollment_keys')
    .values({ ...key, ...fields })
    .returning('id')
    .executeTakeFirstOrThrow();
  return row.id;
};

/** Keys by whether a host can enrol with them. */
const keys = {
  ...{ usable: {}, unused: { uses: 0 }, 'used up': { uses: 2 } },
  ...{ expired: { expires_at: past }, 'expired now': { expires_at: present }, revoked: { revoked_at: past } },
};
const usable = ['usable', 'unused'];

test('a host enrols with a key that has a use left, has not expired and was not revoked', () =>
  withRows(async (rows) => {
    for (const [name, fields] of Object.entries(keys)) await addKey(rows, name, fields);
    await addKey(rows, 'elsewhere', { network_id: await rows.addNetwork() });
    const listed = async (at: string | null) => namesOf((await listKeys(rows.db, rows.network, at, whole)).entries);
    expect(await listed(present)).toEqual(usable);
    expect(await listed(null)).toEqual(Object.keys(keys).filter((name) => name !== 'revoked'));
    const stored = await rows.db.selectFrom('enrollment_keys').selectAll().orderBy('id').execute();
    const having = stored.filter((key) => hasUse(key, present));
    expect(namesOf(having)).toEqual([...usable, 'elsewhere']);
    for (const key of stored) {
      expect([key.name, await takeUse(rows.db, key.id, present)]).toEqual([key.name, having.includes(key)]);
      const { uses } = await rows.db
        .selectFrom('enrollment_keys')
        .select('uses')
        .where('id', '=', key.id)
        .executeTakeFirstOrThrow();
      expect(uses).toBe(key.uses + (having.includes(key) ? 1 : 0));
    }
  }));

const addEntry = ({ db, organization }: Rows, fields: Partial<NewEntry>) =>
  db
    .insertInto('audit_entries')
    .values({
      ...{ organization_id: organization, at: present, actor_kind: 'user', action: 'user.create', target_kind: 'user' },
      ...{ details: '{}', ...fields },
    })
    .returning('id')
    .executeTakeFirstOrThrow();

test('what a user made outlives it: the usable keys it made, and the users that it made or changed, newest first', () =>
  withRows(async (rows) => {
    const { db, organization } = rows;
    const [maker, other] = [await rows.addUser(), await rows.addUser()];
    const [made, changed, foreign, both] = [
      await rows.addUser(),
      await rows.addUser(),
      await rows.addUser(),
      await rows.addUser(),
    ];
    const by = { actor_kind: 'user', actor_id: maker } as const;
    for (const fields of [
      { ...by, action: 'user.create', target_id: made },
      { ...by, action: 'user.update', target_id: changed },
      { ...by, action: 'user.create', target_id: both },
      { ...by, action: 'user.update', target_id: both },
      { ...by, action: 'password.change', target_id: other },
      { ...by, action: 'user.update', target_id: maker },
      { ...by, action: 'user.create', target_id: null },
      { ...by, actor_id: other, target_id: foreign },
      // A key or a peer may have the number of the user.
      { ...by, actor_kind: 'enrollment_key', target_id: foreign },
      { ...by, actor_kind: 'peer', target_id: foreign },
    ] as const)
      await addEntry(rows, fields);
    const who = { organizationId: organization, userId: maker };
    expect((await listUsersMadeBy(db, who)).map(({ id }) => id)).toEqual([both, changed, made]);
    const elsewhere = { ...who, organizationId: await rows.addOrganization() };
    expect(await listUsersMadeBy(db, elsewhere)).toEqual([]);

    for (const [name, fields] of Object.entries(keys)) {
      const target_id = await addKey(rows, name, fields);
      await addEntry(rows, { ...by, action: 'key.create', target_id });
    }
    const [revokedOnly, others] = [await addKey(rows, 'touched'), await addKey(rows, 'of another')];
    await addEntry(rows, { ...by, action: 'key.revoke', target_id: revokedOnly });
    await addEntry(rows, { ...by, actor_id: other, action: 'key.create', target_id: others });
    expect(namesOf(await listKeysMadeBy(db, who, present))).toEqual(['unused', 'usable']);
    expect(await listKeysMadeBy(db, elsewhere, present)).toEqual([]);
    await revokeKeysMadeBy(db, elsewhere, present);
    expect(await listKeysMadeBy(db, who, present)).toHaveLength(2);
    await revokeKeysMadeBy(db, who, present);
    const revoked = db.selectFrom('enrollment_keys').select('name').where('revoked_at', '=', present).orderBy('id');
    expect(namesOf(await revoked.execute())).toEqual(usable);
  }));

test('the audit is searched in the names of actor and target, the action, the address and the details, in no other organization', () =>
  withRows(async (rows) => {
    const found = [
      { actor_name: 'a Needle' },
      { action: 'needle.create' },
      { target_name: 'NEEDLE' },
      { address: 'needle' },
      { details: '{"in":"a needle"}' },
    ];
    const ids: number[] = [];
    for (const fields of found) ids.push((await addEntry(rows, fields)).id);
    await addEntry(rows, {});
    await addEntry(rows, { target_name: 'needle', organization_id: await rows.addOrganization() });
    await addEntry(rows, { target_name: 'needle', organization_id: null });
    const search = async (text: string) =>
      (await listEntries(rows.db, rows.organization, { search: text }, whole)).entries.map(({ id }) => id);
    expect(await search('needle')).toEqual(ids.toReversed());
    // Each word may be in another column.
    expect([await search('needle user'), await search('needle other')]).toEqual([
      ids.filter((_, at) => at !== 1).toReversed(),
      [],
    ]);
  }));

test('the key of an enrolment is that of the entry within its time, of the peer and the organization', () =>
  withRows(async (rows) => {
    const range = { from: ago(1000), to: ago(0) };
    const entry = { action: 'peer.enroll', actor_kind: 'enrollment_key', target_id: 7, target_kind: 'peer' } as const;
    const find = () => findKeyOfEntry(rows.db, rows.organization, 7, range);
    for (const [actor_id, fields] of [
      [1, { at: ago(1001) }],
      [2, { at: ago(-1) }],
      [3, { action: 'peer.replace' }],
      [4, { target_id: 8 }],
      [5, { organization_id: await rows.addOrganization() }],
      [6, { actor_kind: 'user' }],
    ] as const)
      await addEntry(rows, { at: ago(500), ...entry, actor_id, actor_name: 'no', ...fields });
    expect(await find()).toBeUndefined();
    for (const at of [range.from, range.to]) {
      const { id } = await addEntry(rows, { ...entry, at, actor_id: 9, actor_name: 'rack' });
      expect(await find()).toEqual({ id: 9, name: 'rack' });
      await rows.db.deleteFrom('audit_entries').where('id', '=', id).execute();
    }
  }));
