import { setTimeout as delay } from 'node:timers/promises';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { awaitRoute, type DataCenter, type RouteSeen, routesOf, serverAddress } from './data-center.ts';

/** Seconds between two pings: how finely an outage is measured. */
const fine = 0.05;

/** What a connector loses: its upstream, its carrier, its daemon and its tunnel, or its power. */
export const kinds = ['upstream', 'carrier', 'process', 'host'] as const;

/** When: in a settled network; while the standby joins, before its first handshake; up to 5 s after a join. */
export const moments = ['settled', 'standby joins', 'standby joined', 'hosts joined'] as const;

/** The death of the connector that serves the route. */
export interface Death {
  readonly kind: (typeof kinds)[number];
  readonly moment: (typeof moments)[number];
}

/** One failover as a host measures it. */
export interface Outage extends Death {
  readonly host: string;
  /** The connector that died. */
  readonly lost: string;
  /** The connector that serves the route once pings are answered again; null where none does. */
  readonly servedBy: string | null;
  /** The longest time without an answer. */
  readonly seconds: number;
  /** Whether the host had no handshake with the standby when the connector died; null where that was not read. */
  readonly withoutHandshake: boolean | null;
  /** When the connector died, in milliseconds since the epoch. */
  readonly at: number;
  /** The log of the host and of the standby since then. */
  readonly log: readonly string[];
}

/** A member of the network, and how it joins. */
interface Member {
  readonly host: Host;
  readonly flags: readonly string[];
}

/**
 * The connector in service dies, once for each of these deaths, and the other one takes over. An origin server and a laptop
 * behind a NAT ping the LAN meanwhile.
 */
export async function* measureOutages(center: DataCenter, deaths: Iterable<Death>): AsyncGenerator<Outage> {
  const connectors = [await center.addConnector(1), await center.addConnector(2)].map((host) => ({
    host,
    flags: ['--type', 'connector', '--endpoint', `${host.address}:51820`],
  }));
  const origin = await center.addOrigin('origin', '203.0.113.22');
  const laptop = await center.addLaptop('laptop', '203.0.113.40');
  const users = [
    { host: origin, flags: ['--type', 'origin', '--endpoint', '203.0.113.22:51820'] },
    { host: laptop, flags: ['--type', 'admin_device'] },
  ];
  for (const { host } of [...connectors, ...users]) await awaitDaemon(center, host);
  for (const { host } of users) await center.awaitAnswers(host, ...connectors.map((each) => each.host));
  // Longer ago than "after a join" means.
  await delay(5000);
  let round = 0;
  for (const death of deaths) {
    yield* measureOutage(center, connectors, users, death, (round * 1300) % 5000);
    round += 1;
  }
}

async function* measureOutage(
  center: DataCenter,
  connectors: readonly Member[],
  users: readonly Member[],
  { kind, moment }: Death,
  lateMs: number,
): AsyncGenerator<Outage> {
  if (moment === 'hosts joined') await Promise.all(users.map((user) => rejoin(center, user)));
  const joinedAt = performance.now();
  const serving = await awaitAgreement(users, connectors);
  const standby = connectors.find((each) => each !== serving) as Member;
  const flows = users.map(({ host }) =>
    host.spawn(['ping', '-n', '-D', '-i', String(fine), '-c', '4000', serverAddress]),
  );
  for (const flow of flows) await flow.waitForLine(/icmp_seq=\d+ ttl/, 30_000);
  if (moment === 'hosts joined') await delay(Math.max(0, lateMs - (performance.now() - joinedAt)));
  let joins: Promise<unknown> | undefined;
  let withoutHandshake: readonly (boolean | null)[] = users.map(() => null);
  if (moment === 'standby joins' || moment === 'standby joined') {
    const counts = await Promise.all(users.map(({ host }) => countPeers(host)));
    await leave(center, standby);
    await Promise.all(users.map(({ host }, index) => awaitPeers(host, '-lt', counts[index] ?? 0)));
    joins = join(center, standby);
    joins.catch(() => {});
    if (moment === 'standby joins') {
      withoutHandshake = await Promise.all(users.map(({ host }, index) => awaitPeers(host, '-ge', counts[index] ?? 0)));
    } else {
      await joins;
      await delay(lateMs);
    }
  }
  const dying = serving.host;
  const at = Date.now();
  await kill(center, dying, kind);
  await joins;
  for (const [index, { host }] of users.entries()) {
    await awaitRoute(host, standby.host, 60_000).catch((error) => {
      throw new Error(`${kind}, ${moment}, ${host.name}: ${error.message}\n${logOf(center, host, at).join('\n')}`);
    });
    await goesOn(flows[index] as Process);
    const { stdout } = await (flows[index] as Process).stop();
    const servedBy = (await routesOf(host)).find(isActive)?.via ?? null;
    const log = [host, standby.host].flatMap((each) => logOf(center, each, at));
    yield {
      ...{ kind, moment, host: host.name, lost: dying.name, servedBy, seconds: longestPause(stdout) },
      ...{ withoutHandshake: withoutHandshake[index] ?? null, at, log },
    };
  }
  await revive(center, dying, kind);
  for (const { host } of users) await awaitReturn(host);
}

async function kill(center: DataCenter, host: Host, kind: Death['kind']): Promise<void> {
  if (kind === 'upstream') await host.uplink.cut();
  if (kind === 'carrier') await host.uplink.unplug();
  if (kind === 'host') await host.powerOff();
  if (kind !== 'process') return;
  center.daemon(host).process.signal('SIGKILL');
  // In the host's own PID namespace; a tunnel in the kernel ends with its interface.
  await host.exec(['sh', '-c', 'kill -9 $(pidof wireguard-go) 2>/dev/null || ip link delete cpn0']);
}

/** Undoes {@link kill}. */
async function revive(center: DataCenter, host: Host, kind: Death['kind']): Promise<void> {
  if (kind === 'upstream' || kind === 'carrier') return host.uplink.restore();
  if (kind === 'host') await host.boot();
  center.daemons.set(host, await startDaemon(host));
}

async function leave(center: DataCenter, { host }: Member): Promise<void> {
  await center.daemon(host).stop();
  await host.cpn(['leave', '--yes']);
}

async function rejoin(center: DataCenter, member: Member): Promise<void> {
  await leave(center, member);
  await join(center, member);
}

/** As `cpn join` with systemd, this ends when the daemon runs. */
async function join(center: DataCenter, { host, flags }: Member): Promise<void> {
  await center.join(host, ...flags);
  await awaitDaemon(center, host);
}

async function awaitDaemon(center: DataCenter, host: Host): Promise<void> {
  await center.daemon(host).awaitLog('the daemon runs', ({ msg }) => msg === 'reconciling the network');
}

/** The connector through which all of these hosts send; waits until they agree. */
async function awaitAgreement(users: readonly Member[], connectors: readonly Member[]): Promise<Member> {
  return eventually(
    'all hosts use the same connector',
    async () => {
      const active = await Promise.all(users.map(async ({ host }) => (await routesOf(host)).find(isActive)?.via));
      return connectors.find(({ host }) => active.every((via) => via === host.name));
    },
    { timeoutMs: 90_000, everyMs: 200 },
  );
}

function isActive({ state }: RouteSeen): boolean {
  return state === 'active';
}

async function countPeers(host: Host): Promise<number> {
  return (await host.exec(['wg', 'show', 'cpn0', 'peers'])).stdout.trim().split('\n').length;
}

/** Waits until a host has so many peers; returns whether one of them never made a handshake. */
async function awaitPeers(host: Host, compared: '-lt' | '-ge', count: number): Promise<boolean> {
  const wait = `until [ $(wg show cpn0 peers | wc -l) ${compared} ${count} ]; do sleep 0.01; done`;
  const { stdout } = await host.exec(['sh', '-c', `${wait}; wg show cpn0 latest-handshakes`], { timeoutMs: 30_000 });
  return /\t0$/m.test(stdout);
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
    async () => {
      const [, standby] = await routesOf(user);
      return standby !== undefined && standby.reason !== 'does not answer';
    },
    { timeoutMs: 60_000, everyMs: 300 },
  );
}

/** The longest time between two answers, in seconds. */
function longestPause(stdout: string): number {
  const times = [...stdout.matchAll(/^\[(\d+\.\d+)\] \d+ bytes from/gm)].map(([, time]) => Number(time));
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}

/** What the daemon of a host logged since then, a line each. */
function logOf(center: DataCenter, host: Host, since: number): string[] {
  const lines = center.daemon(host).log.filter(({ time }) => time >= since);
  return lines.map((line) => `${host.name} ${JSON.stringify(line)}`);
}
