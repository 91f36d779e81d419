import { readFileSync } from 'node:fs';
import type { HostLink, Underlay } from '../../core/host-state/actual.ts';
import { aliasMark, kernelProtocol } from '../../core/host-state/marks.ts';
import { type Address, familyOf, lengthOf } from '../../core/net/cidr.ts';
import { findInternalLinks, findOverlayLinks } from './internal-links.ts';
import type { ShownByIp } from './ip/show.ts';

/** Describes the host outside the interface `link`. */
export function gatherUnderlay(
  link: string,
  { links, routes, refusing }: ShownByIp,
): Omit<Underlay, 'resolvers' | 'stubs'> {
  const others = links.filter((each) => each.name !== link && !each.loopback);
  const defaults = routes.filter(
    ({ prefix, table, links: into }) => table === 'main' && lengthOf(prefix) === 0 && !into.includes(link),
  );
  const mtus = defaults.flatMap((route) => [
    ...links.filter((each) => route.links.includes(each.name)).map((each) => each.mtu),
    ...(route.mtu === null ? [] : [route.mtu]),
  ]);
  const uplinks = defaults.flatMap((route) => route.links);
  const internal = findInternalLinks(others, uplinks, routes);
  const overlays = findOverlayLinks(others, uplinks);
  return {
    addresses: others
      .filter(({ alias }) => !alias?.startsWith(aliasMark))
      .flatMap(({ addresses }) => addresses.filter(isRouted).map(({ address }) => address)),
    connected: others.flatMap(({ name, addresses }) =>
      addresses.filter(isRouted).map(({ subnet }) => ({ prefix: subnet, link: name })),
    ),
    routed: routes
      .filter(({ prefix, table, protocol }) => table === 'main' && protocol !== kernelProtocol && lengthOf(prefix) > 0)
      .flatMap(({ prefix, metric, protocol, gateways: [gateway], links: into }) =>
        into
          .filter((each) => each !== link)
          .map((each) => ({ prefix, link: each, metric, protocol, ...(gateway !== undefined && { gateway }) })),
      ),
    tunnels: others.filter(({ alias }) => alias?.startsWith(aliasMark)).map(({ name }) => name),
    refusing,
    reached: routes
      .filter(isKernelsOrMain)
      .filter(({ prefix }) => lengthOf(prefix) > 0 && !isLinkLocal(prefix))
      .flatMap(({ prefix, links: into }) =>
        into.filter((each) => each !== link).map((each) => ({ prefix, link: each })),
      ),
    gateways: [...new Set(defaults.flatMap((route) => route.gateways))],
    uplinks: [...new Set(defaults.filter(({ prefix }) => familyOf(prefix) === 4).flatMap((route) => route.links))],
    uplinks6: [...new Set(defaults.filter(({ prefix }) => familyOf(prefix) === 6).flatMap((route) => route.links))],
    links: others.map((each) => ({
      ...describeLink(each),
      ...(internal.has(each.name) && { isInternal: true }),
      ...(overlays.has(each.name) && { isOverlay: true }),
    })),
    underlayMtu: mtus.length === 0 ? null : Math.min(...mtus),
  };
}

/** A bridge without a carrier counts as up: containers may join it again at any time. */
function describeLink({ name, kind, mtu, up, carrier }: ShownByIp['links'][number]): HostLink {
  const isDown = !up || !(carrier || kind === 'bridge');
  return { name, kind: kindOf(kind), mtu, ...(isDown && { isDown }) };
}

function kindOf(kind: string | null): HostLink['kind'] {
  return kind === null || ofCards.has(kind) ? 'card' : kind === 'bridge' ? kind : 'other';
}

/** Virtual interfaces that are built from cards (ip-link(8)). */
const ofCards: ReadonlySet<string> = new Set(['bond', 'team', 'vlan', 'ppp']);

/** Every IPv6 link has fe80::/64, which is not a network behind the link. */
function isRouted({ address }: { readonly address: Address }): boolean {
  return !isLinkLocal(address);
}

function isLinkLocal(text: string): boolean {
  return text.startsWith('fe80:');
}

/** In a VRF, the kernel's own routes are outside the main table. */
function isKernelsOrMain({ table, protocol }: ShownByIp['routes'][number]): boolean {
  return table === 'main' || protocol === kernelProtocol;
}

/** The text of a file. Empty if it does not exist or cannot be read. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
