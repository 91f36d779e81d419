import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Event } from '../../../src/contract/event.ts';
import { cutPath, DataCenter, lanRoute, restorePath } from '../../../test/e2e/data-center.ts';
import { addPath } from '../../../test/lab/control-plane.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { Process } from '../../../test/lab/process.ts';
import type { Comparison } from '../comparison.ts';
import { isAlarm } from './alarm.ts';
import { createReplicatedPlane, createSinglePlane, type RestartedPlane } from './restarted-plane.ts';

/**
 * All routes that the changer adds are in it: a connector without a path to a route takes it out of
 * service.
 */
const changedRoutes = '10.128.0.0/9';
/** Seconds from one happening to the next. */
const every = 45;
/** A host has 90 s for a request: an alarm about what happened last comes within this time. */
const settleMs = 120_000;

/**
 * Alarms while nothing is wrong: peers come and go, routes are edited, the control plane is
 * restarted, a host leaves and joins again, a daemon is restarted, and a laptop loses the control
 * plane alone. All hosts work all the time, so that each alarm is a false one.
 */
export async function compareFalseAlarms(minutes: number, hasReplicas: boolean): Promise<Comparison[]> {
  const plane = hasReplicas ? await createReplicatedPlane() : createSinglePlane();
  let center: DataCenter | undefined;
  try {
    center = await DataCenter.start(plane.start);
    return [await count(center, plane, minutes)];
  } finally {
    await center?.stop();
    await plane.remove();
  }
}

async function count(center: DataCenter, plane: RestartedPlane, minutes: number): Promise<Comparison> {
  const first = await center.addConnector(1);
  const second = await center.addConnector(2);
  for (const connector of [first, second]) await addPath(connector, changedRoutes);
  const origin = await center.addOrigin('origin', '203.0.113.22');
  const visitor = await center.addOrigin('visitor', '203.0.113.23');
  const laptop = await center.addLaptop('laptop', '203.0.113.40');
  for (const host of [origin, laptop]) await center.awaitAnswers(host, first, second);
  const changer = startChanger(center, second);
  const home = center.lab.hosts.get('laptop-home') as Host;
  const happenings: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['SIGTERM', () => plane.restart('SIGTERM', 0)],
    ['the visitor leaves and joins', () => rejoin(center, visitor)],
    ['SIGKILL, 5 s', () => plane.restart('SIGKILL', 5)],
    ['a daemon starts again', () => center.restartDaemon(origin)],
    ['SIGTERM, 30 s', () => plane.restart('SIGTERM', 30)],
    ['the laptop loses the control plane for 150 s', () => lose(home, center.controlPlane.host.address, 150)],
    ['SIGKILL', () => plane.restart('SIGKILL', 0)],
    ['the visitor leaves and joins', () => rejoin(center, visitor)],
    ['SIGTERM, 120 s', () => plane.restart('SIGTERM', 120)],
    ['a daemon starts again', () => center.restartDaemon(first)],
  ];
  const events: Event[] = [];
  const until = performance.now() + minutes * 60_000;
  for (let turn = 0; performance.now() < until; turn += 1) {
    const [name, happen] = happenings[turn % happenings.length] ?? [];
    const next = performance.now() + every * 1000;
    tell(`${name} (${lastLine(changer)} changes)`);
    await happen?.().catch((error) => tell(`  failed: ${(error as Error).message}`));
    await follow(center, events).catch((error) => tell(`  no events: ${(error as Error).message}`));
    await delay(Math.max(0, next - performance.now()));
  }
  await delay(settleMs);
  await follow(center, events);
  tell(`${lastLine(changer)} changes, ${describeCounts(events)}`);
  const alarms = events.filter(isFalse);
  return {
    what: `alarms without a cause in ${minutes} min of changes and restarts, ${plane.what}`,
    ...{ baseline: '', unit: 'events', theirs: [], ours: [alarms.length] },
    target: { atMost: 0, text: '0' },
  };
}

function startChanger(center: DataCenter, connector: Host): Process {
  const { host, url } = center.controlPlane;
  const script = join(import.meta.dirname, 'changer.ts');
  const login = join(host.xdgConfigDir, 'cpn', 'login.json');
  const id = center.joined.get(connector)?.peer.id;
  return host.spawn(['node', script, url, login, `${center.network}`, `${id}`, lanRoute]);
}

async function rejoin(center: DataCenter, host: Host): Promise<void> {
  await center.daemon(host).stop();
  await host.cpn(['leave', '--yes']);
  await center.join(host, '--type', 'origin', '--endpoint', `${host.address}:51820`);
}

async function lose(router: Host, address: string, seconds: number): Promise<void> {
  await cutPath(router, address);
  await delay(seconds * 1000);
  await restorePath(router);
}

/** Adds the events that are new, and prints those of peers, routes and hosts. */
async function follow(center: DataCenter, events: Event[]): Promise<void> {
  for (;;) {
    const after = events.at(-1)?.id ?? 0;
    const path = `/api/networks/${center.network}/events?after=${after}&limit=500`;
    const { stdout } = await center.controlPlane.cpn(['api', 'GET', path]);
    const found: Event[] = JSON.parse(stdout).data;
    for (const event of found) if (!/^peer\.(enrolled|removed)|^network|^key/.test(event.type)) tell(describe(event));
    events.push(...found);
    if (found.length < 500) return;
  }
}

/** Connectors are restarted in place: no route has a reason to move. */
function isFalse(event: Event): boolean {
  return isAlarm(event) || event.type === 'route.failed_over';
}

function describe(event: Event): string {
  return `  ${isFalse(event) ? 'ALARM ' : ''}${JSON.stringify(event)}`;
}

function describeCounts(events: readonly Event[]): string {
  const groups = Object.entries(Object.groupBy(events, ({ type }) => type));
  return groups.map(([type, some = []]) => `${some.length} ${type}`).join(', ');
}

function lastLine({ output }: Process): string {
  return output.stdout.trimEnd().split('\n').at(-1) ?? '';
}

function tell(text: string): void {
  process.stderr.write(`${new Date().toISOString()} ${text}\n`);
}
