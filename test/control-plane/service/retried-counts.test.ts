import { expect, onTestFinished, test } from 'vitest';
import { enroll, makeKey, makeNetwork, type Plane, quiet, startPlane, withDatabase } from '../harness.ts';
import { controlStatements } from '../held-statements.ts';

const statements = controlStatements();

interface Actor {
  readonly plane: Plane;
  readonly key: string;
  readonly path: string;
  readonly network: number;
  readonly own: string;
}

interface Counted {
  /** A statement of the change, after it was counted. */
  readonly statement: RegExp;
  /** Makes the change for this time; true if it is within its limit. */
  act(actor: Actor, time: number): Promise<boolean>;
}

const countEvents = ({ plane, network }: Actor) =>
  withDatabase(plane.dataDir, async (db) => {
    const events = db.selectFrom('events').select('id').where('network_id', '=', network);
    return (await events.where('type', 'in', ['reconcile.failing', 'reconcile.recovered']).execute()).length;
  });

/** What counts against a limit within a transaction, which may run again. */
const counted: Readonly<Record<string, Counted>> = {
  'a change of a peer by itself': {
    statement: /^update "peers"/,
    act: async ({ plane, path, own }, time) =>
      (await plane.call('PATCH', path, { token: own, body: { name: `n${time}` } })).status === 200,
  },
  'an enrolment': {
    statement: /^insert into "events"/,
    act: async ({ plane, key }) => (await enroll(plane, key)).status === 201,
  },
  'an event of a report': {
    statement: /^insert into "events"/,
    act: async (actor, time) => {
      const { plane, path, own } = actor;
      const before = await countEvents(actor);
      const body = { problem: time % 2 === 0 ? 'nft failed' : null };
      await plane.call('POST', `${path}/report`, { token: own, body });
      return (await countEvents(actor)) > before;
    },
  },
  'a mark as a follower of the relay': {
    statement: /^update "peer_health" set "follows_relay" = \S+, "enforces_rules" = \S+ where "peer_id"/,
    act: async ({ plane, path, network, own }) => {
      const report = (follows_relay: boolean) =>
        plane.call('POST', `${path}/report`, { token: own, body: { follows_relay } });
      // The limit of all reports is another one.
      plane.clock.advance(4_000);
      await report(true);
      const marks = await withDatabase(plane.dataDir, (db) =>
        db.selectFrom('peer_health').select('follows_relay').where('network_id', '=', network).execute(),
      );
      await report(false);
      return marks.some(({ follows_relay }) => follows_relay === 1);
    },
  },
};

test.each(Object.entries(counted))('%s counts once, however often its transaction runs', async (_what, each) => {
  const limits = { peerChanges: 2, peerReports: 2, userChanges: 2 };
  const plane = await startPlane({ limits, healthTimes: quiet });
  const minute = 60_000;
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  plane.clock.advance(minute);
  const key = await makeKey(plane, token, network);
  const { peer, access_token: own } = (await enroll(plane, key)).body.data;
  plane.clock.advance(minute);
  const actor = { plane, key, path: `/api/networks/${network}/peers/${peer.id}`, network, own };
  for (const time of [0, 1]) {
    let conflicts = 0;
    const stop = statements.observe((sql) => {
      if (!each.statement.test(sql) || conflicts === 3) return;
      conflicts += 1;
      throw Object.assign(new Error('could not serialize access'), { code: '40001', severity: 'ERROR' });
    });
    onTestFinished(stop);
    expect(await each.act(actor, time)).toBe(true);
    stop();
    expect(conflicts).toBe(3);
  }
  expect(await each.act(actor, 2)).toBe(false);
});
