import type { Device, Underlay } from '../../host-state/actual.ts';
import type { Peer } from '../../map/model.ts';
import { type Address, covers, familyOf, hostPrefix, restorePrefix } from '../../net/cidr.ts';
import { isLiteral } from '../../net/endpoint.ts';
import type { PacketPath } from './path.ts';

/** The path of a first WireGuard packet from another host to the listen port of this host. */
export interface InboundPath extends PacketPath {
  readonly iif: string;
  readonly port: number;
}

export interface InboundInputs {
  readonly self: Pick<Peer, 'endpoint'>;
  readonly device: Pick<Device, 'listenPort'> | null;
  /** The chosen listen port; null if the kernel chooses it. */
  readonly listenPort: number | null;
  readonly underlay: Underlay;
}

const anywhere = restorePrefix('0.0.0.0/0');

/**
 * Returns a path for each interface by which other hosts may start a session over IPv4. Empty
 * without an endpoint: peers do not dial this host then, and replies pass any stateful firewall.
 */
export function inboundPaths({ self, device, listenPort, underlay }: InboundInputs): InboundPath[] {
  const { endpoint } = self;
  const port = listenPort ?? device?.listenPort ?? null;
  if (endpoint === null || port === null) return [];
  if (isLiteral(endpoint) && familyOf(endpoint.host) !== 4) return [];
  const own = isLiteral(endpoint) && underlay.addresses.includes(endpoint.host) ? endpoint.host : null;
  const to = own === null ? anywhere : hostPrefix(own);
  // If both ports are equal, no rule of this host translates one into the other.
  const isRedirected = endpoint.port === port ? { isRedirected: false } : {};
  return linksToward(own, underlay).map((iif) => ({
    ...{ iif, oif: '', from: anywhere, to, state: 'new', port },
    ...isRedirected,
  }));
}

/** The interface in the subnet of the address, else those of the default routes, else all. */
function linksToward(own: Address | null, { connected, uplinks, links }: Underlay): readonly string[] {
  const near = connected.filter(({ prefix }) => own !== null && covers(prefix, own)).map(({ link }) => link);
  if (near.length > 0) return [...new Set(near)];
  return uplinks.length > 0 ? uplinks : links.map(({ name }) => name);
}
