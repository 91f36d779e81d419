import { Lab } from '../../../test/lab/lab.ts';
import { startGateway } from '../../../test/packets/gateway.ts';
import {
  allChanged,
  type Changed,
  countFaults,
  countThroughReloads,
  type Manner,
} from '../../../test/packets/reloads.ts';
import { comparePackets } from '../../../test/packets/rules-packets.ts';
import type { Wire } from '../../../test/packets/wire.ts';
import type { Comparison } from '../comparison.ts';

const networks = Number(process.env.BENCH_NETWORKS ?? 10_000);
const packetsPerNetwork = 40;
/** Of each kind of change: for 10,000 networks, 1,250 loads and 5 million packets together. */
const reloads = Math.ceil(networks / 40);
const packets = 100 * networks;

/**
 * Compares packets through the filters of generated networks with the evaluation of their rules,
 * and counts packets while rules are loaded.
 *
 * @throws Error with the smallest network and packet that differ
 */
export async function comparePacketFilters(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const { wire } = await startGateway(lab);
  await using _ = wire;
  const counted = await comparePackets(wire, networks, packetsPerNetwork);
  const sent = [...counted.values()].reduce((sum, { arrived, refused }) => sum + arrived + refused, 0);
  const what = `${formatCount(sent)} packets in ${formatCount(networks)} generated networks that the rules decide otherwise`;
  const rows = [row(what, 0, 0)];
  for (const changed of allChanged) rows.push(...(await throughReloads(wire, changed, 'in place')));
  return [...rows, ...(await throughReloads(wire, 'parts of a route', 'whole table'))];
}

async function throughReloads(wire: Wire, changed: Changed, manner: Manner): Promise<Comparison[]> {
  const outcomes = await countThroughReloads(wire, changed, manner, reloads, packets);
  const { lost, passed } = countFaults(outcomes);
  const sent = outcomes.reduce((sum, outcome) => sum + outcome.sent, 0);
  const during = `of ${formatCount(sent)}, while ${changed} change ${formatCount(reloads)} times (${manner})`;
  return [
    row(`packets that pass although no rules allow them, ${during}`, passed, 0),
    // While the kernel replaces maps, it may drop a packet that is on its way.
    row(`packets that are lost although both rules allow them, ${during}`, lost, manner === 'in place' ? 0 : null),
  ];
}

function row(what: string, count: number, most: number | null): Comparison {
  const target = most === null ? null : { atMost: most, text: `${most}` };
  return { what, baseline: '', unit: 'packets', ours: [count], theirs: [], target };
}

const formatCount = (count: number) => count.toLocaleString('en');
