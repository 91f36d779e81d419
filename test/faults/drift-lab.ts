import { join, type Office, patiently, startOffice, status } from '../e2e/office.ts';
import type { Joined } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';

/** A host and what it got when it joined. */
export interface Member {
  readonly host: Host;
  readonly joined: Joined;
}

/** Three hosts of the office, with a LAN behind one of them. */
export interface DriftLab {
  readonly office: Office;
  /** The host that drifts, with the daemon that repairs it. */
  readonly kept: Member;
  readonly daemon: Daemon;
  /** The peer that the drift concerns; it has no daemon. */
  readonly touched: Member;
  /** A peer that the drift does not concern; it has no daemon. */
  readonly untouched: Member;
  /** True when one of `kept` and `touched` reaches the LAN behind the other. */
  reachesLan(): Promise<boolean>;
}

/** The LAN, which is a route of the office. */
export const lan = '192.168.50.0/24';
const [inLan, router] = ['192.168.50.10', '192.168.50.1/24'];

/** Longer than the tests run: an event must have triggered the pass. */
export const never = 3600;

/** Starts it; then all are peers of each other, have sessions with `kept`, and the daemon waits for updates. */
export async function startDriftLab({ connector }: { readonly connector: 'kept' | 'touched' }): Promise<DriftLab> {
  const office = await startOffice();
  const typeOf = (name: string) => (name === connector ? 'connector' : 'origin');
  const touched = await addMember(office, 'touched', 11, '--type', typeOf('touched'));
  const untouched = await addMember(office, 'untouched', 12);
  const kept = await addMember(office, 'kept', 13, '--type', typeOf('kept'));
  const [server, client] = connector === 'kept' ? [kept, touched] : [touched, kept];
  const behind = await office.lab.addLan(server.host, router);
  await behind.addHost('printer', `${inLan}/24`);
  await meet(kept, touched, untouched);
  const daemon = await startDaemon(kept.host, '--interval', String(never));
  await eventually('the daemon waits for updates', async () => (await status(kept.host)).sync.mode === 'push');
  const reachesLan = () => answers(client.host, inLan);
  await eventually('the LAN answers', reachesLan);
  return { office, kept, daemon, touched, untouched, reachesLan };
}

/** Adds a host with the address 203.0.113.`number` to the office; by default it can be dialled there. */
export async function addMember(office: Office, name: string, number: number, ...flags: string[]): Promise<Member> {
  const host = await office.lab.addHost(name, { address: `203.0.113.${number}/24`, gateway: '203.0.113.1' });
  const dialled = flags.includes('--endpoint') ? [] : ['--endpoint', `${host.address}:51820`];
  return { host, joined: await join(office, host, ...dialled, ...flags) };
}

/** Reconciles each of `others`, and starts a session with it. */
export async function meet(member: Member, ...others: readonly Member[]): Promise<void> {
  for (const other of others) {
    await other.host.cpn(['reconcile']);
    await eventually(`${other.host.name} answers`, () => answers(member.host, other.joined.address));
  }
}

/** True when an address answers a ping, with the patience that a new session may need. */
export async function answers(from: Host, address: string): Promise<boolean> {
  return (await from.ping(address, patiently)).received === 1;
}
