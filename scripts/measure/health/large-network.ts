import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Kysely } from 'kysely';
import { durable, openSqlite, sqliteDialect } from '../../../src/control-plane/store/sqlite/sqlite.ts';
import type { Tables } from '../../../src/control-plane/store/tables.ts';
import { patiently } from '../../../test/e2e/office.ts';
import { type ControlPlane, type Joined, joinHost, startControlPlane } from '../../../test/lab/control-plane.ts';
import { type Daemon, startDaemon } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import { fillNetworks } from '../service/fill-networks.ts';
import type { Member } from '../service/push-messages.ts';
import { die, type Kind, kinds, untilOffline } from './death.ts';
import type { WaitingOrder } from './waiting-hosts.ts';

/** Hosts with a daemon and a tunnel that reach the dying ones directly. */
const witnesses = 3;
const patient = { timeoutMs: 600_000, everyMs: 1_000 };

interface RealHost {
  readonly host: Host;
  readonly joined: Joined;
  readonly daemon: Daemon;
}

/**
 * Seconds until `peer.offline` in one network of so many hosts. Seven are real: one that dies of
 * each kind, again and again, and three that talk with these. The others are simulated: each holds
 * a long poll and takes messages, and has never reached the dying one.
 */
export async function measureLarge(size: number, rounds: number): Promise<ReadonlyMap<Kind, readonly number[]>> {
  await using lab = await Lab.start({ commandServers: true });
  const plane = await startControlPlane(lab);
  const members = await fill(plane, size - kinds.length - witnesses);
  const add = async (name: string, index: number): Promise<RealHost> => {
    const address = `203.0.113.${30 + index}`;
    const host = await lab.addHost(name, { address: `${address}/24` });
    const flags = ['--wait', '0', '--endpoint', `${address}:51820`];
    return {
      host,
      joined: await joinHost(plane, host, { network: 'network-0', flags }),
      daemon: await startDaemon(host),
    };
  };
  const watching: RealHost[] = [];
  for (let index = 0; index < witnesses; index += 1) watching.push(await add(`witness-${index}`, index));
  const dying = new Map<Kind, RealHost>();
  for (const [index, kind] of kinds.entries()) dying.set(kind, await add(`dying-${index}`, witnesses + index));
  await startCrowd(await lab.addHost('crowd', { address: '203.0.113.20/24' }), { url: plane.url, members });
  const network = members[0]?.network ?? 0;
  const took = new Map(kinds.map((kind): [Kind, number[]] => [kind, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [kind, target] of dying) {
      await untilSettled(plane, network, target, watching);
      // At any time of the keepalives of TCP.
      await delay(2_000 + Math.random() * 8_000);
      const began = Date.now();
      await die(kind, target.host, target.daemon);
      const seconds = await untilOffline(plane, network, target.joined.peer.id, began);
      process.stderr.write(`${new Date().toISOString()} ${kind}: ${seconds.toFixed(1)} s\n`);
      took.get(kind)?.push(seconds);
      dying.set(kind, await revive(kind, target));
    }
  }
  return took;
}

/** Fills a new network, past the API. */
async function fill(plane: ControlPlane, count: number): Promise<Member[]> {
  const database = join(plane.host.folder, 'data', 'control-plane.db');
  const db = new Kysely<Tables>({ dialect: sqliteDialect(openSqlite(database, durable)) });
  const members = await fillNetworks(db, 1, count);
  // Their addresses may be those of hosts of the lab.
  await db.updateTable('peers').set({ endpoint: null }).execute();
  await db.destroy();
  return members;
}

async function startCrowd(host: Host, order: WaitingOrder): Promise<void> {
  const running = host.spawn(['node', join(import.meta.dirname, 'waiting-hosts.ts')], { holdInput: true });
  running.writeInput(`${JSON.stringify(order)}\n`);
  await running.waitForLine(/^waiting$/, 300_000);
}

/** Ends what {@link die} did. */
async function revive(kind: Kind, { host, joined, daemon }: RealHost): Promise<RealHost> {
  if (kind === 'power') await host.boot();
  else if (kind !== 'kill -9') await host.uplink.restore();
  const isRunning = kind === 'cable' || kind === 'partition';
  return { host, joined, daemon: isRunning ? daemon : await startDaemon(host) };
}

/** Waits until the host is online and the witnesses report that they reach it. */
async function untilSettled(
  { cpn }: ControlPlane,
  network: number,
  { host, joined }: RealHost,
  watching: readonly RealHost[],
): Promise<void> {
  const { id } = joined.peer;
  await eventually(
    `${host.name} is online and reached`,
    async () => {
      for (const { host: witness } of watching) await witness.ping(joined.address, patiently);
      const { stdout } = await cpn(['api', 'GET', `/api/networks/${network}/health`]);
      const { peers }: { peers: { id: number; state: string; paths: { peer: number; path: string }[] }[] } =
        JSON.parse(stdout).data;
      const reaching = peers.filter(({ paths }) => paths.some(({ peer, path }) => peer === id && path === 'direct'));
      return reaching.length >= witnesses && peers.find((peer) => peer.id === id)?.state === 'online';
    },
    patient,
  );
}
