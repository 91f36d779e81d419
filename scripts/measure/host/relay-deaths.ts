import { setTimeout as delay } from 'node:timers/promises';
import { DataCenter } from '../../../test/e2e/data-center.ts';
import { NumberedSession, serveEchoes } from '../../../test/e2e/numbered-session.ts';
import { awaitRelay, awaitReturn } from '../../../test/e2e/relays.ts';
import { call, listen } from '../../../test/e2e/tcp.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { Comparison } from '../comparison.ts';

const kinds = { tcp: 'a TCP session with a line every 50 ms', ssh: 'an SSH session with a line every 50 ms' } as const;
type Kind = keyof typeof kinds;

/** Milliseconds for which the hosts use a relay before it dies. */
const settled = 2_000;

/** One death of the relay as a session sees it. */
interface Gap {
  readonly kind: Kind;
  /** Seconds without an echo; null if the session ended. */
  readonly seconds: number | null;
}

/**
 * The network's relay loses its upstream, so many times, under two sessions of hosts that are
 * behind a NAT each. It gets its upstream back before the next relay loses its own.
 */
export async function compareRelayDeaths(rounds = 50): Promise<Comparison[]> {
  const gaps: Gap[] = [];
  for await (const gap of measureDeaths(rounds)) {
    gaps.push(gap);
    const shown = gap.seconds === null ? 'the session ended' : `${gap.seconds.toFixed(2)} s`;
    process.stderr.write(`${Math.ceil(gaps.length / 2)}: ${gap.kind}, ${shown}\n`);
  }
  const own = { baseline: '', theirs: [] };
  const lost = gaps.filter(({ seconds }) => seconds === null).length;
  return [
    {
      ...{ what: `sessions lost in ${rounds} deaths of the relay, one over TCP and one over SSH`, ...own },
      ...{ unit: 'sessions', ours: [lost], target: { atMost: 0, text: '0' } },
    },
    ...(Object.keys(kinds) as Kind[]).flatMap((kind): Comparison[] => {
      const ours = gaps.flatMap((gap) => (gap.kind === kind && gap.seconds !== null ? [gap.seconds] : []));
      const target = { share: 0.95, atMost: 3, text: 'p95 ≤ 3 s' };
      const what = `without an echo when the relay dies, ${kinds[kind]}`;
      return ours.length === 0 ? [] : [{ what, ...own, unit: 's', ours, target }];
    }),
  ];
}

async function* measureDeaths(rounds: number): AsyncGenerator<Gap> {
  const center = await DataCenter.start();
  try {
    const connectors = [await center.addConnector(1), await center.addConnector(2)];
    const [from, to] = [
      await center.addLaptop('laptop', '203.0.113.40'),
      await center.addLaptop('tablet', '203.0.113.41'),
    ];
    for (const host of [from, to]) await center.awaitAnswers(host, ...connectors);
    await serveEchoes(to);
    await listen(to);
    const open = (kind: Kind) => openSession(kind, center, from, to);
    const sessions = { tcp: await open('tcp'), ssh: await open('ssh') };
    for (let round = 0; round < rounds; round += 1) {
      const relay = await awaitRelay([from, to], connectors);
      const counts = { tcp: sessions.tcp.count, ssh: sessions.ssh.count };
      // In a settled network, at each moment between two probes, which are half a second apart.
      await delay(settled + ((round * 370) % 500));
      await relay.uplink.cut();
      await awaitRelay([from, to], connectors, relay);
      for (const kind of ['tcp', 'ssh'] as const) {
        const seconds = await measureGap(sessions[kind], counts[kind]);
        yield { kind, seconds };
        if (seconds === null) sessions[kind] = await open(kind);
      }
      await relay.uplink.restore();
      for (const host of [from, to]) await awaitReturn(host, relay);
    }
  } finally {
    await center.stop();
  }
}

/**
 * A connection that begins before the map names the relay in use has the relay's address, and ends
 * with it.
 */
async function openSession(kind: Kind, center: DataCenter, from: Host, to: Host): Promise<NumberedSession> {
  const address = center.address(to);
  await eventually('the relay keeps addresses', async () => (await call(from, address)) === center.address(from));
  return kind === 'tcp' ? NumberedSession.tcp(from, address) : NumberedSession.ssh(from, to, address);
}

async function measureGap(session: NumberedSession, since: number): Promise<number | null> {
  try {
    await session.goesOn();
  } catch {
    return null;
  }
  return session.longestGapSince(since) / 1000;
}
