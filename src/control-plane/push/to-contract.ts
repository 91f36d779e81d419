import type { Network, NetworkHead, NetworkSummary } from '../../contract/network.ts';
import type { ListedPeer, Peer } from '../../contract/peer.ts';
import type { ChangedMapRules, MapRules } from '../../contract/rules.ts';
import { toLabel } from '../../core/names/label.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import type { Revision } from '../store/changes.ts';
import type { StoredNetwork } from '../store/networks.ts';
import { type FieldColumn, listedFieldColumns } from '../store/peer-columns.ts';
import type { StoredPeer } from '../store/peers/peers.ts';

export function toNetworkSummary(network: StoredNetwork): NetworkSummary {
  const { id, name, description, range, routes, revision, map_max_age_seconds, spread, route_dns } = network;
  const { self_enroll, approval } = network;
  return {
    ...{ id, name, description, private_cidr: range, routes: [...routes], vpn_type: 'wireguard', revision },
    ...(map_max_age_seconds !== null && { map_max_age_seconds }),
    ...(spread && { spread }),
    ...(route_dns.length > 0 && { route_dns: [...route_dns] }),
    ...(self_enroll && { self_enroll }),
    ...(approval !== 'off' && { approval }),
  };
}

type ChangedHead<Rules> = Omit<NetworkHead, 'rules'> & { readonly rules?: Rules };

/** @param rules absent in an open network */
export function toNetworkHead<Rules extends ChangedMapRules = MapRules>(
  network: StoredNetwork,
  rules?: Rules,
): ChangedHead<Rules> {
  const { lastingNonce, relay } = network;
  return {
    ...toNetworkSummary(network),
    etag: formatETag(network),
    ...(lastingNonce !== null && { nonce: lastingNonce }),
    ...(relay !== null && { relay }),
    ...(rules && { rules }),
  };
}

export function toNetwork(network: StoredNetwork, peers: readonly StoredPeer[], rules?: MapRules): Network {
  return { ...toNetworkHead(network, rules), peers: peers.map((peer) => toPeer(network, peer)) };
}

/**
 * A peer as in the map. Its routes are the assigned ones without the withdrawn ones. Routes that
 * the network lacks now, and the route limit of a former connector, stay in the database.
 */
export function toPeer(network: StoredNetwork, peer: StoredPeer): Peer {
  const { id, name, peer_type, public_key, address, endpoint, created_at } = peer;
  const { assigned, withdrawn, isLimited } = readService(network, peer);
  return {
    ...{ id, name, peer_type, public_key, address, endpoint, created_at },
    ...(peer.label !== null && peer.label !== toLabel(name) && { dns_label: peer.label }),
    ...(peer.profile !== null && { via: 'connectors' as const }),
    ...toFields(peer),
    ...(isLimited && peer_type === 'connector' && { routes: assigned.filter((route) => !withdrawn.includes(route)) }),
    ...(withdrawn.length > 0 && { withdrawn }),
  };
}

/** A peer as users list it, with the user whose own device it is. */
export function toListedPeer(network: StoredNetwork, peer: StoredPeer): ListedPeer {
  const { user_id: id, user_email: email } = peer;
  return { ...toPeer(network, peer), ...(email !== null && { user: { id, email } }) };
}

function toFields(peer: StoredPeer): Pick<Peer, FieldColumn> {
  const fields: Record<string, unknown> = {};
  for (const [name, kind] of listedFieldColumns) {
    const stored = peer[name];
    if (stored !== null && stored !== 0) fields[name] = toField(kind, stored);
  }
  return fields;
}

function toField(kind: (typeof listedFieldColumns)[number][1], stored: string | number): unknown {
  if (kind === 'boolean') return true;
  return kind === 'json' ? JSON.parse(String(stored)) : stored;
}

export function isServing(network: StoredNetwork, peer: Pick<StoredPeer, 'routes' | 'withdrawn'>): boolean {
  const { assigned, withdrawn } = readService(network, peer);
  return assigned.some((route) => !withdrawn.includes(route));
}

/** The routes that are assigned to a connector, and the ones that it took out of service. */
export function readService(network: StoredNetwork, peer: Pick<StoredPeer, 'routes' | 'withdrawn'>) {
  const limit = peer.routes === null ? null : (JSON.parse(peer.routes) as Prefix[]);
  const assigned = limit?.filter((route) => network.routes.includes(route)) ?? network.routes;
  const stored = JSON.parse(peer.withdrawn) as Prefix[];
  const withdrawn = stored.filter((prefix) => prefix === network.range || assigned.includes(prefix));
  return { assigned, withdrawn, isLimited: limit !== null || withdrawn.length > 0 };
}

/** The strong ETag of a revision: its number, and the nonce of its history. */
export function formatETag({ revision, nonce }: Revision): string {
  return `"${revision}-${nonce}"`;
}
