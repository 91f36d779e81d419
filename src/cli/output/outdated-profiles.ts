import type { Network, NetworkPeer } from '../../api/admin-service.ts';
import { printable } from '../../core/errors/index.ts';
import { findOutdated } from '../../core/export/device-profile.ts';
import { warn } from './output.ts';

/**
 * The reasons why profiles of devices no longer fit their network, as clauses, by peer id. Leaves
 * out profiles that fit.
 */
export type OutdatedProfiles = ReadonlyMap<NetworkPeer['id'], readonly string[]>;

export function findOutdatedProfiles(network: Pick<Network, 'private_cidr' | 'routes' | 'peers'>): OutdatedProfiles {
  const found = network.peers.map((peer) => [peer.id, findOutdated(network, peer)] as const);
  return new Map(found.filter(([, reasons]) => reasons.length > 0));
}

/** Names each device with an outdated profile, and the remedy. */
export function warnOutdated({ id, peers }: Pick<Network, 'id' | 'peers'>, outdated: OutdatedProfiles): void {
  for (const peer of peers) {
    const reasons = outdated.get(peer.id);
    if (reasons !== undefined)
      warn(printable(`the profile of ${peer.name} (${peer.id}) is outdated: ${reasons.join('; ')}`));
  }
  if (outdated.size > 0)
    warn(`to replace a profile: cpn export ${id} --new-peer NAME; then: cpn peer remove ${id} PEER`);
}
