import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../lab/eventually.ts';
import { makeKey, makeNetwork, type Plane, publicKey, startPlane, withDatabase } from '../harness.ts';

/** More than the kernel takes off the hands of a server whose client does not read. */
const bytes = 12 * 1024 * 1024;

/** A client that has sent a request and has not read what has come of the reply. */
async function askSlowly({ url }: Plane, head: readonly string[], body = ''): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.write([...head, 'Host: x', `Content-Length: ${body.length}`, '', body].join('\r\n'));
  await once(socket, 'readable');
  return socket;
}

/** Reads to the end of the connection; gives the status, and how many bytes of the body came of how many. */
async function read(socket: Socket) {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('error', () => undefined);
  await once(socket, 'close');
  const all = Buffer.concat(chunks);
  const end = all.indexOf('\r\n\r\n');
  const head = all.subarray(0, end).toString();
  const promised = Number(/content-length: (\d+)/i.exec(head)?.[1]);
  return { status: Number(head.split(' ')[1]), missing: promised - (all.length - end - 4), isLarge: promised >= bytes };
}

/** Passes when no connection is accepted any more. */
async function untilClosed({ url }: Plane): Promise<void> {
  await eventually('no connection is accepted', () =>
    fetch(`${url}/healthz`).then(
      () => false,
      () => true,
    ),
  );
}

async function makeLargeNetwork(options: Parameters<typeof startPlane>[0] = {}) {
  const plane = await startPlane(options);
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  const description = 'x'.repeat(bytes);
  await withDatabase(plane.dataDir, (db) => db.updateTable('networks').set({ description }).execute());
  return { plane, token, network, key };
}

test('replies under way are sent in full to clients that read slowly, and only then does it close', async () => {
  const { plane, token, network, key } = await makeLargeNetwork();
  const authorization = `Authorization: Bearer ${token}`;
  const enrollment = JSON.stringify({ enrollment_token: key, name: 'edge', public_key: publicKey() });
  const slow = [
    await askSlowly(plane, [`GET /api/networks/${network} HTTP/1.1`, authorization]),
    await askSlowly(plane, ['GET /api/networks HTTP/1.1', authorization]),
    await askSlowly(
      plane,
      ['POST /api/networks/enroll HTTP/1.1', 'Content-Type: application/json', 'Idempotency-Key: once'],
      enrollment,
    ),
  ];
  const closing = plane.server.close();
  await untilClosed(plane);
  const replies = await Promise.all(slow.map(read));
  expect(replies).toEqual([200, 200, 201].map((status) => ({ status, missing: 0, isLarge: true })));
  await closing;
});

test.each([
  ['the deadline', 100],
  // Fastify gives a hook 10 s by default, and would end the program with an error.
  ['a deadline as long as the usual one', 10_300],
])('a client that does not read at all is waited for no longer than %s', async (_, closing) => {
  const { plane, token } = await makeLargeNetwork({ deadlines: { closing } });
  const slow = await askSlowly(plane, ['GET /api/networks HTTP/1.1', `Authorization: Bearer ${token}`]);
  await plane.server.close();
  expect((await read(slow)).missing).toBeGreaterThan(0);
});
