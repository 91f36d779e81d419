import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { migrate } from '../../../src/control-plane/store/migrations/migrate.ts';
import { migrations } from '../../../src/control-plane/store/migrations/migrations.ts';
import { databaseFor } from '../databases.ts';
import {
  closePlane,
  enroll,
  makeFolder,
  makeKey,
  makeNetwork,
  openPlane,
  type Plane,
  publicKey,
  withDatabase,
} from '../harness.ts';

let plane: Plane;
let token: string;
let network: number;
let key: string;

beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, token);
  key = await makeKey(plane, token, network);
});

async function join(name: string, in_ = key) {
  const { status, body } = await enroll(plane, in_, { name });
  expect(status).toBe(201);
  return {
    id: body.data.peer.id as number,
    name: body.data.peer.name as string,
    token: body.data.access_token as string,
  };
}
const rename = ({ id, token: own }: { id: number; token: string }, name: string, as = own) =>
  plane.call('PATCH', `/api/networks/${network}/peers/${id}`, { token: as, body: { name } });
const revision = async () => (await plane.call('GET', `/api/networks/${network}`, { token })).body.data.revision;

describe('a name in another script', () => {
  const listed = async (id: number) => {
    const { body } = await plane.call('GET', `/api/networks/${network}/peers`, { token });
    return body.data.find((each: { id: number }) => each.id === id);
  };

  test('has a label that a person recognises, unique in the network, and in the map', async () => {
    const [web, same, zoe, plain] = [
      await join('北京-web'),
      await join('背景-web'),
      await join("Zoë's iPhone"),
      await join('edge-1'),
    ];
    expect([web.name, same.name]).toEqual(['北京-web', '背景-web-2']);
    expect((await listed(web.id)).dns_label).toBe('beijing-web');
    expect((await listed(same.id)).dns_label).toBe('beijing-web-2');
    expect((await listed(zoe.id)).dns_label).toBe('zoes-iphone');
    expect(await listed(plain.id)).not.toHaveProperty('dns_label');
    const { peers } = (await plane.call('GET', `/api/networks/${network}`, { token })).body.data;
    expect(peers).toContainEqual(expect.objectContaining({ name: '北京-web', dns_label: 'beijing-web' }));
  });

  test('keeps the label that a version before gave it, until the peer is renamed', async () => {
    const web = await join('北京-web');
    await withDatabase(plane.dataDir, async (db) => {
      await sql`update peers set label = 'web' where id = ${web.id}`.execute(db);
    });
    expect(
      (await plane.call('PATCH', `/api/networks/${network}/peers/${web.id}`, { token, body: { name: '北京-web' } }))
        .status,
    ).toBe(200);
    expect(await listed(web.id)).not.toHaveProperty('dns_label');
    await rename(web, '上海-web', token);
    expect((await listed(web.id)).dns_label).toBe('shanghai-web');
  });

  test('is refused where its label is that of another peer', async () => {
    await join('beijing');
    const other = await join('other');
    const { status, body } = await rename(other, '北京', token);
    expect([status, body.errors.name[0]]).toEqual([422, expect.stringContaining('has the host name beijing')]);
  });
});

describe('an enrolment with a name that is taken', () => {
  test('gets a suffix, which the reply and the audit have', async () => {
    const names = [];
    for (const name of ['web', 'Web', 'web', 'web-4', 'WEB.']) names.push((await join(name)).name);
    expect(names).toEqual(['web', 'Web-2', 'web-3', 'web-4', 'WEB.-5']);
    const [entry] = (await plane.call('GET', '/api/audit', { token })).body.data;
    expect(entry).toMatchObject({ target: { name: 'WEB.-5' }, details: { name_asked: 'WEB.' } });
  });

  test('keeps it in a repetition', async () => {
    await join('web');
    const fields = { name: 'web', public_key: publicKey() };
    const first = await enroll(plane, key, fields, 'again');
    expect((await enroll(plane, key, fields, 'again')).body.data.peer).toEqual(first.body.data.peer);
    expect(first.body.data.peer.name).toBe('web-2');
  });

  test('has one that fits a label, however long the name is', async () => {
    const long = 'a'.repeat(120);
    await join(long);
    expect((await join(long)).name).toBe(`${'a'.repeat(61)}-2`);
  });

  test('is free in another network, and once the peer is gone', async () => {
    const first = await join('web');
    const other = await makeNetwork(plane, token, { private_cidr: '10.78.0.0/24' });
    expect((await join('web', await makeKey(plane, token, other))).name).toBe('web');
    await plane.call('DELETE', `/api/networks/${network}/peers/${first.id}`, { token });
    expect((await join('web')).name).toBe('web');
  });

  test('of which no label can be made keeps it: it goes by its id, which no other may take', async () => {
    const [first, second] = [await join('——'), await join('——')];
    expect([first.name, second.name]).toEqual(['——', '——']);
    expect((await join(`peer-${first.id}`)).name).toBe(`peer-${first.id}-2`);
    expect((await rename(second, `PEER ${first.id}`)).status).toBe(422);
  });
});

describe('a peer that takes the name of another', () => {
  test.each(['db', 'DB', ' d.b ', 'Database'])('as %j is refused where it is the same label', async (name) => {
    const holder = await join(name === ' d.b ' ? 'D b' : 'db');
    const taker = await join('web');
    const before = await revision();
    for (const as of [taker.token, token]) {
      const reply = await rename(taker, name, as);
      if (name === 'Database') {
        expect(reply.status).toBe(200);
        continue;
      }
      expect(reply.status).toBe(422);
      const problem =
        name === holder.name
          ? `is the name of peer ${holder.id} already`
          : `which peer ${holder.id} ("${holder.name}") has already`;
      expect(reply.body.errors.name[0]).toContain(problem);
    }
    expect(await revision()).toBe(before + (name === 'Database' ? 1 : 0));
  });

  test('may spell its own name otherwise', async () => {
    const peer = await join('web 1');
    expect((await rename(peer, 'WEB-1')).body.data.name).toBe('WEB-1');
  });

  test('loses the race to another that takes it at the same time', async () => {
    const peers = [await join('a'), await join('b'), await join('c')];
    const statuses = (await Promise.all(peers.map((peer) => rename(peer, 'db')))).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 422, 422]);
    const fields = { name: 'cache' };
    const names = await Promise.all([1, 2, 3, 4].map(() => enroll(plane, key, fields)));
    expect(new Set(names.map(({ body }) => body.data.peer.name)).size).toBe(4);
  });
});

test('a database of before keeps the name of the oldest, gives the others a suffix, and says so in the audit', async () => {
  const dataDir = makeFolder();
  await databaseFor(dataDir);
  await withDatabase(dataDir, async (db) => {
    const before = Object.entries(migrations).filter(([name]) => name < '0007');
    await migrate(db, Object.fromEntries(before));
    const now = '2026-01-01T00:00:00.000Z';
    await sql`insert into organizations (name) values ('o')`.execute(db);
    for (const cidr of ['10.1.0.0/24', '10.2.0.0/24']) {
      await sql`insert into networks (organization_id, name, description, private_cidr, routes, revision, addresses_given, created_at)
        values (1, 'n', '', ${cidr}, '[]', 5, 3, ${now})`.execute(db);
    }
    const rows = [
      ...[1, 1, 1, 1, 2, 1, 1].map((network, index) => ({
        network,
        name: ['db', 'DB', 'db 2', 'd-b', 'db', '面', 'db'][index],
      })),
    ];
    for (const [index, { network, name }] of rows.entries()) {
      await sql`insert into peers (network_id, name, peer_type, public_key, address, token_hash, created_at)
        values (${network}, ${name}, ${index === 0 ? 'connector' : 'origin'}, ${`key ${index}`}, ${`a${index}`}, ${`hash ${index}`}, ${now})`.execute(
        db,
      );
    }
    await migrate(db);
    const peers = await db.selectFrom('peers').select(['name', 'label', 'serving_since']).orderBy('id').execute();
    expect(peers.map(({ name, label }) => [name, label])).toEqual([
      ['db', 'db'],
      ['DB-3', 'db-3'],
      ['db 2', 'db-2'],
      ['d-b', 'd-b'],
      ['db', 'db'],
      ['面', null],
      ['db-4', 'db-4'],
    ]);
    expect(peers.map(({ serving_since }) => serving_since)).toEqual([now, ...Array(6).fill(null)]);
    const audit = await db.selectFrom('audit_entries').selectAll().orderBy('id').execute();
    expect(audit.map(({ actor_kind, target_id, details }) => [actor_kind, target_id, JSON.parse(details)])).toEqual([
      ['system', 2, { network: 1, name: 'DB-3', name_before: 'DB' }],
      ['system', 7, { network: 1, name: 'db-4', name_before: 'db' }],
    ]);
    await expect(db.updateTable('peers').set({ label: 'db' }).where('id', '=', 2).execute()).rejects.toThrow();
  });
});
