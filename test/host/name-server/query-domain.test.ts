import { createSocket } from 'node:dgram';
import { setTimeout as sleep } from 'node:timers/promises';
import { decode, encode } from 'dns-packet';
import { expect, it, onTestFinished } from 'vitest';
import { queryDomain } from '../../../src/host/name-server/forward.ts';
import { address } from '../../core/samples.ts';

const [one, two, here] = ['127.0.0.31', '127.0.0.32', '127.0.0.33'].map((text) => address(text)) as [
  ReturnType<typeof address>,
  ReturnType<typeof address>,
  ReturnType<typeof address>,
];

/** A server at a loopback address, which replies with this RCODE; null for no reply. */
async function serve(host: string, rcode: number | null, { port = 0, delayMs = 0, records = 0 } = {}) {
  const questions: string[] = [];
  const socket = createSocket('udp4');
  let isOpen = true;
  onTestFinished(() => {
    isOpen = false;
    socket.close();
  });
  socket.on('message', async (message, { address: from, port: to }) => {
    const { id, questions: asked = [] } = decode(message);
    questions.push(...asked.map(({ type, name }) => `${type} ${name} from ${from}`));
    if (rcode === null) return;
    await sleep(delayMs);
    const reply = encode({ type: 'response', id: id ?? 0, flags: rcode, questions: asked });
    reply.writeUInt16BE(records, 6);
    if (isOpen) socket.send(reply, to, from);
  });
  await new Promise<void>((bound) => socket.bind(port, host, bound));
  return { port: socket.address().port, questions };
}

it.each([
  ['NOERROR', 0, null],
  ['FORMERR', 1, 'FORMERR'],
  ['SERVFAIL', 2, 'SERVFAIL'],
  ['NXDOMAIN', 3, null],
  ['NOTIMP', 4, 'NOTIMP'],
  ['REFUSED', 5, 'REFUSED'],
  ['NOTAUTH', 9, 'NOTAUTH'],
  ['a code without a name', 15, 'RCODE15'],
])('the reply of a server is %s', async (_, rcode, failure) => {
  const { port, questions } = await serve(one, rcode);
  expect(await queryDomain([one], 'corp.example', here, port)).toBe(failure);
  expect(questions).toEqual([`SOA corp.example from ${here}`]);
});

it('a server whose reply cannot be read', async () => {
  const { port } = await serve(one, 0, { records: 5 });
  expect(await queryDomain([one], 'corp.example', here, port)).toBe('unreadable');
});

it('one server of several answers', async () => {
  const { port } = await serve(one, 5);
  await serve(two, 0, { port });
  expect(await queryDomain([one, two], 'corp.example', here, port)).toBeNull();
});

it('a server that refuses the port, and one without a reply, are silent', async () => {
  expect(await queryDomain([one], 'corp.example', here, 9)).toBe('silent');
  const { port } = await serve(one, null);
  expect(await queryDomain([one], 'corp.example', here, port)).toBe('silent');
});

it('a server that takes 3.5 s answers', async () => {
  const { port } = await serve(one, 0, { delayMs: 3_500 });
  expect(await queryDomain([one], 'corp.example', here, port)).toBeNull();
});
