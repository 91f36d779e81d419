/**
 * A control plane that sends true replies until it is ordered to send a malicious one:
 * `node malicious-server-program.ts ADDRESS PORT`. It writes to the socket itself, since many of its replies are no HTTP.
 * Its orders name a malicious reply and the host, or none; it prints a line for each malicious reply sent.
 *
 * @module
 */
import { createServer, type Socket } from 'node:net';
import { followOrders } from '../lab/orders.ts';
import { describeForeign } from '../plain/foreign-description.ts';
import { maliciousReplies } from './malicious-replies.ts';
import type { HostRequest, MaliciousReply } from './malicious-reply.ts';
import type { ServerOrder } from './malicious-server.ts';
import { enrolment, network, trueRevision } from './true-replies.ts';
import { jsonType, raw } from './wire.ts';

const [address, port] = process.argv.slice(2);
const known = new Map(maliciousReplies.map((reply) => [reply.name, reply]));
let reply: MaliciousReply | undefined;
let self = '';

createServer((socket) => {
  socket.on('error', () => {});
  let received = Buffer.alloc(0);
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    const request = readRequest(received.toString('latin1'));
    if (request === null) return;
    socket.removeAllListeners('data').resume();
    answer(socket, request).catch((error: Error) => {
      process.stderr.write(`${error.stack}\n`);
      socket.destroy();
    });
  });
}).listen(Number(port), address, () => process.stdout.write('listening\n'));

await followOrders<ServerOrder>((order) => {
  reply = order.reply === null ? undefined : known.get(order.reply);
  if (order.reply !== null && reply === undefined) throw new Error(`there is no reply ${order.reply}`);
  self = order.self;
});

interface Request extends HostRequest {
  readonly to: MaliciousReply['to'] | 'other';
  readonly isDescription?: boolean;
}

/** The description has every extension, so that hosts use them all. */
const everything = {
  enroll: ['Idempotency-Key', 'Peer-Identity-Key', 'Network-Secret-Tag'],
  read: ['If-None-Match', 'Prefer', 'A-IM'],
  change: ['name', 'endpoint', 'public_key', 'key_proof', 'withdrawn', 'network_secret_tag'],
  removal: true,
};

/** A whole request; null while some of it is still to come. */
function readRequest(text: string): Request | null {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const head = text.slice(0, end);
  const field = (name: string) => new RegExp(`^${name}: *(.*)$`, 'im').exec(head)?.[1];
  const body = text.slice(end + 4);
  if (body.length < Number(field('content-length') ?? 0)) return null;
  const [method, path] = head.split(' ');
  if (method === 'POST' && path === '/api/networks/enroll') {
    const { public_key, enrollment_token } = JSON.parse(body);
    return { to: 'enrolment', self: public_key, secret: enrollment_token, revision: null };
  }
  const secret = field('authorization')?.replace(/^Bearer /, '') ?? '';
  const isMap = method === 'GET' && path === '/api/networks/7';
  const isDescription = path === '/docs/api/openapi.json';
  return { to: isMap ? 'map' : 'other', isDescription, self, secret, revision: field('if-none-match') ?? null };
}

async function answer(socket: Socket, request: Request): Promise<void> {
  if (reply?.to !== request.to) {
    socket.end(trueReply(request));
    return;
  }
  process.stdout.write(`sent ${reply.name}\n`);
  const { bytes, ending } = reply.make(request);
  for (const chunk of bytes) await write(socket, chunk);
  if (ending === 'end') socket.end();
  if (ending === 'reset') socket.resetAndDestroy();
  if (ending !== 'drip') return;
  const timer = setInterval(() => socket.write(' '), 200);
  socket.on('close', () => clearInterval(timer));
}

/** Waits while the other side is slow to read, and not at all for one that is gone. */
async function write(socket: Socket, chunk: Buffer): Promise<void> {
  if (socket.destroyed || socket.write(chunk)) return;
  await new Promise<void>((resolve) => {
    socket.once('drain', resolve).once('close', resolve);
  });
}

function trueReply(request: Request): Buffer {
  if (request.isDescription) return raw({ headers: [jsonType], body: JSON.stringify(describeForeign(everything)) });
  if (request.to === 'other') return raw({ status: '204 No Content', headers: [], measured: false });
  if (request.to === 'enrolment') {
    return raw({ status: '201 Created', body: JSON.stringify({ data: enrolment(request) }) });
  }
  const etag = `ETag: ${trueRevision}`;
  if (request.revision === trueRevision) return raw({ status: '304 Not Modified', headers: [etag], measured: false });
  return raw({ headers: [jsonType, etag], body: JSON.stringify({ data: network(request) }) });
}
