import { createSocket, type Socket, type SocketType } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Address, familyOf } from '../core/cidr.ts';
import { unusableAddress } from '../core/endpoint.ts';
import { CommandFailed } from '../core/errors.ts';
import type { ProbeAt } from './host.ts';
import { readAddress } from './read-address.ts';
import { type Run, saidBy } from './run.ts';

/** discard (RFC 863): whoever gets a datagram there does nothing with it. */
const discardPort = 9;

/**
 * Asks the host's resolver for the addresses of a name, in the order in which it prefers them (RFC 6724), without
 * those at which no peer can listen. Empty when it fails or takes longer than `deadlineMs`.
 */
export async function resolve(name: string, deadlineMs: number): Promise<Address[]> {
  const timer = new AbortController();
  const expiry = sleep(deadlineMs, [], { signal: timer.signal }).catch(() => []);
  const answer = lookup(name, { all: true, order: 'verbatim' }).catch(() => []);
  const found = await Promise.race([answer, expiry]);
  timer.abort();
  const addresses = found.flatMap(({ address }: { address: string }) => readAddress(address) ?? []);
  return [...new Set(addresses)].filter((address) => unusableAddress(address) === null);
}

/** The address that the kernel would send from: connecting a datagram socket looks up the route and sends nothing. */
export async function findSource(destination: Address): Promise<Address | null> {
  const socket = openSocket(destination);
  try {
    await new Promise<void>((done, failed) => {
      socket.once('error', failed);
      socket.once('connect', done);
      socket.connect(discardPort, destination);
    });
    return readAddress(socket.address().address);
  } catch {
    // ENETUNREACH and its kin: there is no way there.
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
    // A host without IPv6 fails otherwise.
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE';
  } finally {
    socket.close();
  }
}

/**
 * Sends one byte to `address`. That it cannot be sent is no failure: WireGuard answers ENOKEY or EDESTADDRREQ for a
 * peer without keys or endpoint, and has begun its handshake by then if it can.
 */
export async function nudge(address: Address): Promise<void> {
  const socket = openSocket(address);
  await new Promise<void>((done) => {
    socket.once('error', () => done());
    socket.send(Buffer.alloc(1), discardPort, address, () => done());
  });
  socket.close();
}

/** Connects to a port at which hardly anybody listens: a reset tells as much as a connection. */
export async function answers(address: Address, deadlineMs: number): Promise<boolean> {
  const outcome = await knock(address, discardPort, deadlineMs);
  return outcome === 'accepted' || outcome === 'refused';
}

/** Knocks at the port, or lets `ping` send one echo. */
export async function reaches(run: Run, { address, port }: ProbeAt, deadlineMs: number): Promise<boolean> {
  if (port !== null) return (await knock(address, port, deadlineMs)) === 'accepted';
  try {
    await run('ping', ['-n', '-q', '-c', '1', '-W', String(deadlineMs / 1000), address], {
      deadlineMs: deadlineMs + pingGraceMs,
    });
    return true;
  } catch (error) {
    if (error instanceof CommandFailed && isNoEcho(error)) return false;
    throw error;
  }
}

/** How long after its own deadline `ping` is given up. */
const pingGraceMs = 500;

/** Exit code 1 is what `ping` ends with when no echo came (ping(8)), 2 any other failure: to have no way there is one. */
function isNoEcho(error: CommandFailed): boolean {
  const { exitCode } = error.facts;
  return exitCode === 1 || exitCode === null || /unreachable|no route/i.test(saidBy(error));
}

async function knock(address: Address, port: number, deadlineMs: number): Promise<'accepted' | 'refused' | 'silent'> {
  const socket = connect({ host: address, port, timeout: deadlineMs });
  try {
    return await new Promise((done) => {
      socket.once('connect', () => done('accepted'));
      socket.once('timeout', () => done('silent'));
      socket.once('error', ({ code }: NodeJS.ErrnoException) => done(code === 'ECONNREFUSED' ? 'refused' : 'silent'));
    });
  } finally {
    socket.destroy();
  }
}

function openSocket(address: Address): Socket {
  return createSocket(familyOf(address) === 4 ? 'udp4' : 'udp6');
}
