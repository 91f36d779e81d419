import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { closePlane, startPlane } from './harness.ts';
import { connectRaw } from './raw.ts';
import {
  long,
  makeOffice,
  openWaiting,
  outcome,
  read,
  tagged,
  unchanged,
  untilWaiting,
  type Waiting,
} from './waiting.ts';

let on: Waiting;
beforeAll(async () => {
  on = await openWaiting();
});
afterAll(() => closePlane(on.plane));

const call = (method: string, path: string, body?: object) =>
  on.plane.call(method, `/api/networks/${path}`, { token: on.token, body });

describe('after the wait, access is looked at again', () => {
  test('a peer that was removed gets a 401', async () => {
    const { network, peer, peerToken } = await makeOffice(on);
    const reply = read(on, network, 2, long, peerToken);
    await untilWaiting(on, network);
    await call('DELETE', `${network}/peers/${peer}`);
    expect((await reply).status).toBe(401);
  });

  test('a session that was closed gets a 401, also when nothing changed', async () => {
    const { network } = await makeOffice(on);
    const session = await on.plane.signIn('viewer');
    const reply = read(on, network, 2, 'wait=1', session);
    await untilWaiting(on, network);
    await on.plane.call('POST', '/api/auth/logout', { token: session });
    expect((await reply).status).toBe(401);
  });

  test('a network that was deleted is a 404, to its peers too', async () => {
    const { network, peerToken } = await makeOffice(on);
    const replies = [read(on, network, 2, long), read(on, network, 2, long, peerToken)];
    await untilWaiting(on, network, 2);
    await call('DELETE', `${network}`);
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([404, 404]);
    expect((await read(on, network, 2, long, peerToken)).status).toBe(401);
  });

  test('who may not see the network never waits', async () => {
    const { network } = await makeOffice(on);
    const foreign = await on.plane.signIn('owner', await on.plane.addOrganization('other'));
    expect((await read(on, network, 2, long, foreign)).status).toBe(404);
    expect((await read(on, network, 2, long, 'cpp_none')).status).toBe(401);
    expect(on.waiters.count()).toBe(0);
  });
});

test('clients that go away leave no waiter behind', async () => {
  const { network } = await makeOffice(on);
  const leave = new AbortController();
  const known = await tagged(on.plane, network, '"2"');
  const headers = { prefer: long, 'if-none-match': known, authorization: `Bearer ${on.token}` };
  const replies = Array.from({ length: 20 }, () =>
    fetch(`${on.plane.url}/api/networks/${network}`, { headers, signal: leave.signal }).catch(() => 'left'),
  );
  await untilWaiting(on, network, 20);
  leave.abort();
  expect(new Set(await Promise.all(replies))).toEqual(new Set(['left']));
  await untilWaiting(on, network, 0);
  expect(on.plane.log()).not.toContain('request failed');
});

describe('closing the control plane', { timeout: 20_000 }, () => {
  test('ends all waits with a 304, and keeps no connection', async () => {
    const closing = await openWaiting();
    onTestFinished(() => closePlane(closing.plane));
    const { network } = await makeOffice(closing);
    const replies = Array.from({ length: 20 }, () => read(closing, network, 2, long));
    await untilWaiting(closing, network, 20);
    await closing.plane.server.close();
    for (const reply of await Promise.all(replies)) {
      expect(outcome(reply)).toEqual(unchanged(2, 50));
      expect(reply.headers.get('connection')).toBe('close');
    }
    expect(closing.plane.log()).not.toContain('request failed');
  });

  test('does not wait for a connection on which nothing was asked', async () => {
    const closing = await startPlane();
    const { hostname, port } = new URL(closing.url);
    const idle = connect(Number(port), hostname);
    await once(idle, 'connect');
    // By now the server has it too.
    await closing.call('GET', '/healthz');
    const ended = once(idle, 'close');
    await closing.server.close();
    await ended;
  });

  test('does not wait for what is under way for too long', async () => {
    const closing = await startPlane({ deadlines: { closing: 100 } });
    const slow = await connectRaw(closing.url);
    slow.send('POST /api/auth/login HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n');
    slow.send('Content-Type: application/json\r\nContent-Length: 2\r\n\r\n');
    await slow.until('100 Continue');
    await closing.server.close();
    expect(await slow.ended()).not.toContain('HTTP/1.1 4');
    expect(closing.log()).not.toContain('request failed');
  });
});
