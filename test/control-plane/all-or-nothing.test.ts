import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { Kysely } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { PeerMessage } from '../../src/contract/network.ts';
import { Evaluator } from '../../src/control-plane/health/evaluate.ts';
import { observeInstances } from '../../src/control-plane/health/observe-instances.ts';
import { ChangeNotifier } from '../../src/control-plane/push/change-notifier.ts';
import { PeerMessages } from '../../src/control-plane/push/peer-messages.ts';
import { expirePeers } from '../../src/control-plane/service/expiry.ts';
import { savePeerHealth } from '../../src/control-plane/store/health.ts';
import type { Tables } from '../../src/control-plane/store/tables.ts';
import {
  closePlane,
  contextOver,
  enroll,
  makeConsole,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  publicKey,
  quiet,
  type Reply,
  withDatabase,
} from './harness.ts';
import { controlStatements } from './held-statements.ts';

const statements = controlStatements();
const page = makeConsole();
let plane: Plane;
let token: string;
beforeAll(async () => {
  // Nothing of its own is written meanwhile.
  plane = await openPlane({ healthTimes: quiet, console: page });
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));
afterAll(() => rmSync(page, { recursive: true }));

/** Something that is written, and whether all of it was. */
type Attempt = () => Promise<boolean>;

interface Written {
  /** The rows that it adds, by table. */
  readonly adds: Readonly<Partial<Record<keyof Tables, number>>>;
  /** Makes what is needed, and returns what is repeated until nothing of it fails. */
  readonly prepare: (db: Kysely<Tables>) => Promise<Attempt>;
}

const isDone = async (reply: Promise<Reply>) => (await reply).status < 300;

async function makePeer() {
  const network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24'] });
  const key = await makeKey(plane, token, network);
  const { peer, access_token } = (await enroll(plane, key, { peer_type: 'connector' })).body.data;
  const path = `/api/networks/${network}`;
  return { network, key, id: peer.id as number, path, peerPath: `${path}/peers/${peer.id}`, peerToken: access_token };
}

async function makeUser() {
  const body = { email: `user-${randomBytes(4).toString('hex')}@example.net`, password: owner.password, role: 'admin' };
  const id = (await plane.call('POST', '/api/users', { token, body })).body.data.id as number;
  const session = (await plane.call('POST', '/api/auth/login', { body })).body.data.access_token as string;
  const { network, path } = await makePeer();
  await plane.call('POST', `${path}/enrollment-keys`, { token: session, body: { name: 'own' } });
  return { id, body, session, network };
}

const as = (method: string, path: string, body?: object, bearer = token) =>
  isDone(plane.call(method, path, { token: bearer, ...(body && { body }) }));

const deviceCodes = '/api/auth/device-codes';
const startDevice = async () => (await plane.call('POST', deviceCodes, { body: {} })).body.data;

const audited = { audit_entries: 1 } as const;
const withEvent = { ...audited, events: 1, changes: 1 } as const;

/** What the control plane writes, by requests and without one. */
const all: Readonly<Record<string, Written>> = {
  'a login': {
    adds: { ...audited, sessions: 1 },
    prepare: async () => {
      const { body } = await makeUser();
      return () => isDone(plane.call('POST', '/api/auth/login', { body }));
    },
  },
  'a login from a new address': {
    adds: { audit_entries: 2, sessions: 1, known_prefixes: 1 },
    prepare: async (db) => {
      const { id, body } = await makeUser();
      await db.updateTable('known_prefixes').set({ prefix: '192.0.2.0/24' }).where('user_id', '=', id).execute();
      return () => isDone(plane.call('POST', '/api/auth/login', { body }));
    },
  },
  'a refused login': {
    adds: audited,
    prepare: async () => async () => {
      const body = { email: owner.email, password: 'a wrong password' };
      return (await plane.call('POST', '/api/auth/login', { body })).status === 401;
    },
  },
  'a logout': {
    adds: { ...audited, sessions: -1 },
    prepare: async () => {
      const { session } = await makeUser();
      return () => as('POST', '/api/auth/logout', {}, session);
    },
  },
  'a password change': {
    adds: audited,
    prepare: async () => {
      const { session } = await makeUser();
      const body = { current_password: owner.password, new_password: 'another long password' };
      return () => as('PUT', '/api/auth/password', body, session);
    },
  },
  'a device code': {
    adds: { device_codes: 1 },
    prepare: async () => () => isDone(plane.call('POST', deviceCodes, { body: {} })),
  },
  'the approval of a device': {
    adds: audited,
    prepare: async () => {
      const { user_code } = await startDevice();
      return () => as('POST', `${deviceCodes}/${user_code}/approval`, { approve: true });
    },
  },
  'the login of a device': {
    adds: { ...audited, sessions: 1, device_codes: -1 },
    prepare: async () => {
      const { session } = await makeUser();
      const { device_code, user_code } = await startDevice();
      await as('POST', `${deviceCodes}/${user_code}/approval`, { approve: true }, session);
      return () => isDone(plane.call('POST', `${deviceCodes}/token`, { body: { device_code } }));
    },
  },
  'a personal token': {
    adds: { ...audited, personal_tokens: 1 },
    prepare: async () => () => as('POST', '/api/auth/tokens', { name: 'ci' }),
  },
  'the revocation of a token': {
    adds: { ...audited, personal_tokens: -1 },
    prepare: async () => {
      const made = await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' } });
      return () => as('DELETE', `/api/auth/tokens/${made.body.data.id}`);
    },
  },
  'a new user': {
    adds: { ...audited, users: 1 },
    prepare: async () => {
      const body = { email: `new-${randomBytes(4).toString('hex')}@example.net`, password: owner.password };
      return () => as('POST', '/api/users', { ...body, role: 'viewer' });
    },
  },
  'a user that becomes a viewer, and its keys': {
    adds: audited,
    prepare: async () => {
      const { id } = await makeUser();
      return () => as('PATCH', `/api/users/${id}`, { role: 'viewer' });
    },
  },
  'the removal of a user, and its keys': {
    adds: { ...audited, users: -1, sessions: -1, known_prefixes: -1 },
    prepare: async () => {
      const { id } = await makeUser();
      return () => as('DELETE', `/api/users/${id}`);
    },
  },
  'the end of the sessions of a user': {
    adds: { ...audited, sessions: -1 },
    prepare: async () => {
      const { id } = await makeUser();
      return () => as('DELETE', `/api/users/${id}/sessions`);
    },
  },
  'a new network': {
    adds: { ...audited, networks: 1, changes: 1 },
    prepare: async () => () => as('POST', '/api/networks', { name: 'n', private_cidr: '10.9.0.0/24' }),
  },
  'a change of a network': {
    adds: withEvent,
    prepare: async () => {
      const { path } = await makePeer();
      return () => as('PATCH', path, { name: 'moved' });
    },
  },
  'the deletion of a network': {
    adds: { ...audited, networks: -1, peers: -1, deleted_networks: 1, deleted_peers: 1 },
    prepare: async () => {
      const { path } = await makePeer();
      return () => as('DELETE', path);
    },
  },
  'an enrolment key': {
    adds: { ...audited, enrollment_keys: 1 },
    prepare: async () => {
      const { path } = await makePeer();
      return () => as('POST', `${path}/enrollment-keys`, { name: 'rack' });
    },
  },
  'an enrolment': {
    adds: { ...withEvent, peers: 1, enrollments: 1 },
    prepare: async () => {
      const { key } = await makePeer();
      const fields = { public_key: publicKey() };
      return () => isDone(enroll(plane, key, fields, 'attempt'));
    },
  },
  'a change of a peer': {
    adds: { ...audited, changes: 1, former_labels: 1 },
    prepare: async () => {
      const { peerPath } = await makePeer();
      return () => as('PATCH', peerPath, { name: 'moved' });
    },
  },
  'a suspension': {
    adds: withEvent,
    prepare: async () => {
      const { peerPath } = await makePeer();
      return () => as('PATCH', peerPath, { suspended: true });
    },
  },
  'the removal of a peer': {
    adds: { ...withEvent, peers: -1, returned_addresses: 1 },
    prepare: async () => {
      const { peerPath } = await makePeer();
      return () => as('DELETE', peerPath);
    },
  },
  'a report': {
    adds: { events: 1, peer_health: 1 },
    prepare: async () => {
      const { peerPath, peerToken } = await makePeer();
      return () => as('POST', `${peerPath}/report`, { problem: 'nft failed' }, peerToken);
    },
  },
  'an expiry': {
    adds: withEvent,
    prepare: async (db) => {
      const { id } = await makePeer();
      const expires_at = plane.clock.now().toISOString();
      // By a request, the control plane itself would expire it.
      await db.updateTable('peers').set({ expires_at }).where('id', '=', id).execute();
      return () =>
        expirePeers(contextOver(db, plane)).then(
          () => true,
          () => false,
        );
    },
  },
  'a verdict': {
    adds: { events: 1 },
    prepare: async (db) => {
      const { network, id } = await makePeer();
      await savePeerHealth(db, id, { last_seen: plane.clock.now().toISOString() });
      return async () => {
        const noted = Promise.withResolvers<unknown>();
        const failures = { note: (_part: unknown, error: unknown) => noted.resolve(error) };
        const presence = { silenceOf: () => null, setOnline: () => {} };
        const options = { keepsPresence: true, tickMs: 1e9, settleMs: 1, failures };
        const evaluator = new Evaluator(contextOver(db, plane), presence, options);
        evaluator.schedule(network);
        const error = await noted.promise;
        await evaluator.stop();
        return error === null;
      };
    },
  },
  'a clone': {
    adds: { events: 1 },
    prepare: async (db) => {
      const { network, id: peer } = await makePeer();
      const see = (id: string, minute: number) => {
        const instances = [{ id, since: plane.clock.now().getTime() + minute * 60_000 }];
        return observeInstances(
          contextOver(db, plane),
          [{ peer, network, instances }],
          plane.clock.now().getTime() + 1e7,
        );
      };
      for (const [minute, id] of ['a', 'b'].entries()) await see(id, minute);
      return () =>
        see('a', 2).then(
          () => true,
          () => false,
        );
    },
  },
  'messages for hosts': {
    adds: { peer_messages: 2 },
    prepare: async (db) => {
      const { network, id } = await makePeer();
      const other = await makePeer();
      const messages = new PeerMessages(contextOver(db, plane));
      const probe: PeerMessage = { kind: 'probe', data: { peers: [1] } };
      const to = [id, other.id].map((each) => [each, probe] as const);
      return () =>
        messages.send(network, to).then(
          () => true,
          () => false,
        );
    },
  },
  'facts about direct paths': {
    adds: { peer_endpoints: 1, peer_pairs: 1, peer_messages: 1 },
    prepare: async () => {
      const { key, path, peerToken } = await makePeer();
      const other = (await enroll(plane, key)).body.data.peer.id;
      return () => as('POST', `${path}/peers/self/paths`, { candidates: [], wanted: [other] }, peerToken);
    },
  },
};

/** Every row of every table, as text. */
async function dump(db: Kysely<Tables>): Promise<ReadonlyMap<string, readonly string[]>> {
  const tables = (await db.introspection.getTables()).map(({ name }) => name as keyof Tables);
  const rows = tables.toSorted().map(async (table) => {
    const all = await db.selectFrom(table).selectAll().execute();
    return [table, all.map((row) => JSON.stringify(row)).toSorted()] as const;
  });
  return new Map(await Promise.all(rows));
}

/** The rows that only one of them has. */
function compare(before: Awaited<ReturnType<typeof dump>>, after: Awaited<ReturnType<typeof dump>>): string[] {
  const rows = ([one, other]: readonly (typeof before)[]) =>
    [...(one ?? [])].flatMap(([table, all]) =>
      all.filter((row) => !other?.get(table)?.includes(row)).map((row) => `${table} ${row}`),
    );
  return [...rows([before, after]), ...rows([after, before])];
}

/** Fails one write of those that follow, or the commit of a transaction that wrote. Returns what ends that. */
function failWrite(which: number): () => void {
  let [writes, hasWritten] = [0, false];
  return statements.observe((sql, [channel]) => {
    // The control plane notifies itself now and then, to prove that notifications arrive.
    if (String(channel).startsWith('cpn_listener_')) return;
    const isWrite = /^(?:insert|update|delete|select pg_notify)/.test(sql);
    if (/^(?:begin|start)/.test(sql)) hasWritten = false;
    if (!isWrite && !(sql === 'commit' && hasWritten)) return;
    hasWritten = true;
    writes += 1;
    if (writes === which) throw new Error('the database is away');
  });
}

test.each(Object.entries(all))(
  '%s: whatever statement fails, nothing is written and no wait ends, or all is written',
  async (_what, { adds, prepare }) => {
    const notify = vi.spyOn(ChangeNotifier.prototype, 'notify');
    onTestFinished(() => notify.mockRestore());
    await withDatabase(plane.dataDir, async (db) => {
      const attempt = await prepare(db);
      const before = await dump(db);
      for (let failing = 1; ; failing += 1) {
        expect(failing).toBeLessThan(40);
        notify.mockClear();
        const stop = failWrite(failing);
        const isDone = await attempt();
        stop();
        const after = await dump(db);
        if (isDone) {
          const counts = Object.keys(adds).map((table) => [
            table,
            (after.get(table)?.length ?? 0) - (before.get(table)?.length ?? 0),
          ]);
          expect(Object.fromEntries(counts)).toEqual(adds);
          // At least one failed before, and the commit.
          expect(failing).toBeGreaterThan(2);
          return;
        }
        expect(compare(before, after)).toEqual([]);
        expect(notify.mock.calls).toEqual([]);
      }
    });
  },
);
