import { join, type Office } from '../e2e/office.ts';
import type { Joined } from '../lab/control-plane.ts';
import { type Daemon, type LogLine, startDaemon } from '../lab/daemon.ts';
import type { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import { behind } from './members.ts';

/** The daemon's messages when it has no valid answer, and when it has one again. */
export const faultBegins = 'the newest map cannot be read; the last one stays in use';
export const faultEnds = 'the control plane answers again';

/** A host with a daemon that reaches the control plane through a proxy. */
export interface ProxiedHost {
  readonly host: Host;
  readonly proxy: FaultyProxy;
  readonly daemon: Daemon;
  readonly joined: Joined;
}

/** Settings of such a host. */
export interface ProxiedHostOptions {
  /** Of the daemon, in seconds; 2 by default. */
  readonly interval?: number;
  /** The proxy's name, and its resolver; by default the host uses the proxy's address. */
  readonly name?: { readonly name: string; readonly dns: DnsServer };
}

/** Adds a host, of number 1 to 9, which joins through a proxy of its own and runs a daemon. It and the edge are peers then. */
export async function addProxiedHost(
  office: Office,
  edge: Host,
  number: number,
  { interval = 2, name }: ProxiedHostOptions = {},
): Promise<ProxiedHost> {
  const proxy = await FaultyProxy.start(office.lab, office.controlPlane, number);
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

/** Whether a line reports the fault. */
export function isFaultMessage({ level }: LogLine): boolean {
  return level >= 40;
}
