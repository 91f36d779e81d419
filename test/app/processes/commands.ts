import { expect } from 'vitest';
import { drainNetworks, undoDrain } from '../../../src/app/drain/drain.ts';
import { joinNetwork } from '../../../src/app/join/join.ts';
import { leaveNetworks } from '../../../src/app/leave/leave.ts';
import { takeDown } from '../../../src/app/networks/down.ts';
import { finishLeaving } from '../../../src/app/networks/former-networks.ts';
import type { OptionChanges } from '../../../src/app/networks/option-changes.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { setOptions } from '../../../src/app/options/set-options.ts';
import { rotateKeys } from '../../../src/app/rotation/rotate.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { CpnError, Locked } from '../../../src/core/errors/index.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import { noOptionChanges } from '../joined-state.ts';
import { requestFor, Site } from './site.ts';

/** Runs a command of the program in a process with these tools. */
export type Command = (tools: Tools, site: Site) => Promise<unknown>;

const proxy = parseProxy('http://203.0.113.77:3128', '--proxy');
const changes: OptionChanges = {
  ...noOptionChanges,
  options: { mtu: 1300, hosts: true },
  ...{ name: 'renamed', proxy },
};

export const commands = {
  reconcile: (tools) => reconcileNetworks(tools),
  up: (tools) => bringUp(tools, 'cpn0'),
  down: (tools) => takeDown(tools, 'cpn0'),
  set: (tools) => setOptions(tools, 'cpn0', changes),
  'rotate-key': async (tools) => throwLocked(await rotateKeys(tools, 'cpn0')),
  drain: async (tools) => throwLocked(await drainNetworks(tools, 'cpn0', { timeout: 0, down: false })),
  'drain --undo': async (tools) => throwLocked(await undoDrain(tools, 'cpn0')),
  leave: (tools) => leaveNetworks(tools, ['cpn0']),
  // The control plane is away during the leave, and back when the daemon tries again.
  'leave, and the end of it': async (tools, site) => {
    site.service.isAway = true;
    await leaveNetworks(tools, ['cpn0']);
    site.service.isAway = false;
    await finishLeaving(tools);
  },
  'join with the same key': (tools) => joinNetwork(tools, requestFor('key of office')),
  'join with another key': (tools) => joinNetwork(tools, requestFor('key of lab')),
} satisfies Record<string, Command>;

function throwLocked(reports: readonly { readonly failure: unknown }[]): void {
  for (const { failure } of reports) if (failure instanceof Locked) throw failure;
}

/**
 * A host that joined one network, of which the control plane has a newer map, and has a handshake with a peer. The network is up, unless
 * `first` is to bring it up.
 */
export async function open(first?: Command): Promise<Site> {
  const isDown = first === commands.up;
  const site = opened.get(isDown) ?? prepare(isDown);
  opened.set(isDown, site);
  return (await site).fork();
}

/** A join costs more than a copy of the host that joined. */
const opened = new Map<boolean, Promise<Site>>();

async function prepare(isDown: boolean): Promise<Site> {
  const site = await Site.open();
  await joinNetwork(site.process(), requestFor('key of office'));
  await site.process().host.triggerHandshake('10.77.0.2' as Address);
  if (isDown) await commands.down(site.process());
  site.service.admit(7, 4);
  return site;
}

/** Removes what is kept to be copied. */
export async function closeOpened(): Promise<void> {
  const sites = await Promise.all(opened.values());
  opened.clear();
  await Promise.all(sites.map((site) => site.close()));
}

/** Runs a command as a process of its own, to its end or its failure. False where it found a lock held. */
export async function run(site: Site, command: Command, tools = site.process()): Promise<boolean> {
  try {
    await command(tools, site);
  } catch (error) {
    if (error instanceof Locked) return false;
    if (!(error instanceof CpnError)) throw error;
  }
  return true;
}

const notHeld: ReadonlySet<string | symbol> = new Set(['configPath', 'isOnDisk', 'watch']);

/** The tools of a process that awaits `seam`, with the name of the call, before each of its calls to host, disk and control plane. */
export function withSeams(tools: Tools, seam: (call: string) => Promise<void>): Tools {
  const wrap = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(of, name) {
        const value = Reflect.get(of, name) as unknown;
        if (typeof value !== 'function' || notHeld.has(name)) return value;
        return async (...given: unknown[]) => {
          await seam(String(name));
          return Reflect.apply(value, of, given);
        };
      },
    });
  const connect: Tools['connect'] = async (...given) => wrap(await tools.connect(...given));
  return { ...tools, store: wrap(tools.store), host: wrap(tools.host), connect };
}

/** The state after another pass. One key is everywhere, once the networks are up and no change of keys is pending. */
export async function settle(site: Site) {
  await reconcileNetworks(site.process());
  const summary = await site.summary();
  if (summary.states.some(({ enabled }) => !enabled) || (await site.isRotating())) {
    await run(site, (tools) => bringUp(tools));
    await reconcileNetworks(site.process());
  }
  for (const { link } of summary.states) {
    const keys = await site.keys(link);
    expect(new Set(keys).size, `the keys of ${link}: ${keys.join()}`).toBe(1);
  }
  await site.close();
  return summary;
}
