import { expect, onTestFinished, test } from 'vitest';
import { ChangeNotifier } from '../../../../src/control-plane/push/change-notifier.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { eventually } from '../../../lab/eventually.ts';
import { enroll, makeKey, makeNetwork, type Reply, startPlane } from '../../harness.ts';
import { asSuperuser, startPostgres, urlOf } from '../../postgres-server.ts';
import { changed, long, outcome, untilWaiting } from '../../push/long-poll.ts';

test('a kill -9 of PostgreSQL loses nothing that was acknowledged; when it is back, all goes on', async () => {
  const server = await startPostgres();
  onTestFinished(server.remove);
  await asSuperuser(server, (client) => client.query('create database net'));
  const notifier = new ChangeNotifier();
  const plane = await startPlane({ database: new Secret(urlOf(server, 'net')), notifier });
  const login = { email: 'owner@example.net', password: 'correct horse battery staple' };
  const token = (await plane.call('POST', '/api/auth/login', { body: login })).body.data.access_token;
  const network = await makeNetwork(plane, token);
  const keys = await Promise.all(Array.from({ length: 20 }, () => makeKey(plane, token, network)));
  const quiet = await makeNetwork(plane, token);
  const path = `/api/networks/${quiet}`;
  const etag = (await plane.call('GET', path, { token })).headers.get('etag') ?? '';
  const waiting = plane.call('GET', path, { token, headers: { prefer: long, 'if-none-match': etag } });
  await untilWaiting({ plane, notifier, token }, quiet);

  const acknowledged: Reply[] = [];
  const others: Reply[] = [];
  let crashed: Promise<void> | undefined;
  await Promise.all(
    keys.flatMap((key) =>
      Array.from({ length: 10 }, async (_, index) => {
        const reply = await enroll(plane, key, {}, `attempt-${index}`);
        (reply.status === 201 ? acknowledged : others).push(reply);
        if (acknowledged.length >= 40) crashed ??= server.crash();
      }),
    ),
  );
  await crashed;
  expect(acknowledged.length).toBeLessThan(200);
  expect([...new Set(others.map(({ status }) => status))].filter((status) => status !== 503 && status !== 504)).toEqual(
    [],
  );
  for (const { status, headers } of others) expect(headers.get('retry-after')).toBe(status === 503 ? '1' : null);
  expect((await plane.call('GET', '/readyz')).status).toBe(503);
  expect((await plane.call('GET', '/healthz')).status).toBe(200);

  // What the killed processes held is given up a moment after them.
  await eventually('PostgreSQL starts again', () => server.restart().then(() => true));
  await eventually('the control plane works again', async () => (await plane.call('GET', '/readyz')).status === 200);
  const { data } = (await plane.call('GET', `/api/networks/${network}`, { token })).body;
  for (const { body } of acknowledged) expect(data.peers).toContainEqual(body.data.peer);
  const listed = await plane.call('GET', `/api/networks/${network}/enrollment-keys?all=true`, { token });
  const uses = listed.body.data.map((key: { uses: number }) => key.uses);
  expect(uses.reduce((sum: number, each: number) => sum + each, 0)).toBe(data.peers.length);

  await plane.call('PATCH', `/api/networks/${quiet}`, { token, body: { name: 'moved' } });
  expect(outcome(await waiting)).toEqual(changed(2));
});
