import { createSocket, type Socket, type SocketType } from 'node:dgram';
import { lookup, Resolver } from 'node:dns/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailed } from '../core/errors/index.ts';
import type { ConnectorAnswer } from '../core/forward/deadline-rules.ts';
import { type Address, familyOf } from '../core/net/cidr.ts';
import { unusableAddress } from '../core/net/endpoint.ts';
import { probedPort } from '../core/rules/evaluate.ts';
import type { ResolvedTarget } from './host.ts';
import { stderrOf } from './process/command-error.ts';
import type { Run } from './process/run.ts';
import { readAddress } from './read-address.ts';

/** discard (RFC 863): the receiver drops the datagram. */
const discardPort = probedPort;

/**
 * The addresses of a name in the resolver's order of preference (RFC 6724), without those at which
 * no peer can listen. Empty if the resolver fails or exceeds `deadlineMs`.
 */
export async function resolve(name: string, deadlineMs: number): Promise<Address[]> {
  const timer = new AbortController();
  const expiry = sleep(deadlineMs, [], { signal: timer.signal }).catch(() => []);
  const lookedUp = lookup(name, { all: true, order: 'verbatim' }).catch(() => []);
  const found = await Promise.race([lookedUp, expiry]);
  timer.abort();
  const addresses = found.flatMap(({ address }: { address: string }) => readAddress(address) ?? []);
  return [...new Set(addresses)].filter((address) => unusableAddress(address) === null);
}

/** Queries the name servers of the root, which a resolver has cached. */
export async function answersQuery(resolver: Address, deadlineMs: number, port = 53): Promise<boolean> {
  const client = new Resolver({ timeout: deadlineMs, tries: 1 });
  client.setServers([`${familyOf(resolver) === 6 ? `[${resolver}]` : resolver}:${port}`]);
  try {
    await client.resolveNs('.');
    return true;
  } catch (error) {
    return !silentCodes.has((error as NodeJS.ErrnoException).code ?? '');
  }
}

/** Codes of c-ares for a missing reply, and for a missing route. */
const silentCodes: ReadonlySet<string> = new Set(['ETIMEOUT', 'ECONNREFUSED', 'ECANCELLED', 'EDESTRUCTION']);

/** Connects a datagram socket, which makes the kernel look up the route and sends nothing. */
export async function findSourceAddress(destination: Address): Promise<Address | null> {
  const socket = openSocket(destination);
  try {
    await new Promise<void>((done, failed) => {
      socket.once('error', failed);
      socket.once('connect', done);
      socket.connect(discardPort, destination);
    });
    return readAddress(socket.address().address);
  } catch {
    // ENETUNREACH and similar errors: no route.
    return null;
  } finally {
    socket.close();
  }
}

/** Binds the port over IPv4 and IPv6, as WireGuard does, and releases it. */
export async function isPortFree(port: number): Promise<boolean> {
  const areFree = await Promise.all([canBind('udp4', port), canBind('udp6', port)]);
  return areFree.every(Boolean);
}

async function canBind(type: SocketType, port: number): Promise<boolean> {
  const socket = createSocket({ type, ipv6Only: type === 'udp6' });
  try {
    await new Promise<void>((done, failed) => {
      socket.once('error', failed);
      socket.bind(port, done);
    });
    return true;
  } catch (error) {
    // A host without IPv6 fails with another error.
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE';
  } finally {
    socket.close();
  }
}

/**
 * Sends one byte to `address`. Ignores socket errors: for a peer without keys or endpoint,
 * WireGuard returns ENOKEY or EDESTADDRREQ, after it has started the handshake if possible.
 */
export async function triggerHandshake(address: Address): Promise<void> {
  const socket = openSocket(address);
  await new Promise<void>((done) => {
    socket.once('error', () => done());
    socket.send(Buffer.alloc(1), discardPort, address, () => done());
  });
  socket.close();
}

/** Connects to a port that is rarely open. A reset proves reachability as a connection does. */
export async function isTcpReachable(address: Address, deadlineMs: number): Promise<boolean> {
  return (await probeConnector(address, deadlineMs)) !== 'silent';
}

/** {@link Prober.probeConnector} */
export async function probeConnector(address: Address, deadlineMs: number): Promise<ConnectorAnswer> {
  const outcome = await connectTcp(address, probedPort, deadlineMs);
  return outcome === 'accepted' || outcome === 'refused' ? 'open' : outcome;
}

/** Connects to the port or, without a port, sends one echo with `ping`. */
export async function probe(run: Run, { address, port }: ResolvedTarget, deadlineMs: number): Promise<boolean> {
  if (port !== null) return (await connectTcp(address, port, deadlineMs)) === 'accepted';
  try {
    await run('ping', ['-n', '-q', '-c', '1', '-W', String(deadlineMs / 1000), address], {
      deadlineMs: deadlineMs + pingGraceMs,
    });
    return true;
  } catch (error) {
    if (error instanceof CommandFailed && isUnanswered(error)) return false;
    throw error;
  }
}

/** Milliseconds added to the deadline of `ping` itself. */
const pingGraceMs = 500;

/** `ping` exits with 1 without a reply, and with 2 after other errors (ping(8)). */
function isUnanswered(error: CommandFailed): boolean {
  const { exitCode } = error.facts;
  return exitCode === 1 || exitCode === null || /unreachable|no route/i.test(stderrOf(error));
}

const outcomes = new Map<string, 'refused' | 'closed'>([
  ['ECONNREFUSED', 'refused'],
  ['ENOPROTOOPT', 'closed'],
]);

async function connectTcp(
  address: Address,
  port: number,
  deadlineMs: number,
): Promise<'accepted' | 'refused' | 'closed' | 'silent'> {
  const socket = connect({ host: address, port, timeout: deadlineMs });
  try {
    return await new Promise((done) => {
      socket.once('connect', () => done('accepted'));
      socket.once('timeout', () => done('silent'));
      socket.once('error', ({ code }: NodeJS.ErrnoException) => done(outcomes.get(code ?? '') ?? 'silent'));
    });
  } finally {
    socket.destroy();
  }
}

function openSocket(address: Address): Socket {
  return createSocket(familyOf(address) === 4 ? 'udp4' : 'udp6');
}
