import { networkInterfaces } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { MissingPrivilege } from '../../core/errors/index.ts';
import type { KernelRoute } from '../../core/host-state/kernel-route.ts';
import { namesPort } from '../../core/names/zone.ts';
import type { Address } from '../../core/net/cidr.ts';
import { parseLinkName } from '../../core/net/link-name.ts';
import type { Host, HostEvent, Requirements, ResolvedTarget, Watch } from '../host.ts';
import { queryDomain } from '../name-server/forward.ts';
import { serveNames } from '../name-server/serve-names.ts';
import {
  answersQuery,
  findSourceAddress,
  isPortFree,
  isTcpReachable,
  probe,
  probeConnector,
  resolve,
  triggerHandshake,
} from '../probes.ts';
import { findTool } from '../process/find-tool.ts';
import { readSshConnection } from '../read-address.ts';
import { pollUntilClosed, watchDevices } from '../wireguard/watch-devices.ts';
import { applyStep, type PendingDevices, unsupported } from './apply-step.ts';
import { observe, observeTunnel, type PortableContext } from './observe.ts';
import { addressesOf } from './underlay.ts';

/**
 * A host without the tools of Linux, accessed through `wg`, a {@link TunnelManager} and Node. It
 * supports servers and laptops. `check` refuses a connector and a full tunnel, which need Linux.
 */
export function portableHost(context: PortableContext): Host {
  const pending: PendingDevices = new Map();
  const { run, manager, files } = context;
  return {
    check: (needs) => check(context, needs),
    async observe(question) {
      const actual = await observe(context, question);
      if (actual.device !== null) pending.delete(question.link);
      return actual;
    },
    device: async (link) => (await observeTunnel(context, link)).device,
    sshClients: async () => readSshConnection(process.env.SSH_CONNECTION),
    apply: (step) => applyStep(context, pending, step),
    async links() {
      const known = await run('wg', ['show', 'interfaces']);
      const names = [...Object.keys(networkInterfaces()), ...known.split(/\s+/), ...(await files.list())];
      return new Set(names.filter((name) => name !== ''));
    },
    resolve,
    route: (destination) => findRoute(destination),
    sourceAddress: findSourceAddress,
    isPortFree,
    triggerHandshake,
    isTcpReachable,
    probeConnector,
    answersQuery,
    queryDomain: (servers, domain, source) => queryDomain(servers, domain, source),
    probe: (target, deadlineMs) => probeTarget(context, target, deadlineMs),
    watch: (listener) => watchLinks(listener),
    watchDevices: (listener, everyMs) => watchDevices(run, listener, { everyMs }),
    ...(context.resolverFolder && {
      serveNames: ({ address, source }, answer) =>
        serveNames({ address, source, port: namesPort, isAllowed: (asker) => asker === address, answer }),
    }),
  };

  async function findRoute(destination: Address): Promise<KernelRoute> {
    const source = await findSourceAddress(destination);
    if (source === null) return { link: null, why: 'none' };
    const interfaces = networkInterfaces();
    const kernelName = Object.keys(interfaces).find((name) =>
      addressesOf(interfaces, name).some(({ address }) => address === source),
    );
    const link = kernelName === undefined ? 'an interface without a name' : await nameOf(kernelName);
    // The route table is not readable. The interface is the one with the source address.
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

  /** Our name of one of our tunnels. For any other interface, the kernel's name. */
  async function nameOf(kernelName: string): Promise<string> {
    for (const link of await files.list()) {
      if ((await manager.kernelName(parseLinkName(link), await files.read(link))) === kernelName) return link;
    }
    return kernelName;
  }
}

async function check(context: PortableContext, { forwarding, fullTunnel }: Requirements): Promise<void> {
  if (forwarding) throw unsupported(context, 'a connector');
  if (fullTunnel) throw unsupported(context, 'a full tunnel');
  // Windows has no user ids. Its tools fail without administrator rights.
  if ((process.geteuid?.() ?? 0) !== 0) throw new MissingPrivilege('cpn', 'run it with sudo');
  for (const tool of context.manager.tools) await findTool(tool);
}

/** The flags of `ping` differ between platforms. */
async function probeTarget(context: PortableContext, target: ResolvedTarget, deadlineMs: number): Promise<boolean> {
  if (target.port === null) throw unsupported(context, 'a probe by ping');
  return probe(context.run, target, deadlineMs);
}

/** Short, because a poll starts no process. */
const defaultIntervalMs = 2000;

/** {@link Host.watch} by polling interfaces and addresses. Periodic passes find route changes. */
export async function watchLinks(
  listener: (event: HostEvent) => void,
  everyMs = defaultIntervalMs,
  read = networkInterfaces,
): Promise<Watch> {
  let known = read();
  return pollUntilClosed(everyMs, () => {
    const found = read();
    for (const event of compare(known, found)) listener(event);
    known = found;
  });
}

type Interfaces = ReturnType<typeof networkInterfaces>;

function compare(before: Interfaces, after: Interfaces): HostEvent[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((link) => !isDeepStrictEqual(before[link], after[link]))
    .map((link) => ({ kind: link in before && link in after ? 'address' : 'link', link, removed: !(link in after) }));
}
