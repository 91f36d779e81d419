import { createSocket, type Socket } from 'node:dgram';
import { NamesNotServed } from '../../core/errors/index.ts';
import { findFailure } from '../../core/names/split-dns.ts';
import type { Question } from '../../core/names/zone.ts';
import { type Address, familyOf } from '../../core/net/cidr.ts';
import type { Answerer, Forwarding, NameServer } from '../host.ts';
import { checkReply, type NetworkNames } from './check-reply.ts';
import { createForwarder, rcodeOf, type Transport } from './forward.ts';
import { replyFailure, replyTo } from './message.ts';
import { createTcpQueries, type TcpQueries } from './tcp-queries.ts';

/** Bytes of replies that wait for the kernel. Further replies are dropped. */
const mostQueued = 1_048_576;

interface ServedNames {
  readonly address: Address;
  /** UDP and TCP. 0 chooses a free one. */
  readonly port: number;
  /** The server drops queries of other sources, and closes their connections. */
  readonly isAllowed: (source: string) => boolean;
  readonly answer: Answerer;
  /** The address of this host from which queries are forwarded; `address` by default. */
  readonly source?: Address;
  /** The port of servers to which queries are forwarded; 53 by default. */
  readonly forwardPort?: number;
}

export interface ServingNames extends NameServer {
  readonly port: number;
}

/**
 * Serves DNS over UDP and TCP on one address, and forwards what `answer` names servers for. It
 * limits the size of messages, the number of connections and the queries that wait for a reply, and
 * drops what exceeds them.
 *
 * @throws NamesNotServed if the address or the port is not available
 */
export async function serveNames({
  address,
  port,
  isAllowed,
  answer,
  source = address,
  forwardPort,
}: ServedNames): Promise<ServingNames> {
  const forward = createForwarder(source);
  const reply = async (message: Buffer, transport: Transport) => {
    const found = replyTo(message, (question) => ({ ...answer(question), question }), transport);
    if (found === null || Buffer.isBuffer(found)) return found;
    const { servers, question, onReply } = found;
    const names = findNames(answer, found);
    const check = (reply: Buffer) => checkReply(reply, { message, question }, names);
    const forwarded = await forward(message, servers, transport, forwardPort, (reply) => check(reply) !== null);
    const checked = forwarded && check(forwarded);
    onReply?.(forwarded === null ? 'silent' : (findFailure(rcodeOf(forwarded)) ?? (checked ? null : 'unreadable')));
    return checked === null ? replyFailure(message) : replyTo(message, () => checked, transport);
  };
  let isClosed = false;
  const udp = createSocket({ type: familyOf(address) === 4 ? 'udp4' : 'udp6', ipv6Only: familyOf(address) === 6 });
  udp.on('message', (message, { address: source, port: sourcePort }) => {
    // Node refuses to send to port 0, which a hostile source can have.
    if (sourcePort === 0 || !isAllowed(source)) return;
    void reply(message, 'udp').then((replied) => {
      if (replied === null || isClosed || udp.getSendQueueSize() > mostQueued) return;
      udp.send(replied, sourcePort, source, () => {});
    });
  });
  const tcp = createTcpQueries(isAllowed, (message) => reply(message, 'tcp'));
  let closed: Promise<void> | null = null;
  const close = () => {
    isClosed = true;
    closed ??= Promise.all([closeUdp(udp), tcp.close()]).then(() => {});
    return closed;
  };
  try {
    const bound = await bindUdp(udp, address, port);
    await listen(tcp, address, bound);
    return { port: bound, close };
  } catch (error) {
    await close();
    throw new NamesNotServed(address, port, error as NodeJS.ErrnoException);
  }
}

function findNames(
  answer: Answerer,
  { servers, question: { type } }: Forwarding & { readonly question: Question },
): NetworkNames {
  return {
    isInside: (name) => {
      const found = answer({ name, type });
      return 'servers' in found && found.servers.join() === servers.join();
    },
    findOwn: (name) => {
      const found = answer({ name, type });
      return 'servers' in found || found.rcode === 'REFUSED' ? null : found;
    },
  };
}

function bindUdp(udp: Socket, address: Address, port: number): Promise<number> {
  return new Promise((bound, failed) => {
    udp.once('error', failed);
    udp.bind(port, address, () => {
      // A later error is of one datagram, and the client retries.
      udp.off('error', failed).on('error', () => {});
      bound(udp.address().port);
    });
  });
}

function listen({ server }: TcpQueries, host: Address, port: number): Promise<void> {
  return new Promise((bound, failed) => {
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed).on('error', () => {});
      bound();
    });
  });
}

function closeUdp(udp: Socket): Promise<void> {
  return new Promise((closed) => {
    udp.close(() => closed());
  });
}
