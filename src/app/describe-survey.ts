import type { Prefix } from '../core/cidr.ts';
import { compareSecret, describeTrouble } from '../core/compare-secrets.ts';
import { type Detour, describeDetour, findDetour, leadsIn } from '../core/detour.ts';
import { formatEndpoint } from '../core/endpoint.ts';
import { NotNamed, RulesNotLoaded } from '../core/errors.ts';
import { isLoaded } from '../core/firewall.ts';
import { judgePeer } from '../core/health.ts';
import { findHiddenPeers, type HiddenPeer } from '../core/hidden-peers.ts';
import { ownKeys } from '../core/own-peer.ts';
import { nameLimiting } from '../core/path-mtu.ts';
import { explainHosts } from '../core/plan-hosts.ts';
import { type RouteReport, remedyOfRefused } from '../core/route-report.ts';
import { describeAllSkipped } from '../core/skipped-peers.ts';
import type { Joined } from '../store/state.ts';
import type { Notes } from '../store/store.ts';
import { claimFinder, describeClaims } from './describe-claims.ts';
import { describeLan } from './describe-lan.ts';
import { describeText } from './describe-text.ts';
import { findTroubles, viewSecrets } from './find-secret-troubles.ts';
import { describeRotation } from './rotation/describe.ts';
import type { NetworkStatus, PeerStatus, RouteStatus } from './status.ts';
import type { Survey } from './survey.ts';

/** What a survey tells of a network's state. */
type Seen = Pick<NetworkStatus, 'state' | 'listenPort' | 'mtu' | 'pathMtu' | 'peers' | 'routes' | 'drift' | 'warnings'>;

/**
 * Tells how a network is from a survey of it and from what the daemon noted.
 *
 * @param now seconds since the epoch
 */
export function describeSurvey(
  seen: Survey,
  notes: Pick<Notes, 'silent' | 'troubles' | 'dead' | 'unloaded' | 'probed'>,
  now: number,
): Seen {
  const { state, listed, desired, actual, changes } = seen;
  // A network that was taken down is as it should be.
  const drift = state.enabled ? changes : [];
  const peers = describePeers(seen, notes.silent, now);
  const detours = findDetours(seen);
  const routes = desired.report.map((route) => ({
    ...describeRoute(route, actual, detours.get(route.prefix)),
    remedy: route.state === 'refused' ? remedyOfRefused(route, state.interface) : null,
  }));
  const troubled =
    !listed ||
    drift.length > 0 ||
    detours.size > 0 ||
    state.pins.some((pin) => pin.claimed !== null) ||
    notes.dead.length > 0 ||
    peers.some((peer) => peer.state === 'stale') ||
    routes.some((route) => route.state === 'missing');
  const names = explainHosts(desired, actual);
  const pending = describeRotation(state);
  const rangeDetour = detours.get(state.membership.map.cidr);
  return {
    state: actual.link === null ? 'down' : troubled ? 'degraded' : 'up',
    listenPort: actual.device?.listenPort ?? null,
    mtu: actual.link?.mtu ?? null,
    pathMtu: describeLimit(seen),
    peers,
    routes,
    drift,
    warnings: [
      ...(listed ? [] : [describeUnlisted(state)]),
      ...(rangeDetour ? [`${state.membership.map.cidr}: ${describeDetour(rangeDetour)}`] : []),
      ...findHiddenPeers(state.membership.map, state.membership.peer.address, actual.surroundings).map(describeHidden),
      ...describeText(state),
      ...describeAllSkipped(state.membership.map.skipped),
      ...describeClaims(state),
      ...(state.refused === null ? [] : [describeRefused(state)]),
      ...(state.drained ? [describeDrained(state)] : []),
      ...(pending === null ? [] : [pending]),
      ...findTroubles(state, actual).map(describeTrouble),
      ...desired.detours.map(
        ({ peer, via }) => `${peer.name} does not answer here; its packets go through ${via.name}`,
      ),
      ...describeUnloaded(seen, notes),
      ...describeLan(state, notes),
      ...(names === null || !state.enabled ? [] : [new NotNamed(state.interface, names).message]),
      ...notes.troubles,
    ],
  };
}

function describeLimit({ state, desired }: Survey): Seen['pathMtu'] {
  const { pathMtu } = desired;
  return pathMtu && { peer: nameLimiting(pathMtu, state.membership.map.peers), measuredAt: pathMtu.measuredAt };
}

function describePeers({ state, desired, actual }: Survey, silent: Notes['silent'], now: number): PeerStatus[] {
  const wanted = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
  const present = new Map(actual.device?.peers.map((peer) => [peer.publicKey, peer]));
  const secrets = viewSecrets(state, actual);
  const own = ownKeys(state);
  const findClaim = claimFinder(state);
  const failed = new Set(state.failed.filter(({ back }) => !back).map(({ peer }) => peer));
  return state.membership.map.peers
    .filter((peer) => !own.includes(peer.publicKey))
    .map((peer) => {
      const seen = present.get(peer.publicKey);
      const endpointRefused = desired.lostEndpoints.get(peer.id) ?? null;
      const endpoint = seen?.endpoint ?? (endpointRefused === null ? peer.endpoint : null);
      return {
        id: peer.id,
        name: peer.name,
        type: peer.type,
        publicKey: peer.publicKey,
        address: peer.address,
        endpoint: endpoint && formatEndpoint(endpoint),
        endpointRefused,
        allowedIps: wanted.get(peer.publicKey)?.allowedIps ?? [],
        state:
          seen === undefined ? 'never' : failed.has(peer.id) ? 'stale' : judgePeer(seen, now, silent[peer.publicKey]),
        latestHandshake: seen?.latestHandshake ?? null,
        rxBytes: seen?.rxBytes ?? 0,
        txBytes: seen?.txBytes ?? 0,
        ...findClaim(peer.id),
        secret: compareSecret(peer, secrets),
      };
    });
}

function describeRoute(
  { prefix, via, state, reason }: RouteReport,
  actual: Survey['actual'],
  detour: Detour | undefined,
): Omit<RouteStatus, 'remedy'> {
  if (state === 'served') return { prefix, via: null, state: 'active', reason: 'served by this host' };
  if (state === 'withdrawn') return { prefix, via: null, state: 'standby', reason: 'out of service at this host' };
  if (state !== 'taken') return { prefix, via, state, reason };
  if (!leadsIn(prefix, actual)) return { prefix, via, state: 'missing', reason: 'not on the host' };
  return { prefix, via, state: 'active', reason: detour ? describeDetour(detour) : reason };
}

/** What of the network's range and routes that lead in here is drawn away by somebody's more specific route. */
function findDetours({ state, desired, actual }: Survey): Map<Prefix, Detour> {
  const taken = desired.report.filter((route) => route.state === 'taken').map((route) => route.prefix);
  const leading = [state.membership.map.cidr, ...taken].filter((prefix) => leadsIn(prefix, actual));
  return new Map(
    leading.flatMap((prefix): [Prefix, Detour][] => {
      const detour = findDetour(prefix, actual.surroundings);
      return detour ? [[prefix, detour]] : [];
    }),
  );
}

/** Why nothing is forwarded, where the packet rules do not load. */
function describeUnloaded({ state, desired, actual }: Survey, { unloaded }: Pick<Notes, 'unloaded'>): string[] {
  const { link, firewall, isConnector } = desired;
  if (!state.enabled || unloaded === null || firewall === null || isLoaded(firewall, actual)) return [];
  return [new RulesNotLoaded(link, unloaded, isConnector).message];
}

function describeDrained({ interface: link }: Joined): string {
  return `out of service since "cpn drain"; "cpn drain ${link} --undo" puts it back`;
}

function describeHidden({ peer, link }: HiddenPeer): string {
  return `${peer.name} is out of reach: this host has its address ${peer.address} itself, on ${link}; leave one of the two networks, or join that of ${link} again for another address`;
}

function describeRefused({ refused, membership: { map } }: Joined): string {
  return `network ${map.name} was changed back to what it was: with its newest map (${refused}) nobody was heard any more who answered before; it is tried again when the network changes`;
}

function describeUnlisted({ membership, service, interface: link }: Joined): string {
  const { map, peer } = membership;
  return `${service.url} no longer lists this host (peer ${peer.id}) in network ${map.name}; "cpn leave ${link}" removes the tunnel, "cpn join" with a new key joins again`;
}
