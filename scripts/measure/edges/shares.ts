import type { Peer } from '../../../src/core/map/model.ts';
import { spreadHosts } from '../../../src/core/routing/topology/spread.ts';
import { peer, prefix } from '../../../test/core/samples.ts';
import type { Comparison } from '../comparison.ts';

const hosts = 1000;

/** How evenly 1,000 simulated hosts spread over 4 connectors, and how many a change moves. */
export async function compareShares(): Promise<Comparison[]> {
  const four = [1, 2, 3, 4].map(edge);
  const before = choose(four);
  const without = choose(four.slice(0, 3));
  const joined = choose([...four, edge(5)]);
  const countsOf = (chosen: readonly Peer['id'][]) => four.map(({ id }) => chosen.filter((each) => each === id).length);
  const movedTo = (after: readonly Peer['id'][]) => after.filter((each, index) => each !== before[index]).length;
  const dead = before.filter((each) => each === 4).length;
  const own = { baseline: 'none', theirs: [], unit: 'hosts' as const };
  return [
    {
      ...{ what: `${hosts} hosts over 4 connectors: those of each, away from 250`, ...own },
      ours: countsOf(before).map((count) => Math.abs(count - hosts / 4)),
      target: { atMost: 40, text: '≤ 40' },
    },
    {
      ...{ what: 'hosts that a death moves beyond those of the dead connector', ...own },
      ours: [movedTo(without) - dead],
      target: { atMost: 0, text: '0' },
    },
    {
      ...{ what: 'hosts that a newcomer moves beyond those that it gets', ...own },
      ours: [movedTo(joined) - joined.filter((each) => each === 5).length],
      target: { atMost: 0, text: '0' },
    },
  ];
}

function edge(id: number): Peer {
  return peer(id, { type: 'connector', masquerades: true });
}

function choose(connectors: readonly Peer[]): Peer['id'][] {
  const view = { map: { spread: true }, failed: [] } as const;
  const route = prefix('192.168.50.0/24');
  return Array.from({ length: hosts }, (_, index) => spreadHosts(view, route, 1000 + index, connectors)[0]?.id ?? 0);
}
