import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Kysely } from 'kysely';
import { durable, openSqlite, sqliteDialect } from '../../../src/control-plane/store/sqlite/sqlite.ts';
import type { Tables } from '../../../src/control-plane/store/tables.ts';
import { DataCenter } from '../../../test/e2e/data-center.ts';
import { patiently } from '../../../test/e2e/office.ts';
import { type ControlPlane, startControlPlane } from '../../../test/lab/control-plane.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { fillNetworks } from '../service/fill-networks.ts';
import { spreadOf } from '../spread.ts';
import type { WaitingOrder } from './waiting-hosts.ts';

const target = { share: 0.95, atMost: 20, text: 'p95 ≤ 20 s' };
const patient = { timeoutMs: 180_000, everyMs: 250 };

type Kind = 'power' | 'cable' | 'kill -9' | 'partition';

/** How a host dies. The kernel of one whose processes are killed closes their connections. */
const kinds: Readonly<Record<Kind, (host: Host, center: DataCenter) => Promise<unknown>>> = {
  power: async (host: Host) => {
    await host.uplink.cut();
    await host.powerOff();
  },
  cable: (host: Host) => host.uplink.unplug(),
  'kill -9': async (host: Host, center: DataCenter) => {
    center.daemon(host).process.signal('SIGKILL');
    await host.exec(['sh', '-c', 'kill -9 $(pidof wireguard-go) 2>/dev/null || ip link delete cpn0']);
  },
  partition: (host: Host) => host.uplink.cut(),
};

/** Seconds until `peer.offline` of a host that dies, in networks of two and three real hosts and of a thousand simulated ones. */
export async function compareDeadHosts(rounds = 10): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const size of [2, 3]) {
    for (const kind of Object.keys(kinds) as Kind[]) {
      const ours: number[] = [];
      for (let round = 0; round < rounds; round += 1) ours.push(await measureReal(kind, size));
      comparisons.push(conclude(`${kind}, until peer.offline in a network of ${size}`, ours));
    }
  }
  comparisons.push(
    conclude('partition, until peer.offline in a network of 1,000', await measureSimulated(1_000, rounds)),
  );
  return comparisons;
}

function conclude(what: string, ours: readonly number[]): Comparison {
  const { p50, p95, max } = spreadOf(ours);
  process.stderr.write(`${what}: ${[p50, p95, max].map((each) => each.toFixed(1)).join(', ')} s\n`);
  return { what, baseline: '', unit: 's', ours, theirs: [], target };
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
    await kinds[kind](dead, center);
    return await untilOffline(center.controlPlane, center.network, began);
  } finally {
    await center.stop();
  }
}

async function measureSimulated(size: number, rounds: number): Promise<number[]> {
  await using lab = await Lab.start();
  const plane = await startControlPlane(lab);
  const database = join(plane.host.folder, 'data', 'control-plane.db');
  const db = new Kysely<Tables>({ dialect: sqliteDialect(openSqlite(database, durable)) });
  const members = await fillNetworks(db, 1, size);
  await db.destroy();
  const crowd = await lab.addHost('crowd', { address: '203.0.113.20/24' });
  const dying = members.slice(0, rounds);
  const order = { url: plane.url, direct: dying.map(({ peer }) => peer) };
  await startHosts(crowd, { ...order, members: members.slice(rounds) });
  const took: number[] = [];
  for (const [round, member] of dying.entries()) {
    const host = await lab.addHost(`dying-${round}`, { address: `203.0.113.${30 + round}/24` });
    await startHosts(host, { ...order, members: [member] });
    if (round === 0) await untilOnline(plane, member.network, size - rounds);
    await delay(6_000 + Math.random() * 8_000);
    const began = Date.now();
    await host.uplink.cut();
    took.push(await untilOffline(plane, member.network, began));
  }
  return took;
}

async function startHosts(host: Host, order: WaitingOrder): Promise<void> {
  const running = host.spawn(['node', join(import.meta.dirname, 'waiting-hosts.ts')], { holdInput: true });
  running.writeInput(`${JSON.stringify(order)}\n`);
  await running.waitForLine(/^waiting$/, 300_000);
}

/** Waits until all hosts are online, and returns nothing before their reports are stored. */
async function untilOnline({ cpn }: ControlPlane, network: number, count: number): Promise<void> {
  const read = async () => {
    const { stdout } = await cpn(['api', 'GET', `/api/networks/${network}/health`]);
    const { peers } = JSON.parse(stdout).data as { peers: { state: string; reported_at: string | null }[] };
    return peers.filter(({ state, reported_at }) => state === 'online' && reported_at !== null).length >= count;
  };
  await eventually('all hosts are online', read, patient);
}

/** Seconds from then until the event, by its own time. */
async function untilOffline({ cpn }: ControlPlane, network: number, began: number): Promise<number> {
  const read = async () => {
    const { stdout } = await cpn(['events', String(network), '--type', 'peer.offline', '--json']);
    const events = JSON.parse(stdout).events as { at: string }[];
    return events.map(({ at }) => (Date.parse(at) - began) / 1000).find((seconds) => seconds >= 0);
  };
  return eventually('it is offline', read, patient);
}
