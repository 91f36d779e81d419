import { readFile } from 'node:fs/promises';
import type { HostLink, Surroundings } from '../../core/actual.ts';
import { type Address, familyOf, lengthOf } from '../../core/cidr.ts';
import { aliasMark, kernelProtocol } from '../../core/marks.ts';
import { readAddress } from '../read-address.ts';
import type { Shown } from './ip-show.ts';
import { parseSshClients } from './ssh-clients.ts';

/** What lies around the tunnel and is told by files rather than by `ip`. */
export type Neighbours = Pick<Surroundings, 'resolvers' | 'sshClients'>;

/**
 * Reads resolvers and SSH clients. Beside resolv.conf(5) systemd-resolved's own file is read: where its stub is the
 * resolver, only there are the servers that it asks.
 */
export async function readNeighbours(sshConnection: string | undefined): Promise<Neighbours> {
  const [configured, uplinks, tcp, tcp6] = await Promise.all(
    ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf', '/proc/net/tcp', '/proc/net/tcp6'].map(readIfThere),
  );
  return {
    resolvers: parseResolvers(`${configured}\n${uplinks}`),
    sshClients: parseSshClients(`${tcp}\n${tcp6}`, sshConnection),
  };
}

/** The servers of a resolv.conf(5), without those that are no addresses. */
export function parseResolvers(text: string): Address[] {
  const names = text.split('\n').map((line) => /^nameserver\s+(\S+)/.exec(line)?.[1] ?? '');
  return [...new Set(names.flatMap((name) => readAddress(name) ?? []))];
}

/** Puts together what surrounds the interface `link`. */
export function gatherSurroundings(link: string, { links, routes }: Shown, neighbours: Neighbours): Surroundings {
  const others = links.filter((each) => each.name !== link && !each.loopback);
  const defaults = routes.filter(
    ({ prefix, table, links: into }) => table === 'main' && lengthOf(prefix) === 0 && !into.includes(link),
  );
  const mtus = defaults.flatMap((route) => [
    ...links.filter((each) => route.links.includes(each.name)).map((each) => each.mtu),
    ...(route.mtu === null ? [] : [route.mtu]),
  ]);
  return {
    addresses: others
      .filter(({ alias }) => !alias?.startsWith(aliasMark))
      .flatMap(({ addresses }) => addresses.filter(isRouted).map(({ address }) => address)),
    connected: others.flatMap(({ name, addresses }) =>
      addresses.filter(isRouted).map(({ subnet }) => ({ prefix: subnet, link: name })),
    ),
    routed: routes
      .filter(({ prefix, table, protocol }) => table === 'main' && protocol !== kernelProtocol && lengthOf(prefix) > 0)
      .flatMap(({ prefix, links: into }) =>
        into.filter((each) => each !== link).map((each) => ({ prefix, link: each })),
      ),
    gateways: [...new Set(defaults.flatMap((route) => route.gateways))],
    uplinks: [...new Set(defaults.filter(({ prefix }) => familyOf(prefix) === 4).flatMap((route) => route.links))],
    links: others.map(({ name, kind, mtu }) => ({ name, kind: kindOf(kind), mtu })),
    underlayMtu: mtus.length === 0 ? null : Math.min(...mtus),
    ...neighbours,
  };
}

function kindOf(kind: string | null): HostLink['kind'] {
  return kind === null || ofCards.has(kind) ? 'card' : kind === 'bridge' ? kind : 'other';
}

/** Virtual interfaces that are put together of cards (ip-link(8)). */
const ofCards: ReadonlySet<string> = new Set(['bond', 'team', 'vlan', 'ppp']);

/** Every IPv6 link has fe80::/64, and none of them is a network of its own. */
function isRouted({ address }: { readonly address: Address }): boolean {
  return !address.startsWith('fe80:');
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
