import { networkInterfaces } from 'node:os';
import type { Address } from '../../core/cidr.ts';
import { CommandFailed, MissingPrivilege } from '../../core/errors.ts';
import type { KernelRoute } from '../../core/kernel-route.ts';
import { parseLinkName } from '../../core/link-name.ts';
import { findTool } from '../find-tool.ts';
import type { Host, Needs, ProbeAt } from '../host.ts';
import { answers, findSource, isPortFree, nudge, reaches, resolve } from '../network.ts';
import { watchDevices } from '../watch-devices.ts';
import { applyStep, type Drafts, unsupported } from './apply-step.ts';
import { addressesOf } from './look-around.ts';
import { observe, type Portable, see } from './observe.ts';
import { watchLinks } from './watch-links.ts';

/**
 * A host without the tools of Linux: `wg` and a {@link TunnelManager} do everything, and Node tells the rest. It is an origin or
 * an admin device; a connector and a full tunnel need what only Linux has, and are refused by `check`.
 */
export function portableHost(portable: Portable): Host {
  const drafts: Drafts = new Map();
  const { run, manager, files } = portable;
  return {
    check: (needs) => check(portable, needs),
    async observe(question) {
      const actual = await observe(portable, question);
      if (actual.device !== null) drafts.delete(question.link);
      return actual;
    },
    async peers(link) {
      const { device } = await see(portable, link);
      if (device === null) throw new CommandFailed(`wg show ${link}`, null, 'there is no such interface');
      return device.peers;
    },
    apply: (step) => applyStep(portable, drafts, step),
    async links() {
      const known = await run('wg', ['show', 'interfaces']);
      const names = [...Object.keys(networkInterfaces()), ...known.split(/\s+/), ...(await files.list())];
      return new Set(names.filter((name) => name !== ''));
    },
    resolve,
    route: (destination) => findRoute(destination),
    sourceAddress: findSource,
    isPortFree,
    nudge,
    answers,
    reaches: (target, deadlineMs) => knock(portable, target, deadlineMs),
    // The flags of `ping` that forbid fragments are others on each system.
    echoes: async () => false,
    widen: async () => async () => {},
    watch: (listener) => watchLinks(listener),
    watchFirewall: async () => ({ close: async () => {} }),
    watchDevices: (listener, everyMs) => watchDevices(run, listener, everyMs),
    forwardDrops: async () => [],
    suspects: async () => [],
  };

  async function findRoute(destination: Address): Promise<KernelRoute> {
    const source = await findSource(destination);
    if (source === null) return { link: null, why: 'none' };
    const cards = networkInterfaces();
    const real = Object.keys(cards).find((name) => addressesOf(cards, name).some(({ address }) => address === source));
    const link = real === undefined ? 'an interface without a name' : await nameOf(real);
    // Which route it was nobody tells; the address that a packet would leave from is that of the link that it takes.
    return {
      link,
      local: source === destination,
      source,
      gateway: null,
      table: 'main',
      prefix: null,
      protocol: 'unknown',
    };
  }

  /** Ours by our name, whatever the kernel calls it. */
  async function nameOf(real: string): Promise<string> {
    for (const link of await files.list()) {
      if ((await manager.realName(parseLinkName(link), await files.read(link))) === real) return link;
    }
    return real;
  }
}

async function check(portable: Portable, { forwarding, fullTunnel }: Needs): Promise<void> {
  if (forwarding) throw unsupported(portable, 'a connector');
  if (fullTunnel) throw unsupported(portable, 'a full tunnel');
  // Windows has no such number, and refuses its own tools to whoever is no administrator.
  if ((process.geteuid?.() ?? 0) !== 0) throw new MissingPrivilege('cpn', 'run it with sudo');
  for (const tool of portable.manager.tools) await findTool(tool);
}

/** Of an echo, only `ping` could tell, whose flags are others on each system. */
async function knock(portable: Portable, target: ProbeAt, deadlineMs: number): Promise<boolean> {
  if (target.port === null) throw unsupported(portable, 'a probe by ping');
  return reaches(portable.run, target, deadlineMs);
}
