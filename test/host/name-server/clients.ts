import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { decode, encode, type Packet, streamEncode } from 'dns-packet';

/** The bytes of a query. `changes` may replace each of its fields. */
export function queryOf(name: string, type = 'A', changes: Packet = {}): Buffer {
  return encode({ ...packetOf(name, type), ...changes });
}

/** The same with the length in front, as over TCP. */
export function framedQueryOf(name: string, type = 'A', changes: Packet = {}): Buffer {
  return streamEncode({ ...packetOf(name, type), ...changes });
}

function packetOf(name: string, type: string): Packet {
  return { type: 'query', id: 77, flags: 0x100, questions: [{ name, type: type as 'A', class: 'IN' }] };
}

/** The EDNS record of a client that takes so many bytes. */
export function edns(udpPayloadSize: number, changes: { ednsVersion?: number; flags?: number } = {}) {
  const fields = { extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [], ...changes };
  return { type: 'OPT' as const, name: '.', udpPayloadSize, ...fields };
}

/** A message of a header with these counts, and what follows it. */
export function messageOf(counts: readonly number[], rest: Buffer = Buffer.alloc(0), flags = 0): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(77, 0);
  header.writeUInt16BE(flags, 2);
  for (const [at, count] of counts.entries()) header.writeUInt16BE(count, 4 + 2 * at);
  return Buffer.concat([header, rest]);
}

/** The RCODE of a reply, without the bits in its OPT record. */
export function rcodeOf(reply: Buffer): number {
  return reply.readUInt16BE(2) & 15;
}

/** The first `expected` replies over UDP, or all that arrive before the deadline. */
export async function askUdp(
  port: number,
  messages: readonly Buffer[],
  { expected = 1, within = 2_000, from = '127.0.0.1' } = {},
): Promise<Buffer[]> {
  const socket = createSocket('udp4');
  const replies: Buffer[] = [];
  try {
    await new Promise<void>((bound) => socket.bind(0, from, bound));
    const all = new Promise<void>((done) => {
      socket.on('message', (reply) => {
        replies.push(reply);
        if (replies.length >= expected) done();
      });
    });
    for (const message of messages) socket.send(message, port, '127.0.0.1');
    await Promise.race([all, sleep(within)]);
    return replies;
  } finally {
    socket.close();
  }
}

/** A client over TCP, with all that it received. */
export async function connectTcp(port: number, from = '127.0.0.1') {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  const received: Buffer[] = [];
  let isClosed = false;
  const closed = new Promise<void>((done) => {
    socket.once('close', () => {
      isClosed = true;
      done();
    });
  });
  socket.on('error', () => {});
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  await Promise.race([new Promise((done) => socket.once('connect', done)), closed]);
  return {
    socket,
    closed,
    isClosed: () => isClosed,
    replies: () => splitReplies(Buffer.concat(received)),
  };
}

/** All complete replies of the stream. */
function splitReplies(stream: Buffer): Buffer[] {
  const replies: Buffer[] = [];
  for (let rest = stream; rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0); ) {
    const end = 2 + rest.readUInt16BE(0);
    replies.push(rest.subarray(2, end));
    rest = rest.subarray(end);
  }
  return replies;
}

/** The data of the first record of a reply. */
export function dataOf(reply: Buffer | undefined): unknown {
  const [record] = reply === undefined ? [] : (decode(reply).answers ?? []);
  return record !== undefined && 'data' in record ? record.data : null;
}
