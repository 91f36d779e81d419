import { describeCause, describeInbound, describeRemedy, describeUnread } from '../forward/foreign/describe-drop.ts';
import type { ForeignDrops } from '../forward/foreign/foreign-drops.ts';
import { type InboundPath, inboundPaths } from '../forward/foreign/inbound-path.ts';
import { peerStateOf } from '../health/peer-health.ts';
import type { Address } from '../net/cidr.ts';
import { type Check, inconclusive, passes, stops } from './check.ts';
import { unreadRules } from './check-firewall.ts';
import { findActualPeer, findWantedOwner, type NetworkOnHost, namePeer } from './view.ts';

/** Returns the paths by which peers start a session with this host; empty if none dials it. */
export function findInboundPaths({ map, address, desired, actual }: NetworkOnHost): InboundPath[] {
  const self = map.peers.find((peer) => peer.address === address);
  if (self === undefined) return [];
  const { device, underlay } = actual;
  return inboundPaths({ self, device, listenPort: desired.config.listenPort, underlay });
}

/**
 * Checks whether other packet rules prevent the peer from starting a session. A peer that this host
 * cannot dial must start one before any packet goes to it. Empty if peers do not dial this host.
 * `drops` is null if the rules could not be read.
 */
export function checkInbound(address: Address, view: NetworkOnHost, drops: ForeignDrops | null, now: number): Check[] {
  const [path] = findInboundPaths(view);
  if (path === undefined) return [];
  if (drops === null) return [inconclusive('firewall', unreadRules)];
  const { inbound, unread } = drops;
  const unknown = describeUnread(unread?.inbound ?? []);
  if (inbound === null && unknown !== null) return [inconclusive('firewall', unknown.found, unknown.remedy)];
  if (inbound === null) return [passes('firewall', `no rule was found that drops UDP to port ${path.port}`)];
  const remedy = describeRemedy(inbound, view.desired.link);
  const cause = describeCause(inbound);
  const owner = findWantedOwner(address, view);
  const peer = findActualPeer(address, view);
  const isDialled = view.map.peers.some(
    ({ publicKey, endpoint }) => publicKey === owner?.publicKey && endpoint !== null,
  );
  const isUp = peer !== null && peerStateOf(peer, now, view.silent[peer.publicKey]) === 'connected';
  if (owner === null || isDialled || isUp) {
    return [inconclusive('firewall', describeInbound(inbound), remedy)];
  }
  const name = namePeer(owner.publicKey, view);
  return [stops('firewall', `${cause}: ${name} cannot start a session with this host, which cannot dial it`, remedy)];
}
