import { join, type Office } from '../e2e/office.ts';
import type { Joined } from '../lab/control-plane.ts';
import { type Daemon, type LogLine, startDaemon } from '../lab/daemon.ts';
import type { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { behind } from './members.ts';
import { TroubledProxy } from './proxy.ts';

/** What the daemon says when it has no answer that it could go by, and when it has one again. */
export const troubleBegins = 'the newest map cannot be read; going by the last one';
export const troubleEnds = 'the control plane answers again';

/** A host with a daemon that knows the control plane only through a proxy. */
export interface TroubledHost {
  readonly host: Host;
  readonly proxy: TroubledProxy;
  readonly daemon: Daemon;
  readonly joined: Joined;
}

/** What is special about a troubled host. */
export interface Particulars {
  /** Of the daemon, in seconds; 2 unless told. */
  readonly interval?: number;
  /** The name by which it knows its proxy, and who tells it the address; the address unless told. */
  readonly name?: { readonly name: string; readonly dns: DnsServer };
}

/** Adds a host, of number 1 to 9, which joins through a proxy of its own and runs a daemon. It and the edge know each other then. */
export async function addTroubledHost(
  office: Office,
  edge: Host,
  number: number,
  { interval = 2, name }: Particulars = {},
): Promise<TroubledHost> {
  const proxy = await TroubledProxy.start(office.lab, office.controlPlane, number);
  const host = await office.lab.addHost(`host-${number}`, { address: `203.0.113.${100 + number}/24` });
  if (name) {
    await name.dns.serve({ [name.name]: [proxy.host.address] });
    await name.dns.resolveFor(host);
  }
  const url = name ? proxy.url.replace(proxy.host.address, name.name) : proxy.url;
  const joined = await join(behind({ url }, office), host, '--type', 'origin', '--endpoint', `${host.address}:51820`);
  await edge.cpn(['reconcile']);
  const daemon = await startDaemon(host, '--interval', String(interval));
  await awaitPush(host);
  return { proxy, host, daemon, joined };
}

/** Until the daemon's request waits at the control plane. */
async function awaitPush(host: Host): Promise<void> {
  await eventually('the daemon waits at the control plane', async () => (await readSync(host)).mode === 'push');
}

/** `sync` of the first network in `cpn status --json`. */
export async function readSync(host: Host): Promise<{ mode: string; error?: string; last_success?: string }> {
  return JSON.parse((await host.cpn(['status', '--json'])).stdout).networks[0].sync;
}

/** Whether a line tells of trouble. */
export function tellsOfTrouble({ level }: LogLine): boolean {
  return level >= 40;
}
