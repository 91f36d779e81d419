import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Caller } from '../../../src/control-plane/domain/caller.ts';
import { createWaiting, createWaitLimit, maxWaits } from '../../../src/control-plane/http/waiting.ts';
import { closePlane, enroll, startPlane } from '../harness.ts';
import { connectRaw } from '../raw.ts';
import {
  changed,
  long,
  makeOffice,
  openWaiting,
  outcome,
  read,
  tagged,
  unchanged,
  untilWaiting,
  type Waiting,
} from './long-poll.ts';

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
    expect(on.notifier.count()).toBe(0);
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

test('one more wait than a peer may have ends its oldest one, as if that had not waited, and its connection', async () => {
  const { network, key, peerToken } = await makeOffice(on);
  const other = (await enroll(on.plane, key)).body.data.access_token;
  const most = maxWaits.peer;
  const others = [read(on, network, 3, long), read(on, network, 3, long, other)];
  await untilWaiting(on, network, 2);
  const replies = [];
  for (let count = 1; count <= most + 2; count += 1) {
    replies.push(read(on, network, 3, long, peerToken));
    await untilWaiting(on, network, 2 + Math.min(count, most));
    const ended = replies[count - most - 1];
    if (ended === undefined) continue;
    expect(outcome(await ended)).toEqual([304, '"3"', null, undefined]);
    expect((await ended).headers.get('connection')).toBe('close');
  }
  await call('PATCH', `${network}`, { name: 'moved' });
  for (const reply of [...others, ...replies.slice(2)]) expect(outcome(await reply)).toEqual(changed(4));
  // All of them are let go: as many wait again.
  const again = Array.from({ length: most }, () => read(on, network, 4, long, peerToken));
  await untilWaiting(on, network, most);
  await call('PATCH', `${network}`, { name: 'back' });
  for (const reply of await Promise.all(again)) expect(outcome(reply)).toEqual(changed(5));
});

test('a user may have more waits than a peer with the same id, and not any number', () => {
  const addWait = createWaitLimit({ peer: 1, user: 2 });
  const ended: string[] = [];
  const hold = (kind: 'peer' | 'user', what: string) =>
    addWait({ kind, peerId: 1, userId: 1 } as unknown as Caller, () => ended.push(what));
  hold('user', 'first');
  const letGo = hold('user', 'second');
  hold('peer', 'host');
  letGo();
  hold('user', 'third');
  expect(ended).toEqual([]);
  hold('user', 'fourth');
  expect(ended).toEqual(['first']);
});

describe('the waits of a peer', () => {
  const caller = { kind: 'peer', peerId: 1 } as Caller;

  /** Runs a request of the peer; its reply, its headers, and whether its wait has ended. */
  function request(wait: ReturnType<typeof createWaiting>, seconds: number | null, work: () => Promise<string>) {
    const raw = Object.assign(new EventEmitter(), { destroyed: false });
    const headers: Record<string, unknown> = {};
    const header = (name: string, value: unknown) => {
      headers[name] = value;
    };
    const state = { isOver: false };
    const reply = wait({ caller }, { raw, header } as never, seconds, async ({ signal }) => {
      state.isOver = signal.aborted;
      signal.addEventListener('abort', () => {
        state.isOver = true;
      });
      return work();
    });
    return { reply, headers, state, listeners: () => raw.listenerCount('close') };
  }

  const most = Array.from({ length: maxWaits.peer });

  test('do not end by requests that do not wait', async () => {
    const wait = createWaiting();
    const end = Promise.withResolvers<string>();
    const waiting = most.map(() => request(wait, 30, () => end.promise));
    for (const seconds of [null, 0]) expect(await request(wait, seconds, async () => 'now').reply).toBe('now');
    expect(waiting.map(({ state }) => state.isOver)).toEqual(most.map(() => false));
    end.resolve('later');
    await Promise.all(waiting.map(({ reply }) => reply));
    expect(waiting.map(({ headers, listeners }) => [headers['preference-applied'], listeners()])).toEqual(
      most.map(() => ['wait=30', 0]),
    );
  });

  test('that fail count no longer', async () => {
    const wait = createWaiting();
    for (const _ of most) {
      const failing = request(wait, 30, () => Promise.reject(new Error('no database')));
      await expect(failing.reply).rejects.toThrow('no database');
      expect([failing.state.isOver, failing.listeners()]).toEqual([true, 0]);
    }
    const end = Promise.withResolvers<string>();
    const waiting = most.map(() => request(wait, 30, () => end.promise));
    expect(waiting.map(({ state }) => state.isOver)).toEqual(most.map(() => false));
    end.resolve('later');
    await Promise.all(waiting.map(({ reply }) => reply));
  });
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
      expect(outcome(reply)).toEqual(unchanged(2, 45));
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
