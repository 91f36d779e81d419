import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { awaitRoute, type DataCenter, routesOf, serverAddress } from './data-center.ts';

/** Seconds between two pings: how finely an outage is measured. */
const fine = 0.05;

/** One failover as a host measures it. */
export interface Outage {
  readonly host: string;
  /** The connector that was cut off. */
  readonly lost: string;
  /** The connector that serves the route once pings are answered again; null where none does. */
  readonly servedBy: string | null;
  /** The longest time without an answer. */
  readonly seconds: number;
}

/**
 * Cuts the connector in service off, `rounds` times, and waits for the other one to take over. An origin server and a
 * laptop behind a NAT ping the LAN in each round.
 */
export async function measureOutages(center: DataCenter, rounds: number): Promise<Outage[]> {
  const connectors = [await center.addConnector(1), await center.addConnector(2)];
  const users = [await center.addOrigin('origin', '203.0.113.22'), await center.addLaptop('laptop', '203.0.113.40')];
  for (const user of users) await center.awaitAnswers(user, ...connectors);
  const outages: Outage[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const [dying, other] = round % 2 === 0 ? connectors : connectors.toReversed();
    if (!dying || !other) throw new Error('there are two connectors');
    for (const user of users) await awaitRoute(user, dying, 60_000);
    const flows = users.map((user) =>
      user.spawn(['ping', '-n', '-D', '-i', String(fine), '-c', '2000', serverAddress]),
    );
    for (const flow of flows) await flow.waitForLine(/icmp_seq=\d+ ttl/);
    // Each connector loses its upstream once, then its carrier.
    await (round % 4 < 2 ? dying.uplink.cut() : dying.uplink.unplug());
    for (const [index, user] of users.entries()) {
      await awaitRoute(user, other, 60_000);
      await goesOn(flows[index] as Process);
      const { stdout } = await (flows[index] as Process).stop();
      const active = (await routesOf(user)).find(({ state }) => state === 'active');
      const servedBy = active?.via ?? null;
      outages.push({ host: user.name, lost: dying.name, servedBy, seconds: longestPause(stdout) });
    }
    await dying.uplink.restore();
    for (const user of users) await awaitReturn(user);
  }
  return outages;
}

/** Waits for answers that come after now. */
async function goesOn(flow: Process): Promise<void> {
  const seen = flow.output.stdout.length;
  await eventually('the flow goes on', () => flow.output.stdout.length > seen + 200);
}

/** Waits until the standby is usable again. */
async function awaitReturn(user: Host): Promise<void> {
  await eventually(
    `${user.name} receives packets of the standby again`,
    async () => (await routesOf(user))[1]?.reason !== 'does not answer',
    { timeoutMs: 60_000, everyMs: 300 },
  );
}

/** The longest time between two answers, in seconds. */
function longestPause(stdout: string): number {
  const times = [...stdout.matchAll(/^\[(\d+\.\d+)\] \d+ bytes from/gm)].map(([, time]) => Number(time));
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}
