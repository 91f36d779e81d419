/**
 * The waiting clients: many connectors in one process, each on a socket of its own, which polls
 * again at once after an answer. They use just enough HTTP to cost little of the processor that the
 * control plane is measured on.
 */
import { connect, type Socket } from 'node:net';
import type { ClientAnswer, ClientOrder, Member } from './push-messages.ts';

type WaitOrder = Extract<ClientOrder, { kind: 'wait' }>;
type ReportOrder = Extract<ClientOrder, { kind: 'report' }>;

let expected = 0;
let replies: { at: bigint; bytes: number; status: number }[] = [];

process.on('message', (order: ClientOrder) => {
  if (order.kind === 'wait') {
    for (const member of order.members) new Waiting(member, order);
    return;
  }
  if (order.kind === 'report') {
    for (const member of order.members) report(member, order);
    return;
  }
  expected = order.replies;
  replies = [];
  send({ kind: 'expecting' });
});
process.on('disconnect', () => process.exit(0));

function send(answer: ClientAnswer): void {
  process.send?.(answer);
}

function record(status: number, bytes: number): void {
  replies.push({ at: process.hrtime.bigint(), bytes, status });
  if (replies.length !== expected) return;
  send({
    kind: 'replies',
    at: replies.map(({ at }) => String(at)),
    bytes: replies.map((one) => one.bytes),
    statuses: replies.map((one) => one.status),
  });
}

/**
 * An address has 28,000 ports or so for one that it connects to, and those who wait may be more.
 */
function sourceOf(peer: number): string {
  return `127.0.1.${1 + (peer % 8)}`;
}

/** Reports figures again and again, as a connector that talks with three others. */
function report({ network, peer, token }: Member, { url, members, seconds }: ReportOrder): void {
  const { hostname, port } = new URL(url);
  const everyMs = seconds * 1000;
  const own = members.findIndex((member) => member.peer === peer);
  const others = [1, 2, 3].flatMap((step) => members[(own + step) % members.length] ?? []);
  let socket: Socket | undefined;
  let complete = true;
  const send = () => {
    // The control plane drops connections that bring no request soon.
    socket ??= connect({ host: hostname, port: Number(port), localAddress: sourceOf(peer), noDelay: true }).resume();
    const paths = others.map((other) => ({
      peer: other.peer,
      path: 'direct',
      rtt_ms: Math.round(Math.random() * 100),
    }));
    const body = JSON.stringify({ ...(complete && { complete }), paths });
    complete = false;
    socket.write(
      `POST /api/networks/${network}/peers/${peer}/report HTTP/1.1\r\nhost: cpn\r\nauthorization: Bearer ${token}\r\n` +
        `user-agent: cpn/0.1.0 (linux x64)\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  };
  setTimeout(() => {
    send();
    setInterval(send, everyMs);
  }, Math.random() * everyMs);
}

/** One connector that waits for its network to change, for ever. */
class Waiting {
  readonly #member: Member;
  readonly #order: WaitOrder;
  #socket: Socket | null = null;
  #etag: string;
  #head = '';
  #left = -1;
  #bytes = 0;
  #status = 0;

  constructor(member: Member, order: WaitOrder) {
    this.#member = member;
    this.#order = order;
    this.#etag = order.etags[member.network] ?? '';
    this.#poll();
  }

  #poll(): void {
    this.#head = '';
    this.#left = -1;
    this.#bytes = 0;
    this.#socket ??= this.#connect();
    const { network, token } = this.#member;
    this.#socket.write(
      `GET /api/networks/${network} HTTP/1.1\r\nhost: cpn\r\naccept: application/json\r\naccept-encoding: gzip\r\n` +
        `authorization: Bearer ${token}\r\nuser-agent: cpn\r\nprefer: wait=60\r\nif-none-match: ${this.#etag}\r\n` +
        `${this.#order.deltas ? 'a-im: cpn-delta\r\n' : ''}\r\n`,
    );
  }

  #connect(): Socket {
    const { hostname, port } = new URL(this.#order.url);
    const localAddress = sourceOf(this.#member.peer);
    const socket = connect({ host: hostname, port: Number(port), localAddress, noDelay: true });
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', (error) => {
      throw error;
    });
    return socket;
  }

  #read(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#left < 0) {
      this.#head += chunk.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = this.#head.slice(0, end).toLowerCase();
      const length = Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? 0);
      this.#status = Number(head.slice(9, 12));
      this.#etag = /\r\netag: ("[^"]+")/i.exec(this.#head.slice(0, end))?.[1] ?? this.#etag;
      this.#left = length - (this.#head.length - end - 4);
    } else {
      this.#left -= chunk.length;
    }
    if (this.#left === 0) this.#done();
  }

  #done(): void {
    // A 304 is the end of a wait.
    if (this.#status !== 304) record(this.#status, this.#bytes);
    if (this.#order.reconnect) {
      this.#socket?.destroy();
      this.#socket = null;
    }
    this.#poll();
  }
}
