import type { Network, NetworkPeer, NetworkRules, PeerHealth } from '../../api/admin-service.ts';
import type { PathState } from '../../contract/health.ts';
import { printable } from '../../core/errors/index.ts';
import { findOutdated } from '../../core/export/device-profile.ts';
import { findObservedPaths } from '../../core/health/observed-path.ts';
import { describeAge } from '../../core/health/peer-health.ts';
import { nameWithLabel } from '../../core/names/label.ts';
import { type Cell, green, red, table, warn, yellow } from './output.ts';

/** Observations of each peer, by its id as text. Null if the control plane collects none. */
type HealthByPeer = ReadonlyMap<string, PeerHealth> | null;

/** What enforces the rules at each peer, by its id as text. Null in a network without rules. */
export type EnforcementByPeer = ReadonlyMap<string, NetworkRules['enforcement'][number]['by']> | null;

interface PeerTableOptions {
  readonly now?: Date;
  readonly outdated?: OutdatedProfiles;
  readonly enforcement?: EnforcementByPeer;
  readonly isWide?: boolean;
}

interface PeerColumn {
  readonly title: string;
  readonly isShown: boolean;
  readonly cell: (peer: NetworkPeer) => Cell;
}

/** Shows observations, priorities, tags, fingerprints, states and ends only if there are any. */
export function peerTable(
  peers: readonly NetworkPeer[],
  health: HealthByPeer,
  { now = new Date(), outdated = new Map(), enforcement = null, isWide = false }: PeerTableOptions = {},
): string {
  const paths = findPaths(health);
  const of = ({ id }: NetworkPeer) => health?.get(String(id));
  const isOut = peers.some((peer) => outState(peer, now) !== null);
  const columns: PeerColumn[] = [
    { title: 'peer', isShown: true, cell: ({ id }) => String(id) },
    { title: 'name', isShown: true, cell: describeName },
    { title: 'type', isShown: true, cell: ({ peer_type }) => peer_type },
    {
      title: 'priority',
      isShown: peers.some(({ priority }) => priority !== undefined && priority !== 0),
      cell: (peer) => (peer.peer_type === 'connector' ? String(peer.priority ?? 0) : '-'),
    },
    {
      title: 'tags',
      isShown: peers.some(({ tags }) => tags !== undefined),
      cell: ({ tags }) => tags?.join(', ') ?? '-',
    },
    {
      title: 'user',
      isShown: peers.some(({ user }) => user !== undefined),
      cell: ({ user }) => (user === undefined ? '-' : `${user.email}${user.id === null ? ' (removed)' : ''}`),
    },
    {
      title: 'enforced by',
      isShown: enforcement !== null,
      cell: ({ id }) => paintEnforcement(enforcement?.get(String(id)) ?? '-'),
    },
    {
      title: 'state',
      isShown: health !== null || isOut,
      cell: (peer) => outState(peer, now) ?? (health === null ? '-' : paintState(of(peer)?.state ?? 'unknown')),
    },
    {
      title: 'until',
      isShown: peers.some(({ expires_at }) => expires_at !== undefined),
      cell: ({ expires_at }) => expires_at ?? '-',
    },
    { title: 'last seen', isShown: health !== null, cell: (peer) => describeLastSeen(of(peer)?.last_seen, now) },
    { title: 'path', isShown: health !== null, cell: (peer) => describePath(paths.get(String(peer.id)), of(peer)) },
    { title: 'version', isShown: health !== null, cell: (peer) => of(peer)?.version ?? '-' },
    {
      title: 'profile',
      isShown: peers.some(({ profile }) => profile !== undefined),
      cell: ({ id, profile }) => (profile === undefined ? '-' : outdated.has(id) ? ['outdated', yellow] : 'current'),
    },
    { title: 'address', isShown: true, cell: ({ address }) => address },
    { title: 'endpoint', isShown: true, cell: ({ endpoint }) => endpoint ?? '-' },
    {
      title: 'fingerprint',
      isShown: peers.some(({ fingerprint }) => fingerprint !== undefined),
      cell: ({ fingerprint }) => fingerprint ?? '-',
    },
    { title: 'public key', isShown: true, cell: ({ public_key }) => public_key },
  ];
  const shown = columns.filter(({ isShown }) => isShown);
  return table(
    shown.map(({ title }) => title),
    peers.map((peer) => shown.map(({ cell }) => cell(peer))),
    isWide ? null : narrowing,
  );
}

/** On a narrow terminal, names and keys keep only their beginning. `--wide` shows them whole. */
const narrowing = { cut: { 'public key': 12, name: 16 } };

/** A contract for scripts. Observations are null if they are not collected. */
export function peersToJson(
  peers: readonly NetworkPeer[],
  health: HealthByPeer,
  outdated: OutdatedProfiles = new Map(),
  enforcement: EnforcementByPeer = null,
) {
  const paths = findPaths(health);
  return peers.map((peer) => {
    const observed = health?.get(String(peer.id));
    return {
      ...peer,
      state: health && (observed?.state ?? 'unknown'),
      last_seen: observed?.last_seen ?? null,
      version: observed?.version ?? null,
      path: paths.get(String(peer.id)) ?? null,
      reachable_by: observed?.reachable_by ?? null,
      witnesses: observed?.witnesses ?? null,
      ...(enforcement && { enforced_by: enforcement.get(String(peer.id)) ?? null }),
      ...(peer.profile && { profile_outdated: outdated.get(peer.id) ?? [] }),
    };
  });
}

function describeName({ id, name, dns_label }: NetworkPeer): string {
  return nameWithLabel({ id, name, ...(dns_label !== undefined && { label: dns_label }) });
}

function findPaths(health: HealthByPeer): ReadonlyMap<string, PathState> {
  return findObservedPaths([...(health?.values() ?? [])]);
}

function outState({ suspended_at, expires_at, awaiting_approval }: NetworkPeer, now: Date): Cell | null {
  if (awaiting_approval !== undefined) return ['waiting', yellow];
  if (suspended_at !== undefined) return 'suspended';
  return expires_at !== undefined && Date.parse(expires_at) <= now.getTime() ? 'expired' : null;
}

export function paintEnforcement(by: string): Cell {
  return by === 'nothing' ? [by, yellow] : by;
}

function paintState(state: PeerHealth['state']): Cell {
  return [state, { online: green, offline: red, unknown: yellow }[state]];
}

function describeLastSeen(at: string | null | undefined, now: Date): string {
  return at ? describeAge((now.getTime() - Date.parse(at)) / 1000) : '-';
}

/** The path by which most hosts reach a peer, and how many of those that report do. */
function describePath(path: PathState | undefined, observed: PeerHealth | undefined): string {
  const { reachable_by = 0, witnesses = 0 } = observed ?? {};
  const count = witnesses === 0 ? [] : [`${reachable_by} of ${witnesses}`];
  return [...(path === undefined ? [] : [path]), ...count].join(', ') || '-';
}

/** Why profiles of devices no longer fit their network, as clauses, by peer id. */
export type OutdatedProfiles = ReadonlyMap<NetworkPeer['id'], readonly string[]>;

export function findOutdatedProfiles(network: Pick<Network, 'private_cidr' | 'routes' | 'peers'>): OutdatedProfiles {
  const found = network.peers.map((peer) => [peer.id, findOutdated(network, peer)] as const);
  return new Map(found.filter(([, reasons]) => reasons.length > 0));
}

export function warnOutdated({ id, peers }: Pick<Network, 'id' | 'peers'>, outdated: OutdatedProfiles): void {
  for (const peer of peers) {
    const reasons = outdated.get(peer.id);
    if (reasons !== undefined)
      warn(printable(`the profile of ${peer.name} (${peer.id}) is outdated: ${reasons.join('; ')}`));
  }
  if (outdated.size > 0)
    warn(`to replace a profile: cpn export ${id} --new-peer NAME; then: cpn peer remove ${id} PEER`);
}
