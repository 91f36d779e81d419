import type { PeerHealth, PeerPath } from '../../../contract/health.ts';
import type { Network } from '../../../contract/network.ts';
import type { Peer } from '../../../contract/peer.ts';
import { findOutdated } from '../../../core/export/device-profile.ts';
import type { Reach } from '../matrix/reach.ts';
import { formatExact } from '../text/format.ts';

/** True for a peer without cpn and its daemon, such as a phone. cpn always sends an identity. */
export function isDevice({ via, peer_type, identity_key }: Peer, health: PeerHealth | undefined): boolean {
  if (via !== undefined) return true;
  const isSilent = (health?.version ?? null) === null && (health?.last_seen ?? null) === null;
  return peer_type === 'admin_device' && identity_key === undefined && isSilent;
}

interface DeviceState {
  readonly summary: string;
  readonly facts: readonly (readonly [name: string, value: string])[];
  /** No command runs on a device. */
  readonly remedies: readonly [];
}

/** The state of a device, as reported by the hosts that it dials. */
export function describeDevice(
  network: Pick<Network, 'private_cidr' | 'routes' | 'peers'>,
  reach: Reach,
  peer: Peer,
): DeviceState {
  const { profile } = peer;
  const connector = profile === undefined ? undefined : reach.byId.get(profile.connector);
  const isOffline = connector !== undefined && reach.health.get(connector.id)?.state === 'offline';
  const handshake = findLastHandshake(reach, peer);
  const outdated = findOutdated(network, peer);
  const optional: (readonly [string, string | null])[] = [
    ['Connector', profile === undefined ? null : describeConnector(connector, isOffline)],
    ['Last handshake', handshake === null ? 'none is reported' : `${formatExact(handshake.at)}, at ${handshake.host}`],
    ['Profile', profile === undefined ? null : outdated.length === 0 ? 'current' : `outdated: ${outdated.join('; ')}`],
  ];
  return {
    summary: summarize(peer, connector, isOffline, handshake),
    facts: optional.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])),
    remedies: [],
  };
}

function describeConnector(connector: Peer | undefined, isOffline: boolean): string {
  if (connector === undefined) return 'gone from the network';
  return isOffline ? `${connector.name}, which is offline` : connector.name;
}

interface LastHandshake {
  readonly at: string;
  readonly host: string;
  readonly path: PeerPath['path'];
}

function summarize(
  { name, profile }: Peer,
  connector: Peer | undefined,
  isOffline: boolean,
  handshake: LastHandshake | null,
): string {
  if (profile !== undefined && connector === undefined)
    return `The connector of ${name} is gone, so ${name} reaches nothing. Add it again through another connector, then remove this peer.`;
  if (isOffline)
    return `The only connector of ${name}, ${connector?.name}, is offline, so ${name} reaches nothing. WireGuard alone cannot move it to another connector.`;
  if (handshake === null) return `${name} has not connected yet. Turn the tunnel on in its WireGuard app.`;
  if (handshake.path === 'direct') return `${name} is connected to ${handshake.host}.`;
  if (handshake.path === 'down')
    return `${name} does not answer ${handshake.host}. The device is off, asleep, or its tunnel is off.`;
  return `${name} is not connected at the moment. The device is off, asleep, or sends nothing.`;
}

function findLastHandshake(reach: Reach, { id }: Peer): LastHandshake | null {
  let last: LastHandshake | null = null;
  for (const host of reach.byId.values()) {
    const path = reach.pathOf(host.id, id) ?? reach.lastPathOf(host.id, id);
    const reportedAt = reach.health.get(host.id)?.reported_at ?? null;
    if (path?.handshake_age === undefined || reportedAt === null) continue;
    const at = new Date(Date.parse(reportedAt) - 1000 * path.handshake_age).toISOString();
    if (last === null || at > last.at) last = { at, host: host.name, path: path.path };
  }
  return last;
}

/** A device's connector, or that its profile is outdated; null for a peer without a profile. */
export function describeProfile(
  network: Pick<Network, 'private_cidr' | 'routes' | 'peers'>,
  peer: Peer,
): string | null {
  if (peer.profile === undefined) return null;
  if (findOutdated(network, peer).length > 0) return 'outdated profile';
  const connector = network.peers.find(({ id }) => id === peer.profile?.connector);
  return `through ${connector?.name ?? 'a connector'}`;
}
