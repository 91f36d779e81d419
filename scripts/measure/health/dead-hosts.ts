import { setTimeout as delay } from 'node:timers/promises';
import { DataCenter } from '../../../test/e2e/data-center.ts';
import { patiently } from '../../../test/e2e/office.ts';
import type { ControlPlane } from '../../../test/lab/control-plane.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { Comparison } from '../comparison.ts';
import { spreadOf } from '../spread.ts';
import { die, type Kind, kinds, untilOffline } from './death.ts';
import { measureLarge } from './large-network.ts';

const target = { share: 0.95, atMost: 20, text: 'p95 ≤ 20 s' };
const patient = { timeoutMs: 180_000, everyMs: 250 };
const usualSizes = [2, 3, 1_000];
/** Networks up to this size have real hosts alone. */
const largestReal = 10;

/** Seconds until `peer.offline` of a host that dies, in networks of so many hosts. */
export async function compareDeadHosts(rounds = 10, sizes = usualSizes): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const size of sizes) {
    const took = size <= largestReal ? await measureSmall(size, rounds) : await measureLarge(size, rounds);
    for (const [kind, ours] of took)
      comparisons.push(conclude(`${kind}, until peer.offline in a network of ${size}`, ours));
  }
  return comparisons;
}

function conclude(what: string, ours: readonly number[]): Comparison {
  const { p50, p95, max } = spreadOf(ours);
  process.stderr.write(`${what}: ${[p50, p95, max].map((each) => each.toFixed(1)).join(', ')} s\n`);
  return { what, baseline: '', unit: 's', ours, theirs: [], target };
}

async function measureSmall(size: number, rounds: number): Promise<ReadonlyMap<Kind, readonly number[]>> {
  const took = new Map<Kind, number[]>();
  for (const kind of kinds) {
    const ours: number[] = [];
    for (let round = 0; round < rounds; round += 1) ours.push(await measureReal(kind, size));
    took.set(kind, ours);
  }
  return took;
}

async function measureReal(kind: Kind, size: number): Promise<number> {
  const center = await DataCenter.start();
  try {
    const hosts: Host[] = [];
    for (let number = 0; number < size; number += 1)
      hosts.push(await center.addOrigin(`host-${number}`, `203.0.113.${21 + number}`));
    const [dead, ...others] = hosts as [Host, ...Host[]];
    for (const other of others) await other.ping(center.address(dead), patiently);
    await untilOnline(center.controlPlane, center.network, size);
    // At any time of the keepalives of TCP.
    await delay(2_000 + Math.random() * 8_000);
    const began = Date.now();
    await die(kind, dead, center.daemon(dead));
    return await untilOffline(center.controlPlane, center.network, center.joined.get(dead)?.peer.id ?? 0, began);
  } finally {
    await center.stop();
  }
}

/** Waits until all hosts are online and their reports are stored. */
async function untilOnline({ cpn }: ControlPlane, network: number, count: number): Promise<void> {
  const read = async () => {
    const { stdout } = await cpn(['api', 'GET', `/api/networks/${network}/health`]);
    const { peers } = JSON.parse(stdout).data as { peers: { state: string; reported_at: string | null }[] };
    return peers.filter(({ state, reported_at }) => state === 'online' && reported_at !== null).length >= count;
  };
  await eventually('all hosts are online', read, patient);
}
