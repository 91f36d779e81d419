import { afterAll, beforeAll, expect, test } from 'vitest';
import { pruneAudit } from '../../../../src/control-plane/service/retention.ts';
import { listEntries } from '../../../../src/control-plane/store/audit.ts';
import type { Db } from '../../../../src/control-plane/store/tables.ts';
import {
  closePlane,
  enroll,
  hour,
  makeFolder,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  publicKey,
  startPlane,
  withDatabase,
} from '../../harness.ts';

const day = 24 * hour;

let plane: Plane;
let token: string;
let actor: object;
/** The newest entry when a test begins. */
let before: number;

beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
  const { id, email } = (await plane.call('GET', '/api/auth/me', { token })).body.data;
  actor = { kind: 'user', id, name: email };
});
afterAll(() => closePlane(plane));

const read = async (query = '', as = token) => (await plane.call('GET', `/api/audit${query}`, { token: as })).body.data;

/** What the work has left in the audit, oldest first. */
async function written(work: () => Promise<unknown>) {
  before = (await read('?limit=1'))[0]?.id ?? 0;
  await work();
  const entries = await read();
  return entries.filter(({ id }: { id: number }) => id > before).reverse();
}

const entry = (action: string, target: object, details: object = {}, by = actor) => ({
  ...{ id: expect.any(Number), at: plane.clock.now().toISOString(), address: '127.0.0.1' },
  ...{ actor: by, action, target, details, chain: null },
});

test('the life of a network, its keys and its peers is written down, with who did it', async () => {
  const ids = { network: 0, key: 0, peer: 0 };
  const public_key = publicKey();
  const entries = await written(async () => {
    ids.network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24'] });
    const path = `/api/networks/${ids.network}`;
    await plane.call('PATCH', path, { token, body: { name: 'lab', description: '' } });
    const key = await makeKey(plane, token, ids.network);
    ids.key = (await plane.call('GET', `${path}/enrollment-keys`, { token })).body.data[0].id;
    const fields = { public_key, peer_type: 'connector', endpoint: '203.0.113.9:51820' };
    const { peer, access_token } = (await enroll(plane, key, fields)).body.data;
    ids.peer = peer.id;
    const itself = { token: access_token, body: { endpoint: null, withdrawn: ['192.168.1.0/24'] } };
    await plane.call('PATCH', `${path}/peers/${peer.id}`, itself);
    await plane.call('PATCH', `${path}/peers/${peer.id}`, { token, body: { name: 'box', routes: [] } });
    await plane.call('DELETE', `${path}/enrollment-keys/${ids.key}`, { token });
    await plane.call('DELETE', `${path}/peers/${peer.id}`, { token: access_token });
    await plane.call('DELETE', path, { token });
  });
  const { network } = ids;
  const peer = (name: string) => ({ kind: 'peer', id: ids.peer, name });
  const key = { kind: 'enrollment_key', id: ids.key, name: 'rack' };
  const expires_at = new Date(plane.clock.now().getTime() + day).toISOString();
  const joined = { address: '10.77.0.1', public_key, peer_type: 'connector', endpoint: '203.0.113.9:51820' };
  const made = { name: 'office', description: '', private_cidr: '10.77.0.0/24', routes: ['192.168.1.0/24'] };
  expect(entries).toEqual([
    entry('network.create', { kind: 'network', id: network, name: 'office' }, made),
    entry('network.update', { kind: 'network', id: network, name: 'lab' }, { name: 'lab' }),
    entry('key.create', key, { network, max_uses: 10, expires_at }),
    entry('peer.enroll', peer('edge'), { network, ...joined }, key),
    entry('peer.update', peer('edge'), { network, endpoint: null, withdrawn: ['192.168.1.0/24'] }, peer('edge')),
    entry('peer.update', peer('box'), { network, name: 'box', routes: [] }),
    entry('key.revoke', key, { network }),
    entry('peer.delete', peer('box'), { network, address: '10.77.0.1' }, peer('box')),
    entry('network.delete', { kind: 'network', id: network, name: 'lab' }, { private_cidr: '10.77.0.0/24' }),
  ]);
});

test('users, tokens, logins, and those who were not let in', async () => {
  const password = 'a long enough password';
  const email = 'ada@example.net';
  const login = (word: string, name = email) =>
    plane.call('POST', '/api/auth/login', { body: { email: name, password: word, device_name: 'laptop' } });
  const ids = { user: 0, token: 0 };
  const entries = await written(async () => {
    const made = await plane.call('POST', '/api/users', { token, body: { email, password, role: 'admin' } });
    ids.user = made.body.data.id;
    await login('wrong password');
    await login(password, 'Unknown@example.net');
    const session = (await login(password)).body.data.access_token;
    const body = { name: 'ci', expires_in_days: 1 };
    ids.token = (await plane.call('POST', '/api/auth/tokens', { token: session, body })).body.data.id;
    await plane.call('DELETE', `/api/auth/tokens/${ids.token}`, { token: session });
    await plane.call('POST', '/api/auth/logout', { token: session });
    await plane.call('DELETE', `/api/users/${ids.user}`, { token });
  });
  const user = { kind: 'user', id: ids.user, name: email };
  const unknown = { kind: 'nobody', id: null, name: null };
  const session = { kind: 'session', id: expect.any(Number) };
  const ci = { kind: 'personal_token', id: ids.token, name: 'ci' };
  const expires_at = new Date(plane.clock.now().getTime() + day).toISOString();
  expect(entries).toEqual([
    entry('user.create', user, { role: 'admin' }),
    entry('login.refused', user, {}, unknown),
    // With more than one organization it would be unknown which one was meant.
    entry('login.refused', { kind: 'user', id: null, name: 'unknown@example.net' }, {}, unknown),
    entry('login', { ...session, name: 'laptop' }, { method: 'password' }, user),
    entry('token.create', ci, { expires_at }, user),
    entry('token.revoke', ci, {}, user),
    entry('logout', { ...session, name: 'laptop' }, {}, user),
    entry('user.delete', user, { role: 'admin', keys_revoked: [] }),
  ]);
});

test('the first owner is the work of the system', async () => {
  const all = await read();
  expect(all.at(-1)).toMatchObject({
    actor: { kind: 'system', id: null, name: null },
    action: 'user.create',
    target: { kind: 'user', name: owner.email },
    address: null,
  });
});

test('what changes nothing, and what is refused, is not written down', async () => {
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  const public_key = publicKey();
  const { peer, access_token } = (await enroll(plane, key, { public_key }, 'attempt')).body.data;
  const path = `/api/networks/${network}`;
  const viewer = await plane.signIn('viewer');
  const entries = await written(async () => {
    await enroll(plane, key, { public_key }, 'attempt');
    await plane.call('PATCH', path, { token, body: { name: 'office' } });
    await plane.call('PATCH', `${path}/peers/${peer.id}`, { token: access_token, body: { public_key, name: 'edge' } });
    await plane.call('PATCH', path, { token, body: { name: 'changed', routes: ['8.8.8.0/24'] } });
    await enroll(plane, key, { public_key });
    await enroll(plane, 'cpn_unknown');
    await plane.call('DELETE', path, { token: viewer });
    await plane.call('DELETE', '/api/users/999999', { token });
    await plane.call('POST', '/api/auth/login', { body: { email: owner.email } });
  });
  expect(entries).toEqual([]);
});

test('a change that cannot be written down is not made', async () => {
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  await withDatabase(plane.dataDir, (db) => db.schema.alterTable('audit_entries').renameTo('audit_away').execute());
  try {
    expect((await plane.call('DELETE', `/api/networks/${network}`, { token })).status).toBe(500);
    expect((await enroll(plane, key)).status).toBe(500);
  } finally {
    await withDatabase(plane.dataDir, (db) => db.schema.alterTable('audit_away').renameTo('audit_entries').execute());
  }
  const after = await plane.call('GET', `/api/networks/${network}`, { token });
  expect(after).toMatchObject({ status: 200, body: { data: { peers: [], revision: 1 } } });
});

test('the newest come first, page by page', async () => {
  for (let index = 0; index < 5; index += 1) await makeNetwork(plane, token, { name: `net-${index}` });
  const all = await read('?limit=200');
  const ids = all.map(({ id }: { id: number }) => id);
  expect(ids).toEqual([...ids].sort((one, other) => other - one));
  const pages = [];
  for (let last = ''; pages.length < all.length; ) {
    const page = await read(`?limit=3${last}`);
    if (page.length === 0) break;
    pages.push(...page);
    last = `&before=${page.at(-1).id}`;
  }
  expect(pages).toEqual(all);
  expect(await read(`?before=${ids.at(-1)}`)).toEqual([]);
});

test.each([
  ...['limit=0', 'limit=201', 'limit=x', 'limit=-1', 'before=0', 'before=x', 'limit=1&limit=2'],
  ...['search=%00', 'search=zz%00qq', 'action=%00', 'search=a%20b%20c%20d%20e%20f'],
])('?%s is a 422 that names its field', async (query) => {
  const reply = await plane.call('GET', `/api/audit?${query}`, { token });
  expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, [query.split('=')[0]]]);
});

test('each organization sees its own', async () => {
  const organization = await plane.addOrganization('other');
  const foreigner = await plane.signIn('owner', organization);
  expect(await read('', foreigner)).toEqual([]);
  const network = await makeNetwork(plane, foreigner, { name: 'theirs' });
  expect(await read('', foreigner)).toMatchObject([{ action: 'network.create', target: { id: network } }]);
  expect(JSON.stringify(await read('?limit=200'))).not.toContain('theirs');

  const body = { email: 'unknown@example.org', password: 'whatever it was' };
  expect((await plane.call('POST', '/api/auth/login', { body })).status).toBe(401);
  for (const as of [token, foreigner]) expect(JSON.stringify(await read('', as))).not.toContain('unknown@example.org');
});

test('what is older than its days is forgotten', async () => {
  const network = await makeNetwork(plane, token, { name: 'long ago' });
  plane.clock.advance(10 * day);
  token = await plane.signIn('owner');
  await makeNetwork(plane, token, { name: 'lately' });
  const prune = (days: number) =>
    withDatabase(plane.dataDir, (db) => pruneAudit({ db, readTime: async () => plane.clock.now() }, { days }));
  await prune(11);
  expect((await read()).map(({ target }: { target: { id: number } }) => target.id)).toContain(network);
  await prune(9);
  expect((await read()).map(({ target }: { target: { name: string } }) => target.name)).toEqual(['lately']);
});

test('it is pruned when the control plane starts', async () => {
  const dataDir = makeFolder();
  const first = await openPlane({ dataDir });
  await makeNetwork(first, await first.signIn('owner'));
  await closePlane(first);
  const actions = () => withDatabase(dataDir, (db) => db.selectFrom('audit_entries').select('action').execute());
  expect(await actions()).toHaveLength(2);
  const later = (days: number) => new Date(first.clock.now().getTime() + days * day);
  await closePlane(await openPlane({ dataDir, auditDays: 30, now: () => later(30) }));
  expect(await actions()).toHaveLength(2);
  await closePlane(await openPlane({ dataDir, auditDays: 30, now: () => later(31) }));
  expect(await actions()).toEqual([]);
});

test('of what anybody can make entries of, only the newest are kept', async () => {
  const isOther = ({ action }: { action: string }) => !action.startsWith('network.');
  const readOthers = async () => (await read('?limit=200')).filter(isOther).length;
  for (let times = 0; times < 3; times += 1) await makeNetwork(plane, token, { name: `n${times}` });
  const others = await readOthers();
  for (const name of ['one', 'two', 'three', 'four']) {
    const body = { email: `${name}@example.net`, password: 'wrong' };
    await plane.call('POST', '/api/auth/login', { body });
  }
  const refused = () =>
    withDatabase(plane.dataDir, (db) =>
      db
        .selectFrom('audit_entries')
        .select('target_name')
        .where('action', '=', 'login.refused')
        .orderBy('id')
        .execute(),
    );
  const keep = (mostOfEach: number) =>
    withDatabase(plane.dataDir, (db) =>
      pruneAudit(
        { db, readTime: async () => plane.clock.now() },
        { days: 365, mostOfEach, batch: 3, pause: async () => undefined },
      ),
    );
  const before = (await refused()).length;
  await keep(before);
  expect(await refused()).toHaveLength(before);
  await keep(2);
  expect((await refused()).map(({ target_name }) => target_name)).toEqual(['three@example.net', 'four@example.net']);
  expect(await readOthers()).toBe(others);
  const networks = (await read('?limit=200')).filter(({ action }: { action: string }) => action === 'network.create');
  expect(networks.map(({ target }: { target: { name: string } }) => target.name)).toEqual(['n2', 'n1']);
});

test('a large audit is pruned in batches, and others are answered between them', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const kept = { actor_kind: 'system', action: 'network.create', target_kind: 'network', details: '{}' } as const;
  const [old, recent] = ['2028-01-01T00:00:00.000Z', plane.clock.now().toISOString()];
  const [rows, batch] = [5_000, 200];
  const count = (db: Db) =>
    db
      .selectFrom('audit_entries')
      .select((eb) => eb.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
      .then((row) => Number(row.count));
  const others = await withDatabase(plane.dataDir, count);
  await withDatabase(plane.dataDir, async (db) => {
    for (let made = 0; made < rows; made += 500) {
      const entries = Array.from({ length: 500 }, (_, index) => ({ ...kept, at: index % 10 === 0 ? recent : old }));
      await db.insertInto('audit_entries').values(entries).execute();
    }
  });
  const [before, seen] = [await withDatabase(plane.dataDir, count), [] as { status: number; left: number }[]];
  await withDatabase(plane.dataDir, (db) => {
    const pause = async () => {
      const created = await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'meanwhile' } });
      seen.push({ status: created.status, left: (await count(db)) - seen.length - 1 });
    };
    return pruneAudit({ db, readTime: async () => plane.clock.now() }, { days: 365, batch, pause });
  });
  expect(new Set(seen.map(({ status }) => status))).toEqual(new Set([201]));
  // The control plane may have pruned a few batches by itself before.
  expect(seen.length).toBeGreaterThan(10);
  expect(seen.length).toBeLessThanOrEqual(Math.ceil(before / batch));
  const removed = seen.map(({ left }, index) => (seen[index - 1]?.left ?? before) - left);
  expect(Math.max(...removed)).toBeLessThanOrEqual(batch);
  expect(seen.at(-1)?.left).toBe(others + rows * 0.1);
});

test('pruning ends after the batch that is under way when it is stopped', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  for (const name of ['one', 'two', 'three']) await makeNetwork(plane, token, { name });
  const end = new AbortController();
  const readTime = async () => new Date(plane.clock.now().getTime() + 400 * day);
  const pause = async () => end.abort();
  await withDatabase(plane.dataDir, (db) =>
    pruneAudit({ db, readTime }, { days: 365, batch: 1, pause, signal: end.signal }),
  );
  expect((await plane.call('GET', '/api/audit', { token })).body.data).toHaveLength(3);
});

test.each(['ÄRGER Übung', 'Москва', 'Straße-Ω'])('an entry that names %s is found in any case', async (name) => {
  await makeNetwork(plane, token, { name });
  const [word = ''] = name.split(' ');
  for (const search of [word, word.toLowerCase(), word.slice(1)]) {
    const found = await read(`?search=${encodeURIComponent(search)}`);
    expect(found.map(({ target }: { target: { name: string } }) => target.name)).toEqual([name]);
  }
});

test('entries are searched and filtered, and the next page keeps the filter', async () => {
  const network = await makeNetwork(plane, token, { name: 'Find_100%' });
  const key = await makeKey(plane, token, network, { name: 'hidden key' });
  for (const name of ['found-1', 'found-2', 'FOUND-3']) await enroll(plane, key, { name });
  const names = async (query: string) =>
    (await read(`?${query}`)).map(({ target }: { target: { name: string } }) => target.name);
  expect(await names('search=found')).toEqual(['FOUND-3', 'found-2', 'found-1']);
  expect(await names('search=found%20hidden&action=peer')).toEqual(['FOUND-3', 'found-2', 'found-1']);
  expect(await names('search=find_100%25')).toEqual(['Find_100%']);
  expect(await names('search=find_1%25')).toEqual([]);
  expect(await names('search=found&action=network')).toEqual([]);
  expect(await names('search=found&action=peer.enroll')).toHaveLength(3);
  expect(await names('search=found&action=pee')).toEqual([]);
  const { body } = await plane.call('GET', '/api/audit?search=found&action=peer&per_page=2', { token });
  expect([body.data.length, body.meta.total]).toEqual([2, 3]);
  const rest = await plane.call('GET', `/api/audit${body.links.next}`, { token });
  expect(rest.body.data.map(({ target }: { target: { name: string } }) => target.name)).toEqual(['found-1']);
  const at = encodeURIComponent(plane.clock.now().toISOString().replace('Z', '+00:00'));
  expect((await names(`search=found&since=${at}`)).length).toBe(3);
  expect(await names(`search=found&until=${at}`)).toEqual([]);
  expect((await plane.call('GET', '/api/audit?since=yesterday', { token })).status).toBe(422);
  const elsewhere = await plane.signIn('owner', await plane.addOrganization('searching'));
  expect(await read('?search=found', elsewhere)).toEqual([]);
});

test('a search compares with a word that is repeated once, and others have their turn before it ends', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const { organization_id } = await withDatabase(plane.dataDir, (db) =>
    db.selectFrom('users').select('organization_id').executeTakeFirstOrThrow(),
  );
  const [rows, marked] = [6_000, [0, 1_999, 2_000, 4_500, 5_999]];
  const at = plane.clock.now().toISOString();
  const kept = { organization_id, at, actor_kind: 'system', action: 'network.create', target_kind: 'network' } as const;
  const entryOf = (row: number) => ({ ...kept, details: JSON.stringify(marked.includes(row) ? { needle: row } : {}) });
  await withDatabase(plane.dataDir, async (db) => {
    for (let made = 0; made < rows; made += 500) {
      const entries = Array.from({ length: 500 }, (_, index) => entryOf(made + index));
      await db.insertInto('audit_entries').values(entries).execute();
    }
  });
  const read = async (query: string) => (await plane.call('GET', `/api/audit?${query}`, { token })).body;
  const search = `search=${'needle+NEEDLE+'.repeat(7)}`;
  const rowsOf = ({ data }: { data: { details: { needle: number } }[] }) => data.map(({ details }) => details.needle);
  const whole = await read(search);
  expect([rowsOf(whole), whole.meta.total, whole.links.next]).toEqual([[...marked].reverse(), marked.length, null]);
  const first = await read(`${search}&per_page=2`);
  expect([rowsOf(first), first.meta.total]).toEqual([[5_999, 4_500], marked.length]);
  expect(rowsOf(await read(`${search}&per_page=2&page=2`))).toEqual([2_000, 1_999]);
  const second = await read(first.links.next.slice(1));
  expect(rowsOf(second)).toEqual([2_000, 1_999]);
  const last = await read(second.links.next.slice(1));
  expect([rowsOf(last), last.links.next]).toEqual([[0], null]);

  const turns = await withDatabase(plane.dataDir, async (db) => {
    let [count, isOver] = [0, false];
    const takeTurn = () => {
      count += 1;
      if (!isOver) setImmediate(takeTurn);
    };
    setImmediate(takeTurn);
    const [filter, slice] = [{ search: 'needle' }, { after: null, skip: 0, limit: 10 }];
    expect((await listEntries(db, organization_id, filter, slice)).entries).toHaveLength(marked.length);
    isOver = true;
    return count;
  });
  expect(turns).toBeGreaterThanOrEqual(rows / 2_000);
});
