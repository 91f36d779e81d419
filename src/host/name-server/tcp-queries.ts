import { createServer, type Server, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { mostBytes } from './message.ts';

/**
 * Any user of the host may open connections. One more ends the first one without a query, so that
 * the host's resolver still gets its reply.
 */
const mostConnections = 32;
/** Milliseconds until a connection without a further reply is closed. Bytes do not prolong it. */
const idleMs = 5_000;
/** The bytes of the length in front of each message (RFC 1035, 4.2.2). */
const prefixBytes = 2;

/** A server of queries over TCP. */
export interface TcpQueries {
  readonly server: Server;
  /** Closes the connections too. */
  close(): Promise<void>;
}

/**
 * Creates a server that replies to the messages of each connection in turn. It does not listen yet.
 * `reply` returns null for a message without a reply.
 */
export function createTcpQueries(
  isAllowed: (source: string) => boolean,
  reply: (message: Buffer) => Promise<Buffer | null>,
): TcpQueries {
  const open = new Set<Socket>();
  const busy = new Set<Socket>();
  // Half open, because a client may end its side before the last replies.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    const source = socket.remoteAddress;
    if (source === undefined || !isAllowed(source)) return void socket.destroy();
    const [oldest] = open;
    const ending = [...open].find((each) => !busy.has(each)) ?? oldest;
    if (ending !== undefined && open.size >= mostConnections) {
      open.delete(ending);
      ending.destroy();
    }
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    void serveConnection(socket, async (message) => {
      busy.add(socket);
      return reply(message).finally(() => busy.delete(socket));
    });
  });
  const close = () =>
    new Promise<void>((closed) => {
      server.close(() => closed());
      for (const socket of open) socket.destroy();
    });
  return { server, close };
}

async function serveConnection(socket: Socket, reply: (message: Buffer) => Promise<Buffer | null>): Promise<void> {
  const deadline = setTimeout(() => socket.destroy(), idleMs);
  socket.once('close', () => clearTimeout(deadline));
  const replies = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const message of splitMessages(chunks)) {
      const replied = await reply(message);
      if (replied === null) continue;
      deadline.refresh();
      const prefix = Buffer.alloc(prefixBytes);
      prefix.writeUInt16BE(replied.length);
      yield Buffer.concat([prefix, replied]);
    }
  };
  // A client that does not read its replies stops the pipeline.
  await pipeline(socket, replies, socket).catch(() => socket.destroy());
}

/** Ends at a message that is longer than any query. */
async function* splitMessages(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= prefixBytes) {
      const end = prefixBytes + rest.readUInt16BE(0);
      if (end > prefixBytes + mostBytes) return;
      if (rest.length < end) break;
      yield rest.subarray(prefixBytes, end);
      rest = rest.subarray(end);
    }
  }
}
