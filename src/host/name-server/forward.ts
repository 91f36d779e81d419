import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { encode, RECURSION_DESIRED } from 'dns-packet';
import { type DnsFailure, dnsPort, findFailure, replyDeadline } from '../../core/names/split-dns.ts';
import type { Address } from '../../core/net/cidr.ts';
import type { SocketEndpoint } from '../../core/net/endpoint.ts';
import { readRecords } from './reply-records.ts';

/** Milliseconds until a query is repeated. */
const everyMs = 500;
/** Queries that wait for a reply. One more ends the oldest, which its client may repeat. */
const mostWaiting = 128;
/** A query or reply over TCP follows its length (RFC 1035, 4.2.2). */
const prefixBytes = 2;
const mostTcpBytes = 65_535;

export type Transport = 'tcp' | 'udp';

/**
 * Sends a query to the first of these servers that replies without a failure. Otherwise resolves to
 * a failure, or null if no server replies in time.
 *
 * @param isReadable false for a reply that counts as a failure, whatever its RCODE
 */
export type Forwarder = (
  query: Buffer,
  servers: readonly Address[],
  transport: Transport,
  port?: number,
  isReadable?: (reply: Buffer) => boolean,
) => Promise<Buffer | null>;

interface Sending {
  readonly server: SocketEndpoint;
  /** The address of this host. */
  readonly source: Address;
  readonly signal: AbortSignal;
}

/** Sends a query. Null if the server refuses it, if the source is gone, or if the signal aborts. */
type Send = (query: Buffer, sending: Sending) => Promise<Buffer | null>;

/**
 * Creates a forwarder. It begins with the server that replied last, and takes the next one while
 * there is no reply, from the first again after the last. Queries and replies keep their bytes
 * other than the id.
 *
 * @param source the address of this host from which it sends
 */
export function createForwarder(source: Address): Forwarder {
  const preferred = new Map<string, Address>();
  const waiting = new Set<AbortController>();
  return async (query, servers, transport, port = dnsPort, isReadable = hasRecords) => {
    if (servers.length === 0) return null;
    const [oldest] = waiting;
    if (waiting.size >= mostWaiting) oldest?.abort();
    const ended = new AbortController();
    waiting.add(ended);
    const name = servers.join();
    const first = preferred.get(name);
    const inOrder = servers.toSorted((one, other) => Number(other === first) - Number(one === first));
    try {
      const send = transport === 'udp' ? sendUdp : sendTcp;
      const isAnswer = (reply: Buffer) => findFailure(rcodeOf(reply)) === null && isReadable(reply);
      const found = await sendToAny(query, inOrder, { source, port, ended, send, isAnswer });
      if (found?.isAnswer === true) preferred.set(name, found.server);
      return found?.reply ?? null;
    } finally {
      waiting.delete(ended);
    }
  };
}

/** {@link Prober.queryDomain} */
export async function queryDomain(
  servers: readonly Address[],
  domain: string,
  source: Address,
  port?: number,
): Promise<DnsFailure | null> {
  const query = encode({ type: 'query', flags: RECURSION_DESIRED, questions: [{ type: 'SOA', name: domain }] });
  // Queries of other programs must not end this one, so it has a forwarder of its own.
  const reply = await createForwarder(source)(query, servers, 'udp', port);
  return reply === null ? 'silent' : (findFailure(rcodeOf(reply)) ?? (hasRecords(reply) ? null : 'unreadable'));
}

interface FoundReply {
  readonly reply: Buffer;
  /** False for a failure. */
  readonly isAnswer: boolean;
  readonly server: Address;
}

interface SendingToAny {
  readonly source: Address;
  readonly port: number;
  readonly ended: AbortController;
  readonly send: Send;
  readonly isAnswer: (reply: Buffer) => boolean;
}

/** Earlier queries go on while later ones are sent: a server may be slow. */
function sendToAny(
  query: Buffer,
  servers: readonly Address[],
  { source, port, ended, send, isAnswer }: SendingToAny,
): Promise<FoundReply | null> {
  return new Promise((resolve) => {
    let [sent, refused] = [0, 0];
    let failure: FoundReply | null = null;
    let timer: NodeJS.Timeout;
    const end = (found: FoundReply | null) => {
      clearTimeout(timer);
      clearTimeout(deadline);
      resolve(found);
      ended.abort();
    };
    const sendNext = () => {
      const server = servers[sent % servers.length] as Address;
      sent += 1;
      timer = setTimeout(sendNext, everyMs);
      void send(query, { server: { host: server, port }, source, signal: ended.signal }).then((reply) => {
        if (ended.signal.aborted) return;
        if (reply !== null && isAnswer(reply)) return end({ reply, server, isAnswer: true });
        failure = reply === null ? failure : { reply, server, isAnswer: false };
        refused += 1;
        if (refused === sent && sent >= servers.length) return end(failure);
        clearTimeout(timer);
        sendNext();
      });
    };
    const deadline = setTimeout(() => end(failure), replyDeadline);
    ended.signal.addEventListener('abort', () => end(failure), { once: true });
    sendNext();
  });
}

/** A new port and id for each query, because a reply could be forged. */
function sendUdp(query: Buffer, { server: { host, port }, source, signal }: Sending): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const sent = withNewId(query);
    let isOpen = true;
    const end = (reply: Buffer | null) => {
      if (isOpen) socket.close();
      isOpen = false;
      resolve(reply);
    };
    signal.addEventListener('abort', () => end(null), { once: true });
    socket.on('error', () => end(null));
    // Called also after a failure, such as a prohibit route, where `send` would throw.
    const send = (error?: Error) => {
      if (error) end(null);
      else if (isOpen) socket.send(sent, (failure) => failure && end(null));
    };
    // A connected socket receives only from its server, and an error if that refuses the port.
    socket.bind(0, source, () => isOpen && socket.connect(port, host, send));
    socket.on('message', (message) => {
      if (isReplyTo(message, sent)) end(withIdOf(message, query));
    });
  });
}

function sendTcp(query: Buffer, { server: { host, port }, source, signal }: Sending): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const sent = withNewId(query);
    const prefix = Buffer.alloc(prefixBytes);
    prefix.writeUInt16BE(sent.length);
    let received: Buffer = Buffer.alloc(0);
    const socket = connect({ host, port, localAddress: source, signal });
    const end = (reply: Buffer | null) => {
      socket.destroy();
      resolve(reply);
    };
    socket.on('error', () => end(null)).on('close', () => end(null));
    socket.on('data', (part) => {
      received = Buffer.concat([received, part]);
      const length = received.length < prefixBytes ? mostTcpBytes : received.readUInt16BE(0);
      if (received.length < prefixBytes + length) return;
      const message = received.subarray(prefixBytes, prefixBytes + length);
      end(isReplyTo(message, sent) ? withIdOf(message, query) : null);
    });
    socket.write(Buffer.concat([prefix, sent]));
  });
}

function hasRecords(reply: Buffer): boolean {
  try {
    readRecords(reply);
    return true;
  } catch {
    return false;
  }
}

/** Without the bits in the OPT record. */
export function rcodeOf(reply: Buffer): number {
  return (reply[3] ?? 0) & 15;
}

function withNewId(query: Buffer): Buffer {
  const copy = Buffer.from(query);
  copy.writeUInt16BE(randomInt(65_536), 0);
  return copy;
}

function withIdOf(reply: Buffer, query: Buffer): Buffer {
  const copy = Buffer.from(reply);
  query.copy(copy, 0, 0, 2);
  return copy;
}

/** The length of the header, and the bit that marks a reply. */
const headerBytes = 12;
const replyBit = 0x80;

/** True if it is a reply with the id and the question of the query. */
function isReplyTo(message: Buffer, query: Buffer): boolean {
  if (message.length < headerBytes || ((message[2] ?? 0) & replyBit) === 0) return false;
  if (message.readUInt16BE(0) !== query.readUInt16BE(0)) return false;
  const end = findQuestionEnd(query);
  // A server may leave out the question of a query that it does not read.
  return message.readUInt16BE(4) === 0 || lower(message, end) === lower(query, end);
}

/** The text of the question, whose letters a server may send in another case. */
function lower(message: Buffer, end: number): string {
  return message.toString('latin1', headerBytes, end).toLowerCase();
}

/** The end of the first question: labels, each after its length, then type and class. */
function findQuestionEnd(query: Buffer): number {
  let at = headerBytes;
  while (at < query.length && query[at] !== 0) at += 1 + (query[at] ?? 0);
  return at + 5;
}
