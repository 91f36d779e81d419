import { eventually } from '../lab/eventually.ts';
import type { TunnelPeer } from '../lab/nat/tunnel.ts';
import type { Member } from './plain-network.ts';
import { hasIpv6, isReachable, type Meeting } from './theory.ts';

/** Two members that try to reach each other. */
export interface Pair extends Meeting {
  readonly first: Member;
  readonly second: Member;
}

/** What became of a pair. */
export interface Attempt {
  readonly pair: Pair;
  readonly isExpected: boolean;
  readonly isReached: boolean;
  /** The initiations of both sides were under way at the same time, and the first side added its peer again. */
  readonly isCrossed: boolean;
  /** From the start of the second side to the handshake; null without one. */
  readonly seconds: number | null;
  /** Pings of five that got no answer on the direct path; null without one. */
  readonly lost: number | null;
}

/** One side of a pair. `endpoint` is that of the peer; null if no connector observes it. */
interface Side {
  readonly self: Member;
  readonly peer: Member;
  readonly endpoint: string | null;
}

/** A pair while it is tried. */
interface Run {
  readonly pair: Pair;
  readonly sides: readonly [Side, Side];
  /** When the second side began. */
  begun: number;
  isCrossed: boolean;
  seconds: number | null;
}

/** The bytes of a handshake initiation. */
const initiation = 148;
/** The initiations of each side, 5 s apart, after which a pair counts as not reached. */
const most = 3;
const pings = 5;

/** Tries pairs side by side: both sides get the other one as a peer without AllowedIPs. Moves traffic to the paths that come up. */
export async function tryPairs(pairs: readonly Pair[]): Promise<Attempt[]> {
  const runs = pairs.map((pair): Run => {
    const { first, second, by } = pair;
    const sides = [sideOf(first, second, by), sideOf(second, first, by)] as const;
    return { pair, sides, begun: performance.now(), isCrossed: false, seconds: null };
  });
  const late = runs.filter(({ pair }) => pair.isLate);
  await addPeers(runs.flatMap(({ pair, sides }) => (pair.isLate ? [sides[0]] : sides)));
  // Without a delay line in between, it has arrived then.
  await eventually('the first sides of late pairs have sent', async () => {
    const seen = await look(late);
    return seen.every(([first]) => first.sent > 0);
  });
  for (const run of late) run.begun = performance.now();
  await addPeers(late.map(({ sides }) => sides[1]));

  let open = runs;
  await eventually('each pair has a session, or has tried for long enough', async () => {
    const seen = await look(open);
    for (const [index, run] of open.entries()) await follow(run, seen[index] as Seen);
    open = open.filter((run, index) => run.seconds === null && !hasTried(run, seen[index] as Seen));
    return open.length === 0;
  });
  return Promise.all(
    runs.map(async ({ pair, sides, isCrossed, seconds }) => ({
      pair,
      isExpected: isReachable(pair.first.site, pair.second.site, pair),
      isReached: seconds !== null,
      isCrossed,
      seconds,
      lost: seconds === null ? null : await countLost(sides),
    })),
  );
}

function sideOf(self: Member, peer: Member, by: Meeting['by']): Side {
  if (by === 'local') return { self, peer, endpoint: `${peer.site.host.address}:${peer.tunnel.port}` };
  const isIpv6 = hasIpv6(self.site) && hasIpv6(peer.site);
  return { self, peer, endpoint: peer.observed.find((each) => each.startsWith('[') === isIpv6) ?? null };
}

/** Adds the peers of these sides, those of one member in one call. */
async function addPeers(sides: readonly Side[]): Promise<void> {
  const calls = Map.groupBy(sides, ({ self }) => self.tunnel);
  await Promise.all([...calls].map(([tunnel, own]) => tunnel.set(...own.map(peerOf))));
}

function peerOf({ peer, endpoint }: Side): string {
  const target = endpoint === null ? '' : ` endpoint ${endpoint} persistent-keepalive 25`;
  return `peer ${peer.tunnel.publicKey}${target}`;
}

/** The peer at each side of a pair. */
type Seen = readonly [TunnelPeer, TunnelPeer];

/** Reads the peers of all these pairs, each member's once. */
async function look(runs: readonly Run[]): Promise<Seen[]> {
  const tunnels = [...new Set(runs.flatMap(({ sides }) => sides.map(({ self }) => self.tunnel)))];
  const tables = new Map(await Promise.all(tunnels.map(async (each) => [each, await each.peers()] as const)));
  const find = ({ self, peer }: Side): TunnelPeer =>
    tables.get(self.tunnel)?.get(peer.tunnel.publicKey) ?? { endpoint: null, handshakeAt: 0, received: 0, sent: 0 };
  return runs.map(({ sides: [first, second] }) => [find(first), find(second)]);
}

/**
 * Notes a session. Where both sides received an initiation before an answer to their own, neither has one: each dropped its own
 * handshake for the other's, and sends no other one before the next keepalive. A peer that is added again does at once.
 */
async function follow(run: Run, seen: Seen): Promise<void> {
  if (seen.every(({ handshakeAt }) => handshakeAt > 0)) {
    run.seconds = (performance.now() - run.begun) / 1000;
  } else if (!run.isCrossed && seen.every(({ received, handshakeAt }) => received >= initiation && handshakeAt === 0)) {
    run.isCrossed = true;
    const [{ self, peer, endpoint }] = run.sides;
    await self.tunnel.set(`peer ${peer.tunnel.publicKey} remove`);
    await self.tunnel.set(peerOf({ self, peer, endpoint }));
  }
}

function hasTried({ sides }: Run, seen: Seen): boolean {
  return seen.every(({ sent }, index) => sides[index]?.endpoint === null || sent >= most * initiation);
}

/** Moves the tunnel addresses of both sides to the direct path, and pings there. */
async function countLost([first, second]: readonly [Side, Side]): Promise<number> {
  for (const { self, peer } of [first, second]) {
    await self.tunnel.set(`peer ${peer.tunnel.publicKey} allowed-ips ${peer.tunnel.address}/32`);
  }
  const { sent, received } = await first.self.site.host.ping(second.self.tunnel.address, { count: pings });
  return sent - received;
}
