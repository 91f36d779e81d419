import { eventually } from '../../../test/lab/eventually.ts';
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
  ['home-2', 'accepting'],
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
/** Milliseconds from the first packet after which a pair counts as relayed. */
const most = 30_000;

interface Outcome {
  readonly isExpected: boolean;
  /** Seconds from the first packet; null for a pair that stays relayed. */
  readonly seconds: number | null;
}

/** How many pairs of hosts in the NAT lab get a direct path, how many theory allows, and when. */
export async function compareDirectPaths(): Promise<Comparison[]> {
  const outcomes: Outcome[] = [];
  await using network = await DirectNetwork.start(2);
  const sites = new Sites(network.nat);
  await sites.addAll();
  const names = new Set(pairs.flat());
  const used = sites.all.filter(({ host }) => names.has(host.name));
  for (const { host } of used) await network.join(host);
  for (const [one, other] of pairs) {
    const outcome = await tryPair(network, sites.find(one), sites.find(other));
    outcomes.push(outcome);
    const shown = outcome.seconds === null ? 'relayed' : `direct after ${outcome.seconds.toFixed(1)} s`;
    process.stderr.write(`${one} ${other}: expected ${outcome.isExpected ? 'direct' : 'relayed'}, ${shown}\n`);
  }
  const missed = outcomes.filter(({ isExpected, seconds }) => isExpected && seconds === null).length;
  const own = { baseline: '', theirs: [] };
  return [
    {
      ...{ what: 'pairs behind NAT that stay relayed although theory allows a direct path', ...own },
      ...{ unit: 'hosts', ours: [missed], target: { atMost: 0, text: '0' } },
    },
    {
      ...{ what: 'from the first packet of a pair to its direct path', ...own, unit: 's' },
      ours: outcomes.flatMap(({ seconds }) => seconds ?? []),
      target: null,
    },
  ];
}

type Site = ReturnType<Sites['find']>;

async function tryPair(network: DirectNetwork, first: Site, second: Site): Promise<Outcome> {
  const isExpected = isReachable(first, second) || first.network.routers[0] === second.network.routers[0];
  const flow: Process = first.host.spawn(['ping', '-n', '-i', '0.2', network.address(second.host)]);
  const begun = performance.now();
  try {
    await eventually('a path', () => network.areDirect(first.host, second.host), { timeoutMs: most });
    return { isExpected, seconds: (performance.now() - begun) / 1000 };
  } catch {
    return { isExpected, seconds: null };
  } finally {
    await flow.stop();
  }
}
