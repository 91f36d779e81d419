import { findSecretMismatches } from '../health/compare-secrets.ts';
import { describePathMtu } from '../health/path-mtu.ts';
import { describeAge, peerStateOf } from '../health/peer-health.ts';
import type { ActualPeer, Underlay } from '../host-state/actual.ts';
import type { KernelRoute } from '../host-state/kernel-route.ts';
import { type Address, covers, familyOf, lengthOf } from '../net/cidr.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import { problem } from '../problems/problem.ts';
import { type Check, inconclusive, passes, stops } from './check.ts';
import { describeRefusal, describeRoute } from './check-route.ts';
import { findActualPeer, findOwner, findWantedOwner, type NetworkOnHost, namePeer } from './view.ts';

const reconcile = '"cpn reconcile" repairs it';

/** Checks whether the desired peer in WireGuard's own table receives the packet. */
export function checkAllowedIps(address: Address, view: NetworkOnHost): Check {
  const { desired, actual } = view;
  const wanted = findWantedOwner(address, view);
  if (actual.device === null) return stops('allowed_ips', `${desired.link} is not a WireGuard interface`, reconcile);
  const owner = findOwner(address, actual.device.peers);
  if (owner === null) {
    const whose = wanted === null ? '' : `; it should be ${namePeer(wanted.publicKey, view)}`;
    return stops('allowed_ips', `no peer of ${desired.link} has it among its allowed IPs${whose}`, reconcile);
  }
  const said = `${owner.prefix} belongs to ${namePeer(owner.publicKey, view)}`;
  if (owner.publicKey === wanted?.publicKey) return passes('allowed_ips', said);
  const should = wanted === null ? 'no peer should have it' : `it should be ${namePeer(wanted.publicKey, view)}`;
  return stops('allowed_ips', `${said}; ${should}`, reconcile);
}

/** `kernelRoute` is that of WireGuard's packets, or null. Empty if no endpoint is known. */
export function checkEndpoint(address: Address, view: NetworkOnHost, kernelRoute: KernelRoute | null): Check[] {
  const peer = findActualPeer(address, view);
  if (!peer?.endpoint || kernelRoute === null) return [];
  const { link } = view.desired;
  const where = `${namePeer(peer.publicKey, view)} at ${formatEndpoint(peer.endpoint)}`;
  const { host } = peer.endpoint;
  if (kernelRoute.link === null)
    return [stops('endpoint', `${where}: ${describeRefusal(kernelRoute)}`, `give this host a route to ${host}`)];
  if (kernelRoute.link !== link || kernelRoute.local)
    return [passes('endpoint', `${where}: ${describeRoute(kernelRoute)}`)];
  const loop = `${where}: ${describeRoute(kernelRoute)}, back into the tunnel`;
  return [stops('endpoint', loop, `give this host a route to ${host} that does not lead into ${link}`)];
}

/** Checks by WireGuard's table and the daemon's records whether the receiver is reachable. */
export function checkHandshake(address: Address, view: NetworkOnHost, now: number): Check {
  const peer = findActualPeer(address, view);
  if (peer === null) return inconclusive('handshake', 'there is no such peer');
  const name = namePeer(peer.publicKey, view);
  const failed = view.map.peers.some(({ id, publicKey }) => publicKey === peer.publicKey && view.failed.includes(id));
  const state = failed ? 'stale' : peerStateOf(peer, now, view.silent[peer.publicKey]);
  const said = `${name}: ${describeHandshake(peer, now)}`;
  if (state === 'connected') return passes('handshake', said);
  const [trouble] = findSecretMismatches(
    { map: view.map, tag: view.secretTag, observed: [peer] },
    view.map.peers.filter(({ publicKey }) => publicKey === peer.publicKey),
  );
  if (trouble) {
    const { text, remedy } = problem('secret-mismatch', { interface: view.desired.link, ...trouble });
    return stops('handshake', `${said}; ${text}`, remedy ?? 'see "cpn status"');
  }
  if (state === 'idle') return inconclusive('handshake', `${said}; the next packet starts a new one`);
  if (state === 'stale') return stops('handshake', `${said}, and it does not answer`, adviseOnPeer(peer, name));
  if (peer.endpoint !== null && peer.txBytes === 0) return inconclusive('handshake', `${said}; nothing was sent yet`);
  return stops('handshake', said, adviseOnPeer(peer, name));
}

/** Checks how large a packet may be, and whether it still fits after encapsulation. */
export function checkMtu(address: Address, view: NetworkOnHost): Check {
  const { link, underlay } = view.actual;
  const { pathMtu } = view.desired;
  if (link === null) return inconclusive('mtu', 'there is no interface');
  const peer = findActualPeer(address, view);
  const measured = pathMtu === null ? '' : `, ${describePathMtu(pathMtu, view.map.peers)}`;
  const largest = `packets up to ${link.mtu} bytes${measured}`;
  if (!peer?.endpoint) return inconclusive('mtu', `${largest}; no endpoint is known, so the path is unknown`);
  const underlayMtu = underlay.underlayMtu ?? findMtuToward(peer.endpoint.host, underlay);
  if (underlayMtu === null)
    return inconclusive(
      'mtu',
      `${largest}; the MTU of the path to ${peer.endpoint.host} is unknown without a default route`,
    );
  const overhead = overheads[familyOf(peer.endpoint.host)];
  const sum = `${link.mtu} + ${overhead}`;
  if (link.mtu + overhead <= underlayMtu)
    return passes('mtu', `${largest}; with encapsulation they fit (${sum} ≤ ${underlayMtu})`);
  return inconclusive(
    'mtu',
    `${largest}; with encapsulation they do not fit (${sum} > ${underlayMtu}) and are fragmented, and some networks drop fragments`,
  );
}

/** The MTU of the link whose subnet contains the address; null without one. */
function findMtuToward(address: Address, { connected, links }: Underlay): number | null {
  const [nearest] = connected
    .filter(({ prefix }) => covers(prefix, address))
    .toSorted((a, b) => lengthOf(b.prefix) - lengthOf(a.prefix));
  return links.find(({ name }) => name === nearest?.link)?.mtu ?? null;
}

/** Added bytes: 20 or 40 of IP, 8 of UDP, 32 of WireGuard (wg-quick(8), whitepaper 5.4.6). */
const overheads = { 4: 60, 6: 80 } as const;

function describeHandshake({ latestHandshake, endpoint, txBytes }: ActualPeer, now: number): string {
  const where = endpoint === null ? 'no endpoint is known' : `at ${formatEndpoint(endpoint)}`;
  if (latestHandshake !== null) return `last handshake ${describeAge(now - latestHandshake)}, ${where}`;
  const sent = txBytes === 0 ? '' : `, ${txBytes} bytes sent`;
  return `there was never a handshake, ${where}${sent}`;
}

function adviseOnPeer({ endpoint }: ActualPeer, name: string): string {
  if (endpoint === null)
    return `it must begin the session: check that cpn runs on ${name}, and that it reaches this host`;
  return `check that cpn is up on ${name}, and that no firewall drops UDP to ${formatEndpoint(endpoint)}`;
}
