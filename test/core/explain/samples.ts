import type { Check } from '../../../src/core/explain/check.ts';
import { explainPath, type PathFacts } from '../../../src/core/explain/explain-path.ts';
import { findNetwork } from '../../../src/core/explain/find-target.ts';
import type { NetworkOnHost } from '../../../src/core/explain/view.ts';
import type { Actual, ActualPeer } from '../../../src/core/host-state/actual.ts';
import type { KernelRoute, TakenRoute } from '../../../src/core/host-state/kernel-route.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import type { Options } from '../../../src/core/map/options.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { address, bare, desireFor, dialled, network, options, peer, prefix, usualConstraints } from '../samples.ts';
import { simulate } from '../simulate.ts';

export const now = 1_800_000_000;
export const connector = peer(1, { type: 'connector', name: 'edge-1', endpoint: dialled(11) });
const second = peer(2, { type: 'connector', name: 'edge-2', endpoint: dialled(12) });
export const self = peer(3);
/** It has no endpoint: no peer can dial it. */
export const laptop = peer(4, { name: 'laptop' });
export const office = network([connector, second, self, laptop]);

/** A network in which this host, `self`, is all that it should be, with every peer heard a while ago. */
export function viewOf(
  map: NetworkMap,
  changes: Partial<NetworkOnHost> = {},
  on: Partial<typeof usualConstraints> = {},
  given: Partial<Options> = {},
  me: Peer = self,
): NetworkOnHost {
  const desired = desireFor(me, map, { options: { ...options, ...given } }, { ...usualConstraints, ...on });
  const actual = heard(simulate(bare, plan(desired, bare, now)), {
    latestHandshake: now - 30,
    rxBytes: 500,
    txBytes: 500,
  });
  const known = { silent: {}, paths: {}, failed: [], failures: [], secretTag: null, refused: null, expired: [] };
  const problems = { outdated: null, down: null, unlisted: null };
  const own = { map, address: me.address, listed: true, enabled: true, masquerades: true, directPaths: true };
  return {
    ...{ ...own, desired, actual, ...known, ...problems },
    actual: withFilter(actual, '0', desired.sysctls['net.ipv4.conf.cpn0.rp_filter'] ?? '0'),
    ...changes,
  };
}

/** What WireGuard's table says of every peer. */
export function heard(actual: Actual, changes: Partial<ActualPeer>): Actual {
  const { device } = actual;
  return { ...actual, device: device && { ...device, peers: device.peers.map((each) => ({ ...each, ...changes })) } };
}

/** With the values of the reverse path filter. */
export function withFilter(actual: Actual, all: string, own: string): Actual {
  const filters = { 'net.ipv4.conf.all.rp_filter': all, 'net.ipv4.conf.cpn0.rp_filter': own };
  return { ...actual, sysctls: { ...actual.sysctls, ...filters } };
}

/** A route into the tunnel. */
export function into(range: string, changes: Partial<TakenRoute> = {}): KernelRoute {
  return {
    link: 'cpn0',
    local: false,
    source: self.address,
    gateway: null,
    table: 'main',
    prefix: prefix(range),
    protocol: '157',
    ...changes,
  };
}

/** A route past it. */
export const away = (range: string, changes: Partial<TakenRoute> = {}) =>
  into(range, { link: 'eth0', source: address('203.0.113.22'), protocol: 'static', ...changes });

/** The checks of the way to an address in the network of `view`. */
export function explain(
  to: string,
  view: NetworkOnHost,
  there: KernelRoute,
  answers: Partial<PathFacts> = {},
): Check[] {
  const found = findNetwork(address(to), [view]);
  if (found === null) throw new Error(`${to} is in no network`);
  return explainPath(
    address(to),
    found,
    { there, back: there, outer: null, drops: null, answers: [], ...answers },
    now,
  );
}

export const verdicts = (checks: readonly Check[]) => checks.map(({ check, ok }) => [check, ok]);
export const check = (checks: readonly Check[], name: string) => checks.find((each) => each.check === name);

/** The verdicts of a packet that goes through the tunnel. */
export const allPass = Object.entries({
  network: true,
  route: true,
  allowed_ips: true,
  rp_filter: true,
  handshake: true,
  mtu: true,
});
