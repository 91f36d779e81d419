/** What hosts that were away have of a history that is lost, because an earlier copy of the database took its place. */
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { connectPeerService } from '../../api/described-service.ts';
import { databaseFor, postgres } from '../databases.ts';
import { enroll, makeFolder, makeNetwork, openPlane, type Plane, withDatabase } from '../harness.ts';
import { asSuperuser } from '../postgres-server.ts';
import { makeOffice } from '../push/long-poll.ts';

/** Copies the database of a folder, which no control plane uses; returns a function that restores the copy. */
async function copyDatabase(dataDir: string): Promise<() => Promise<void>> {
  if (postgres === null) {
    const copy = join(makeFolder(), 'copy');
    cpSync(dataDir, copy, { recursive: true });
    return async () => {
      for (const name of readdirSync(dataDir)) rmSync(join(dataDir, name), { recursive: true });
      mkdirSync(dataDir, { recursive: true });
      cpSync(copy, dataDir, { recursive: true });
    };
  }
  const server = postgres;
  const name = new URL((await databaseFor(dataDir))?.reveal() ?? '').pathname.slice(1);
  await asSuperuser(server, (client) => client.query(`create database ${name}_copy template ${name}`));
  return () =>
    asSuperuser(server, async (client) => {
      await client.query(`drop database ${name} with (force)`);
      await client.query(`alter database ${name}_copy rename to ${name}`);
    });
}

/** A host as its daemon reads the network. */
function hostOf(plane: Plane, network: number, token: string) {
  let known: NetworkMap | null = null;
  return {
    async read(from: Pick<Plane, 'url'> = plane) {
      const service = connectPeerService({ url: from.url, insecureHttp: false });
      const { map } = await service.readMap(network, new Secret(token), known);
      const before = known;
      known = map ?? known;
      return {
        ids: known?.peers.map(({ id }) => id),
        keys: known?.peers.map(({ publicKey }) => publicKey),
        isNew: map !== null && map !== before,
      };
    },
  };
}

describe('a host that was away while an earlier copy of the database was put back', () => {
  test('has the peers of the restored network, whatever its revision is by then', async () => {
    const dataDir = makeFolder();
    const first = await openPlane({ dataDir });
    const token = await first.signIn('owner');
    const { network, key, peer, peerToken } = await makeOffice({ plane: first, token });
    await first.server.close();
    const restore = await copyDatabase(dataDir);

    const lost = await openPlane({ dataDir });
    const hosts = Array.from({ length: 4 }, () => hostOf(lost, network, peerToken));
    const gone = (await enroll(lost, key)).body.data.peer.id;
    await enroll(lost, key);
    await lost.call('PATCH', `/api/networks/${network}`, { token, body: { name: 'lost' } });
    for (const host of hosts) expect((await host.read()).ids).toContain(gone);
    await lost.server.close();
    await restore();

    // At a lower revision, at the very same one, and later: each host is away for longer.
    const again = await openPlane({ dataDir });
    try {
      for (const [index, host] of hosts.entries()) {
        const whole = await again.call('GET', `/api/networks/${network}`, { token });
        const ids = whole.body.data.peers.map(({ id }: { id: number }) => id);
        expect([index, whole.body.data.revision, (await host.read(again)).ids]).toEqual([index, 2 + index * 1, ids]);
        expect(whole.body.data.peers[0].id).toBe(peer);
        expect(await host.read(again)).toMatchObject({ isNew: false });
        await again.call('PATCH', `/api/networks/${network}`, { token, body: { name: `n${index}` } });
        // From here on it gets deltas, of this history.
        expect((await host.read(again)).ids).toEqual(ids);
      }
      expect(again.log()).toContain('"status":226');
    } finally {
      await again.server.close();
    }
  });
});

test('the domains behind routes are those of the restored network', async () => {
  const dataDir = makeFolder();
  const route = '192.168.50.0/24';
  const before = [{ route, dns_servers: ['192.168.50.53'], domains: ['corp.example'] }];
  const first = await openPlane({ dataDir });
  const token = await first.signIn('owner');
  const id = await makeNetwork(first, token, { routes: [route], route_dns: before });
  await first.server.close();
  const restore = await copyDatabase(dataDir);

  const lost = await openPlane({ dataDir });
  const { body } = await lost.call('PATCH', `/api/networks/${id}`, { token, body: { route_dns: [] } });
  expect('route_dns' in body.data).toBe(false);
  await lost.server.close();
  await restore();

  const again = await openPlane({ dataDir });
  const whole = await again.call('GET', `/api/networks/${id}`, { token, headers: { 'if-none-match': body.data.etag } });
  await again.server.close();
  expect([whole.status, whole.body.data.route_dns]).toEqual([200, before]);
});

describe('a control plane whose database fails over to one that lagged behind', () => {
  test('tells of what is there now, not of what it remembers', async () => {
    const dataDir = makeFolder();
    const plane = await openPlane({ dataDir });
    try {
      const token = await plane.signIn('owner');
      const { network, key, peerToken } = await makeOffice({ plane, token });
      const tables = ['networks', 'changes', 'enrollments', 'peers'] as const;
      const lagging = await withDatabase(dataDir, async (db) =>
        Promise.all(tables.map(async (table) => db.selectFrom(table).selectAll().execute())),
      );
      const gone = (await enroll(plane, key)).body.data;
      const hosts = [1, 2, 3].map(() => hostOf(plane, network, peerToken));
      for (const host of hosts) expect((await host.read()).ids).toContain(gone.peer.id);
      const read = (as: string) => plane.call('GET', `/api/networks/${network}`, { token: as });
      expect((await read(gone.access_token)).status).toBe(200);
      await withDatabase(dataDir, async (db) => {
        const [networks = [], changes = [], , peers = []] = lagging;
        for (const row of networks as { id: number; revision: number; nonce: string }[]) {
          const { revision, nonce } = row;
          await db.updateTable('networks').set({ revision, nonce }).where('id', '=', row.id).execute();
        }
        await db.deleteFrom('changes').execute();
        await db
          .insertInto('changes')
          .values(changes as never)
          .execute();
        const ids = (peers as { id: number }[]).map(({ id }) => id);
        await db.deleteFrom('peers').where('id', 'not in', ids).execute();
        // The next peer gets the id of the one that is lost.
        const last = Math.max(...ids);
        const next = postgres
          ? sql`select setval(pg_get_serial_sequence('peers', 'id'), ${last})`
          : sql`update sqlite_sequence set seq = ${last} where name = 'peers'`;
        await next.execute(db);
      });
      for (const [index, host] of hosts.entries()) {
        const { data } = (await read(token)).body;
        expect([data.revision, data.peers.length]).toEqual([2 + index, 1 + index]);
        // One of them has the id of the one that is lost.
        const keys = data.peers.map(({ public_key }: { public_key: string }) => public_key);
        expect((await host.read()).keys).toEqual(keys);
        expect((await read(gone.access_token)).status).toBe(401);
        const { peer } = (await enroll(plane, key)).body.data;
        if (index === 0) expect(peer.id).toBe(gone.peer.id);
      }
    } finally {
      await plane.server.close();
    }
  });
});
