import { EventEmitter } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import type { PeerMessage } from '../../../src/contract/network.ts';
import { createConditionalRead } from '../../../src/control-plane/http/conditional-read.ts';
import type { PollRequest, PollResult } from '../../../src/control-plane/push/long-poll.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';

const revision = { revision: 3, nonce: 'q83vEjRWeJq8', at: 1 };
const etag = '"3-q83vEjRWeJq8"';
const message: PeerMessage = { kind: 'probe', data: { peers: [7] } };

/** A conditional read with a message in its inbox, whose poll has this result; what became of it. */
async function read(found: (poll: PollRequest) => Promise<PollResult | null>, messages = [message]) {
  const caller = { kind: 'peer', peerId: 1 };
  const request = { caller, headers: { 'if-none-match': etag, prefer: 'wait=30' }, raw: {} };
  const sent: unknown[] = [];
  const headers: Record<string, unknown> = {};
  const reply = {
    raw: Object.assign(new EventEmitter(), { destroyed: false }),
    header: (name: string, value: unknown) => {
      headers[name] = value;
      return reply;
    },
    code: (status: number) => {
      sent.push(status);
      return reply;
    },
    send: () => reply,
    hijack: () => void sent.push('hijacked'),
  };
  const subscribers = new Set<() => void>();
  let taken = 0;
  const inbox = {
    subscribe: (end: () => void) => {
      subscribers.add(end);
      return () => void subscribers.delete(end);
    },
    hasReceipts: false,
    read: async () => {
      taken += 1;
      return { messages, receipt: '1' };
    },
  };
  const current: number[] = [];
  const poll = async (_caller: unknown, _id: number, asked: PollRequest) => {
    asked.isCurrent(revision);
    return found(asked);
  };
  const conditionally = createConditionalRead({} as Context, poll, (_request, at) => void current.push(at.revision));
  const result = await conditionally(
    request as unknown as FastifyRequest,
    reply as unknown as FastifyReply,
    1,
    inbox,
  ).catch((error: Error) => error.message);
  return {
    result,
    sent,
    headers,
    current,
    taken,
    subscribers: subscribers.size,
    listeners: reply.raw.listenerCount('close'),
  };
}

/** After each request. */
const released = { subscribers: 0, listeners: 0 };

test('messages come with the revision that the caller has', async () => {
  const reply = await read(async () => ({ revision, isUnchanged: true }));
  expect(reply).toMatchObject({
    result: { revision, batch: { messages: [message], receipt: '1' } },
    sent: [],
    current: [3],
    ...released,
  });
});

test('messages stay in the inbox where the revision is another one: a whole map has none', async () => {
  const reply = await read(async () => ({ revision, isUnchanged: false }));
  expect(reply).toMatchObject({ result: { revision, batch: { messages: [] } }, sent: [], taken: 0, ...released });
});

test('without a change and a message it is a 304 that names the revision', async () => {
  const reply = await read(async () => ({ revision, isUnchanged: true }), []);
  expect(reply).toMatchObject({ result: null, sent: [304], headers: { etag }, ...released });
});

test('a client that has disconnected gets nothing, and its messages stay', async () => {
  const reply = await read(async () => null);
  expect(reply).toMatchObject({ result: null, sent: ['hijacked'], taken: 0, ...released });
});

test('a failure leaves the inbox too', async () => {
  const reply = await read(() => Promise.reject(new Error('the database does not answer')));
  expect(reply).toMatchObject({ result: 'the database does not answer', taken: 0, ...released });
});
