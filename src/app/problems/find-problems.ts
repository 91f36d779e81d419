import { findRouteTo } from '../../core/health/lan-health.ts';
import { findExpiryWarning } from '../../core/map/expiry.ts';
import { findOwnPeer, findWaiting } from '../../core/map/own-peer.ts';
import { mostDescribed } from '../../core/map/skipped-peers.ts';
import { routeDnsOf } from '../../core/names/route-dns.ts';
import { covers } from '../../core/net/cidr.ts';
import { describeDifference, findPinMismatches } from '../../core/pins/pin-mismatch.ts';
import { type Problem, problem } from '../../core/problems/problem.ts';
import { planDnsRemoval } from '../../core/reconcile/plan-dns.ts';
import { explainHosts } from '../../core/reconcile/plan-hosts.ts';
import { findForeignRoutes } from '../../core/routing/own-routes.ts';
import { assignedRoutes } from '../../core/routing/topology/route-owner.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import { findLan } from '../lan/lan.ts';
import { findUnreachableLans } from '../lan/lan-routes.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';

/** The pin mismatches that no user has accepted. */
export function findPinProblems({ membership, pins, options, interface: link }: Joined): Problem[] {
  return findPinMismatches(membership.map, pins).map(({ name, pin, claimed }) =>
    problem('pin-mismatch', {
      ...{ interface: link, peer: claimed.peer, name, address: pin.address },
      ...{ known_key: pin.publicKey, claimed_key: claimed.publicKey },
      ...{ difference: describeDifference({ pin, claimed }), pin: options.pin },
    }),
  );
}

/** Peers of the map that cannot be used: the first ones, and the number of others. */
export function findSkippedPeers({ membership, interface: link }: Joined, most = mostDescribed): Problem[] {
  const skipped = membership.map.skipped ?? [];
  const more = skipped.length - most;
  return [
    ...skipped
      .slice(0, most)
      .map(({ id: peer, name, address, reason }) =>
        problem('peer-skipped', { interface: link, peer, name, address, reason }),
      ),
    ...(more > 0 ? [problem('peers-skipped', { interface: link, more })] : []),
  ];
}

/** Reports that an administrator has not approved this host. */
export function findApprovalProblem(state: Joined): Problem[] {
  const waiting = findWaiting(state);
  if (waiting === null) return [];
  const { map, peer } = state.membership;
  return [
    problem('awaiting-approval', {
      ...{ interface: state.interface, network: map.id ?? 'NETWORK', peer: peer.id },
      ...waiting,
    }),
  ];
}

/** Reports that this host has expired, or expires soon. */
export function findExpiryProblem(state: Joined, now: Date): Problem[] {
  const expiry = findExpiryWarning(state, now);
  if (expiry === null) return [];
  const { map, peer } = state.membership;
  const network = typeof map.id === 'number' ? map.id : 'NETWORK';
  const { isOver, at: expires_at } = expiry;
  if (expiry.isMovedByLogin) {
    const facts = { interface: state.interface, expires_at, url: state.service.url };
    return [isOver ? problem('login-expired', facts) : problem('login-expires-soon', facts)];
  }
  const facts = { interface: state.interface, expires_at, network, peer: peer.id };
  return [isOver ? problem('peer-expired', facts) : problem('expires-soon', { ...facts, days: expiry.days })];
}

export function findUnusedEndpoints({ state, desired }: Evaluation): Problem[] {
  const names = new Map(state.membership.map.peers.map(({ id, name }) => [id, name]));
  return [...desired.lostEndpoints].map(([id, reason]) =>
    problem('endpoint-unused', { interface: state.interface, peer: names.get(id) ?? `${id}`, reason }),
  );
}

export function findForeignRouteProblems({ state, desired, actual }: Evaluation): Problem[] {
  return findForeignRoutes(desired, actual).map(({ prefix: route, remedy: command, ...rest }) =>
    problem('route-foreign', { interface: state.interface, route, command, ...rest }),
  );
}

/** Reports the domains behind routes that this host refuses. */
export function findRefusedDomains({ state, desired }: Pick<Evaluation, 'state' | 'desired'>): Problem[] {
  return desired.domains.flatMap(({ domain, route, state: is, reason }) =>
    is !== 'refused' || reason === null || route === null
      ? []
      : [problem('domain-refused', { interface: state.interface, domain, reason })],
  );
}

/** Reports our files that a resolver reads, or may still use, after they were to be removed. */
export function findLeftFiles({ state, actual }: Pick<Evaluation, 'state' | 'actual'>): Problem[] {
  const { interface: link, enabled, options, ownsDns } = state;
  const resolver = actual.dns?.program === 'systemd-resolved' ? null : actual.dns;
  // The pass of a network that is up tries again, unless the resolver must not be restarted.
  if (!ownsDns || (enabled && (options.dns || resolver?.unstartable === undefined))) return [];
  return planDnsRemoval(link, actual, 'taken back').flatMap((step) => {
    if (step.do !== 'revert-dns' || step.files === undefined) return [];
    const { program, texts } = step.files;
    const paths = Object.keys(texts);
    const reader = resolver?.program === program ? resolver : null;
    const facts = { interface: link, path: paths.join(', '), program, is_down: !enabled };
    const is_there = paths.some((path) => path in (actual.dnsFiles ?? {}));
    return problem('dns-file-left', { ...facts, is_there, reason: reader?.unstartable ?? reader?.trouble ?? null });
  });
}

export function findHostsProblem({ state, desired, actual }: Evaluation): Problem[] {
  const found = explainHosts(desired, actual);
  return found === null ? [] : [problem('hosts-not-updated', { interface: state.interface, problem: found })];
}

/** Reports identities (this host's or a peer's) that two hosts may use. */
export function findClones(
  { interface: link, membership }: Joined,
  { sync, alternating }: Pick<Notes, 'alternating'> & { readonly sync: Pick<Notes['sync'], 'clonedSince'> },
): Problem[] {
  const { clonedSince: since } = sync;
  const peers = membership.map.peers.flatMap(({ publicKey, name }) => {
    const endpoints = Object.hasOwn(alternating, publicKey) ? alternating[publicKey] : undefined;
    return endpoints === undefined ? [] : [problem('peer-alternating', { interface: link, peer: name, endpoints })];
  });
  return since === undefined ? peers : [problem('identity-cloned', { interface: link, since }), ...peers];
}

/** Reports unused parts of the wg-quick text from the enrolment. */
export function findConfigRemarks({ membership: { map, text }, service, interface: link }: Joined): Problem[] {
  if (text === undefined) return [];
  const facts = { interface: link, service: service.url };
  return [
    ...(text.dns.length > 0 && routeDnsOf(map, text).length === 0
      ? [problem('dns-ignored', { ...facts, servers: text.dns })]
      : []),
    ...text.remarks.map((remark) => problem('config-remark', { ...facts, remark })),
  ];
}

/** LANs that do not answer or have no route, and probe targets that prove nothing. */
export function findLanProblems(
  state: Joined,
  { dead, probed, ways }: Pick<Notes, 'dead' | 'probed' | 'ways'>,
): Problem[] {
  const { interface: link, membership } = state;
  const self = findOwnPeer(membership.map, state);
  const factsOf = (route: string) => ({
    interface: link,
    route,
    is_withdrawn: self?.withdrawn.some((each) => each === route) ?? false,
  });
  const { served = [], targets: all = [] } = findLan(state) ?? {};
  const targets = all.map((each) => ({ ...each, address: each.address ?? probed[each.name]?.address ?? null }));
  const behind = (route: string) =>
    targets.filter(({ address }) => address !== null && findRouteTo(address, served) === route).map(({ name }) => name);
  return [
    ...dead.map((route) => problem('lan-silent', { ...factsOf(route), targets: behind(route) })),
    ...findUnreachableLans(ways)
      .filter(({ route }) => route !== membership.map.cidr)
      .map(({ route, why: reason }) => problem('lan-unreachable', { ...factsOf(route), reason })),
    ...targets.flatMap(({ name: target, address }) => {
      const facts = { interface: link, target, error: probed[target]?.trouble ?? '' };
      if (probed[target]?.trouble) return problem('probe-untried', { ...facts, why: 'failed' });
      if (address === null) return probed[target] ? problem('probe-untried', { ...facts, why: 'unresolved' }) : [];
      return findRouteTo(address, served) === null ? problem('probe-untried', { ...facts, why: 'elsewhere' }) : [];
    }),
  ];
}

/** Maps of prefixes that are no routes which this host serves. They have no effect. */
export function findUnusedMaps(state: Joined): Problem[] {
  const { interface: link, options } = state;
  const { map } = state.membership;
  const self = findOwnPeer(map, state);
  const served = self === undefined ? [] : assignedRoutes(map, self);
  return options.maps
    .filter(({ route }) => !served.some((each) => covers(route, each)))
    .map(({ route, local }) => {
      const isSwapped = served.some((each) => covers(local, each));
      return problem('map-unused', { interface: link, network: map.name, route, local, isSwapped });
    });
}

/** Drift that the daemon does not repair immediately. */
export function findTroubles({ interface: link }: Joined, { troubles }: Pick<Notes, 'troubles'>): Problem[] {
  return troubles.map((note) => problem('repair-postponed', { interface: link, note }));
}
