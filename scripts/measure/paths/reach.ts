import { eventually } from '../../../test/lab/eventually.ts';
import { nats } from '../../../test/lab/nat/nat.ts';
import type { Process } from '../../../test/lab/process.ts';
import { DirectNetwork } from '../../../test/nat/direct-network.ts';
import { Sites } from '../../../test/nat/sites.ts';
import { isReachable } from '../../../test/nat/theory.ts';
import type { Comparison } from '../comparison.ts';

/** Names of the sites of the NAT lab. */
const pairs: readonly (readonly [string, string])[] = [
  ['home-1', 'home-2'],
  ['home-1', 'neighbor'],
  ['home-1', 'other-port'],
  ['home-1', 'by-address'],
  ['home-1', 'unfiltered'],
  ['home-1', 'symmetric'],
  ['home-1', 'double'],
  ['home-1', 'carrier-1'],
  ['home-2', 'short'],
  ['home-2', 'rejecting'],
  ['home-2', 'far-accepting'],
  ['symmetric', 'by-address'],
  ['symmetric', 'unfiltered'],
  ['symmetric', 'other-port'],
  ['ipv6-1', 'ipv6-2'],
  ['ipv6-1', 'symmetric'],
  ['carrier-1', 'carrier-2'],
  ['hairpin-1', 'hairpin-2'],
  ['public', 'home-2'],
  ['public', 'far-public'],
];
/**
 * Hosts whose routers keep a flow of a packet that comes early, and then choose another port, at a
 * round trip of 50 ms.
 */
const spoiled = 20;
/**
 * Milliseconds from the first packet after which a pair counts as relayed: long enough for a second
 * attempt, where theory allows a path.
 */
const most = { direct: 100_000, relayed: 15_000 } as const;

/** Each poll starts two processes. The time to a path is up to this much too long. */
const pollMs = 100;

interface Outcome {
  readonly isExpected: boolean;
  /** Seconds from the first packet; null for a pair that stays relayed. */
  readonly seconds: number | null;
}

/** How many pairs of hosts in the NAT lab get a direct path, how many theory allows, and when. */
export async function compareReach(): Promise<Comparison[]> {
  await using network = await DirectNetwork.start(2);
  const sites = new Sites(network.nat);
  await sites.addAll();
  const names = new Set(pairs.flat());
  await joinInTurn(
    network,
    sites.all.filter(({ host }) => names.has(host.name)),
  );
  const outcomes = await tryPairs(network, sites, pairs);
  const early = Array.from({ length: spoiled }, (_, at) => `spoiled-${at + 1}`);
  for (const name of early) await sites.addHome([name], nats.accepting, network.nat.far);
  await joinInTurn(
    network,
    early.map((name) => sites.find(name)),
  );
  const late = await tryPairs(
    network,
    sites,
    early.map((name) => ['home-2', name] as const),
  );
  const missed = (all: readonly Outcome[]) => all.filter(({ isExpected, seconds }) => isExpected && seconds === null);
  const own = { baseline: '', theirs: [] };
  return [
    {
      ...{ what: `of ${pairs.length} pairs, those that stay relayed although theory allows a path`, ...own },
      ...{ unit: 'pairs', ours: [missed(outcomes).length], target: { atMost: 0, text: '0' } },
    },
    {
      ...{ what: `of ${spoiled} pairs with a router that an early packet spoils, 50 ms: relayed`, ...own },
      ...{ unit: 'pairs', ours: [missed(late).length], target: { atMost: spoiled * 0.05, text: '≤ 5 %' } },
    },
    {
      ...{ what: 'from the first packet of a pair to its direct path', ...own, unit: 's' },
      ours: [...outcomes, ...late].flatMap(({ seconds }) => seconds ?? []),
      target: { share: 0.95, atMost: 3, text: 'p95 ≤ 3 s' },
    },
  ];
}

/** The daemons start one after the other: they share the cores. */
async function joinInTurn(network: DirectNetwork, sites: readonly Site[]): Promise<void> {
  for (const { host } of sites) await network.join(host);
}

async function tryPairs(
  network: DirectNetwork,
  sites: Sites,
  tried: readonly (readonly [string, string])[],
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const [one, other] of tried) {
    const outcome = await tryPair(network, sites.find(one), sites.find(other));
    outcomes.push(outcome);
    const shown = outcome.seconds === null ? 'relayed' : `direct after ${outcome.seconds.toFixed(1)} s`;
    process.stderr.write(`${one} ${other}: expected ${outcome.isExpected ? 'direct' : 'relayed'}, ${shown}\n`);
  }
  return outcomes;
}

type Site = ReturnType<Sites['find']>;

async function tryPair(network: DirectNetwork, first: Site, second: Site): Promise<Outcome> {
  const isExpected = isReachable(first, second) || first.network.routers[0] === second.network.routers[0];
  const flow: Process = first.host.spawn(['ping', '-n', '-i', '0.2', network.address(second.host)]);
  const begun = performance.now();
  try {
    await eventually('a path', () => network.areDirect(first.host, second.host), {
      timeoutMs: isExpected ? most.direct : most.relayed,
      everyMs: pollMs,
    });
    return { isExpected, seconds: (performance.now() - begun) / 1000 };
  } catch {
    if (isExpected) {
      const { stdout } = await first.host.cpn(['explain', second.host.name], { allowFailure: true });
      process.stderr.write(stdout);
    }
    return { isExpected, seconds: null };
  } finally {
    await flow.stop();
  }
}
