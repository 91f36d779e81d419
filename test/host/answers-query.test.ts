import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { parseAddress } from '../../src/core/net/cidr.ts';
import { answersQuery } from '../../src/host/probes.ts';

/** Serves DNS at an address: replies to each query with this code, or not at all. */
async function serve(address: string, code: number | null): Promise<void> {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  socket.on('message', (query, { port, address: from }) => {
    if (code === null) return;
    const reply = Buffer.from(query);
    reply[2] = 0x80 | (query[2] ?? 0);
    reply[3] = code;
    socket.send(reply, port, from);
  });
  await once(socket.bind(53, address), 'listening');
}

it.each([
  ['no error', 0],
  ['a failure of its own', 2],
  ['a refusal', 5],
])('a resolver answers also where its reply is %s', async (_, code) => {
  await serve('127.77.0.53', code);
  expect(await answersQuery(parseAddress('127.77.0.53'), 5_000)).toBe(true);
});

it('a resolver that is silent, and one that does not listen, of either family, does not answer', async () => {
  await serve('127.77.0.54', null);
  expect(await answersQuery(parseAddress('127.77.0.54'), 300)).toBe(false);
  expect(await answersQuery(parseAddress('127.77.0.55'), 5_000)).toBe(false);
  expect(await answersQuery(parseAddress('::1'), 5_000)).toBe(false);
});
