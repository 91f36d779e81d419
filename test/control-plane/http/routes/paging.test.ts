import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { connectAdminService } from '../../../../src/api/admin-service.ts';
import type { Db } from '../../../../src/control-plane/store/tables.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { closePlane, makeNetwork, openPlane, type Plane, publicKey, withDatabase } from '../../harness.ts';

const created_at = '2030-01-01T00:00:00.000Z';

let plane: Plane;
let token: string;
/** A network with peers and keys. */
let network: number;
/** The path of each list, and what adds so many entries to it. */
const lists: Record<string, { path: () => string; add: (db: Db, count: number) => Promise<unknown> }> = {
  networks: {
    path: () => '/api/networks',
    add: (db, count) => db.insertInto('networks').values(many(count, networkRow)).execute(),
  },
  peers: {
    path: () => `/api/networks/${network}/peers`,
    add: (db, count) => db.insertInto('peers').values(many(count, peerRow)).execute(),
  },
  keys: {
    path: () => `/api/networks/${network}/enrollment-keys`,
    add: (db, count) => db.insertInto('enrollment_keys').values(many(count, keyRow)).execute(),
  },
  users: {
    path: () => '/api/users',
    add: (db, count) => db.insertInto('users').values(many(count, userRow)).execute(),
  },
  tokens: {
    path: () => '/api/auth/tokens',
    add: (db, count) => db.insertInto('personal_tokens').values(many(count, tokenRow)).execute(),
  },
  audit: {
    path: () => '/api/audit',
    add: (db, count) => db.insertInto('audit_entries').values(many(count, entryRow)).execute(),
  },
};
const names = Object.keys(lists);

let made = 0;
let user: number;

function many<Row>(count: number, row: (number: number) => Row): Row[] {
  return Array.from({ length: count }, () => row(++made));
}

const networkRow = (number: number) => ({
  ...{ organization_id: 1, name: `net-${number}`, description: '', private_cidr: '10.1.0.0/24', routes: '[]' },
  ...{ revision: 1, nonce: 'n', addresses_given: 0, created_at },
});
const peerRow = (number: number) => ({
  ...{ network_id: network, name: `peer-${number}`, label: `peer-${number}`, peer_type: 'origin' as const },
  ...{ public_key: publicKey(), address: `10.77.${number >> 8}.${number & 255}`, token_hash: `p${number}`, created_at },
});
const keyRow = (number: number) => ({
  ...{ network_id: network, name: `key-${number}`, token_hash: `k${number}`, max_uses: 1, uses: 0 },
  ...{ created_at, expires_at: '2031-01-01T00:00:00.000Z' },
});
const userRow = (number: number) => ({
  ...{
    organization_id: 1,
    email: `u${number}@example.net`,
    password_hash: 'none',
    role: 'viewer' as const,
    created_at,
  },
});
const tokenRow = (number: number) => ({ user_id: user, name: `t-${number}`, token_hash: `t${number}`, created_at });
const entryRow = (number: number) => ({
  ...{ organization_id: 1, at: created_at, actor_kind: 'system' as const, action: `a.${number}` },
  ...{ target_kind: 'network' as const, details: '{}' },
});

const work = <Result>(doing: (db: Db) => Promise<Result>) => withDatabase(plane.dataDir, doing);
const read = async (path: string) => {
  const reply = await plane.call('GET', path, { token });
  expect(reply.status, JSON.stringify(reply.body?.errors)).toBe(200);
  return reply.body;
};
const idsOf = (body: { data: { id: number }[] }) => body.data.map(({ id }) => id);

/** The ids of all pages, by links.next; `between` happens after the first one. */
async function walk(path: string, between: () => Promise<unknown> = async () => {}) {
  const pages: number[][] = [];
  for (let next: string | null = path; next !== null; ) {
    const body = await read(next);
    pages.push(idsOf(body));
    if (pages.length === 1) await between();
    next = body.links.next === null ? null : `${path.replace(/\?.*/, '')}${body.links.next}`;
  }
  return pages;
}

beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
  user = (await read('/api/auth/me')).data.id;
  network = await makeNetwork(plane, token, { private_cidr: '10.77.0.0/16' });
  await work(async (db) => {
    for (const { add } of Object.values(lists)) await add(db, 7);
  });
});
afterAll(() => closePlane(plane));

describe.each(names)('the list of %s', (name) => {
  const list = lists[name] as (typeof lists)[string];

  test('comes whole without parameters, and in pages by number or by links.next', async () => {
    const whole = await read(list.path());
    const ids = idsOf(whole);
    expect(ids.length).toBeGreaterThanOrEqual(7);
    expect(ids).toEqual(ids.toSorted((one, other) => (name === 'audit' ? other - one : one - other)));
    expect(whole.links).toEqual({ next: null });
    expect(whole.meta).toEqual({ per_page: 1000, current_page: 1, last_page: 1, total: ids.length });

    const last = Math.ceil(ids.length / 3);
    const byNumber = [];
    for (let page = 1; page <= last; page += 1) {
      const body = await read(`${list.path()}?per_page=3&page=${page}`);
      expect(body.meta).toEqual({ per_page: 3, current_page: page, last_page: last, total: ids.length });
      expect(body.links.next === null).toBe(page === last);
      byNumber.push(...body.data);
    }
    expect(byNumber).toEqual(whole.data);
    const pages = await walk(`${list.path()}?per_page=3`);
    expect([pages.length, pages.flat()]).toEqual([last, ids]);
    const beyond = await read(`${list.path()}?per_page=3&page=${last + 1}`);
    expect([beyond.data, beyond.links.next, beyond.meta.total]).toEqual([[], null, ids.length]);
  });

  test('loses and repeats no entry that stays, while others come and go', async () => {
    const before = idsOf(await read(list.path()));
    const table = { keys: 'enrollment_keys', tokens: 'personal_tokens', audit: 'audit_entries' }[name] ?? name;
    // The last one of the first page, which was read, and one of the second.
    const gone = [before[2], before[4]] as number[];
    const pages = await walk(`${list.path()}?per_page=3`, () =>
      work(async (db) => {
        await db
          .deleteFrom(table as 'users')
          .where('id', 'in', gone)
          .execute();
        await list.add(db, 2);
      }),
    );
    const seen = pages.flat();
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.filter((id) => before.includes(id))).toEqual(before.filter((id) => id !== gone[1]));
  });

  test.each(['page=0', 'page=x', 'page=-1', 'page=1&page=2', 'per_page=0', 'per_page=1001', 'page=100001'])(
    'refuses %s',
    async (query) => {
      const reply = await plane.call('GET', `${list.path()}?${query}`, { token });
      expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, [query.split('=')[0]]]);
    },
  );
});

describe('the next page keeps', () => {
  beforeAll(() =>
    work(async (db) => {
      for (const [name, at] of [
        // Its clock was ahead.
        ['R&D +1', created_at],
        ['R&D +2', '2029-12-31T23:00:00.000Z'],
        ['R&D +3', '2029-12-31T23:30:00.000Z'],
      ] as const) {
        const target = { target_name: name, at, action: 'network.create' };
        await db
          .insertInto('audit_entries')
          .values({ ...entryRow(++made), ...target })
          .execute();
      }
      const suspended = db.selectFrom('peers').select('id').where('network_id', '=', network).orderBy('id').limit(3);
      await db.updateTable('peers').set({ suspended_at: created_at }).where('id', 'in', suspended).execute();
      const used = db.selectFrom('enrollment_keys').select('id').where('network_id', '=', network).limit(3);
      await db.updateTable('enrollment_keys').set({ uses: 1 }).where('id', 'in', used).execute();
    }),
  );

  test.each<[string, () => string, number]>([
    ['used-up keys among all', () => `/api/networks/${network}/enrollment-keys?all=true`, 7],
    ['only suspended peers', () => `/api/networks/${network}/peers?suspended=true`, 3],
    ['a search with signs of a URL', () => `/api/audit?search=${encodeURIComponent('r&d +')}`, 3],
    ['an action', () => '/api/audit?action=network.create', 4],
    ['the first instant', () => '/api/audit?search=r%26d&since=2029-12-31T23:30:00%2B00:00', 2],
    ['the last instant', () => '/api/audit?search=r%26d&until=2030-01-01T01:00:00%2B01:00', 2],
  ])('%s', async (_what, path, count) => {
    const ids = idsOf(await read(path()));
    expect(ids).toHaveLength(count);
    expect(await walk(`${path()}&per_page=1`)).toEqual(ids.map((id) => [id]));
  });
});

test('the health of all networks comes in pages of them', async () => {
  const networks = idsOf(await read('/api/networks'));
  const found: number[][] = [];
  for (let next: string | null = '?per_page=3'; next !== null && found.length < 100; ) {
    const body = await read(`/api/health${next}`);
    found.push(body.data.map((each: { network: number }) => each.network));
    next = body.links.next;
  }
  expect([found[0]?.length, found.flat()]).toEqual([3, networks]);
});

test('a page by its number has 25 entries, as a page of files; the next page keeps what was asked', async () => {
  await work((db) => lists.keys?.add(db, 30) as Promise<unknown>);
  const path = `/api/networks/${network}/enrollment-keys`;
  const first = await read(`${path}?page=1&all=true`);
  expect([first.data.length, first.meta.per_page]).toEqual([25, 25]);
  expect(first.links.next).toBe(`?per_page=25&all=true&after=${first.data.at(-1).id}`);
});

test('the older parameters of the audit mean what they did', async () => {
  const ids = idsOf(await read('/api/audit'));
  expect(idsOf(await read(`/api/audit?limit=2&before=${ids[2]}`))).toEqual(ids.slice(3, 5));
  expect((await read('/api/audit?limit=2')).links.next).toBe(`?per_page=2&before=${ids[1]}`);
});

test.runIf(inject('postgres') === undefined)('a page is found by an index, and needs no sorting', async () => {
  const owners = { networks: 'organization_id', users: 'organization_id', audit_entries: 'organization_id' };
  for (const [table, owner] of Object.entries({ ...owners, peers: 'network_id', enrollment_keys: 'network_id' })) {
    const plan = await work((db) =>
      sql<{ detail: string }>`explain query plan select * from ${sql.table(table)}
        where ${sql.ref(owner)} = 1 and id > 5 order by id limit 3`.execute(db),
    );
    const found = `SEARCH ${table} USING INDEX \\w+ \\(${owner}=\\? AND (row)?id>\\?\\)`;
    expect(plan.rows).toEqual([expect.objectContaining({ detail: expect.stringMatching(new RegExp(`^${found}$`)) })]);
  }
});

describe('a list of more than 1,000 entries', () => {
  test('has its first 1,000 without parameters; our client reads all of them', async () => {
    await work((db) => lists.networks?.add(db, 1_500) as Promise<unknown>);
    const first = await read('/api/networks');
    expect(first.data).toHaveLength(1_000);
    expect(first.links.next).toBe(`?per_page=1000&after=${first.data.at(-1).id}`);
    const pages = await walk('/api/networks');
    expect(pages.map((page) => page.length)).toEqual([1_000, first.meta.total - 1_000]);
    // A page in the middle counts nothing.
    expect(Object.keys((await read(`/api/networks${first.links.next}`)).meta)).toEqual(['per_page']);
    const address = { url: plane.url, insecureHttp: false };
    const networks = await connectAdminService(address, new Secret(token)).listNetworks();
    expect(networks.map(({ id }) => id)).toEqual(pages.flat());
  });

  test('counts up to 10,000 of them', async () => {
    for (let index = 0; index < 10; index += 1) await work((db) => lists.audit?.add(db, 1_000) as Promise<unknown>);
    const { meta, links } = await read('/api/audit?page=2&per_page=10');
    expect(meta).toEqual({ per_page: 10, current_page: 2 });
    expect(links.next).not.toBeNull();
  });
});
