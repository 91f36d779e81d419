import { Counter, Gauge, type Registry } from 'prom-client';
import type { NetworkStatus, PeerStatus, RouteStatus } from '../../../app/problems/network-status.ts';
import { flagsOf, labelOf, maxReported } from './network-metrics.ts';

const peerStates = ['connected', 'relayed', 'idle', 'stale', 'never'] as const satisfies readonly PeerStatus['state'][];
const routeStates = [
  'active',
  'standby',
  'never',
  'refused',
  'missing',
] as const satisfies readonly RouteStatus['state'][];

/** Counts peers and routes per state, and reports the first {@link maxReported} individually. */
export function setPeerMetrics(registry: Registry, networks: readonly NetworkStatus[]): void {
  const registers = [registry];
  const labelNames = ['interface', 'peer', 'peer_id'] as const;
  const gauge = <Label extends string>(name: string, help: string, ...labels: Label[]) =>
    new Gauge({ name, help, labelNames: ['interface', ...labels], registers });
  const counter = (name: string, help: string) => new Counter({ name, help, labelNames, registers });
  const peers = gauge('cpn_peers', 'Peers in this state.', 'state');
  const untold = gauge('cpn_peers_untold', `Peers beyond the first ${maxReported}, which only cpn_peers counts.`);
  const state = gauge('cpn_peer_state', 'Whether a peer is in this state.', 'peer', 'peer_id', 'state');
  const paths = gauge('cpn_peer_paths', 'Peers that are reached directly, and through a relay.', 'path');
  const handshake = gauge(
    'cpn_peer_latest_handshake_timestamp_seconds',
    'When the latest handshake with a peer was; absent if there was none.',
    'peer',
    'peer_id',
  );
  const received = counter('cpn_peer_receive_bytes_total', 'Bytes received from a peer, as WireGuard counts them.');
  const sent = counter('cpn_peer_transmit_bytes_total', 'Bytes sent to a peer, as WireGuard counts them.');
  for (const network of networks) {
    const known = { interface: network.interface };
    for (const each of peerStates) {
      peers.set({ ...known, state: each }, network.peers.filter((peer) => peer.state === each).length);
    }
    for (const path of ['direct', 'relayed'])
      paths.set({ ...known, path }, network.peers.filter((peer) => peer.path === path).length);
    untold.set(known, Math.max(0, network.peers.length - maxReported));
    for (const peer of network.peers.slice(0, maxReported)) {
      const labels = { ...known, peer: labelOf(peer.name), peer_id: labelOf(String(peer.id)) };
      for (const [each, value] of flagsOf(peerStates, peer.state)) state.set({ ...labels, state: each }, value);
      if (peer.latestHandshake !== null) handshake.set(labels, peer.latestHandshake);
      received.inc(labels, peer.rxBytes);
      sent.inc(labels, peer.txBytes);
    }
  }
  setRouteMetrics(registry, networks);
  setDomainMetric(registry, networks);
  setRelayMetric(registry, networks);
}

function setDomainMetric(registry: Registry, networks: readonly NetworkStatus[]): void {
  const state = new Gauge({
    name: 'cpn_domain_state',
    help: 'Whether a domain of the network is in this state: used, used but silent or failing, waiting, or refused and resolved as before.',
    labelNames: ['interface', 'domain', 'state'],
    registers: [registry],
  });
  for (const { interface: link, domains } of networks) {
    for (const { domain, state: current } of domains.slice(0, maxReported)) {
      const labels = { interface: link, domain: labelOf(domain) };
      for (const [each, value] of flagsOf(['used', 'silent', 'failing', 'waiting', 'refused'] as const, current))
        state.set({ ...labels, state: each }, value);
    }
  }
}

function setRelayMetric(registry: Registry, networks: readonly NetworkStatus[]): void {
  const used = new Gauge({
    name: 'cpn_relay',
    help: 'The relay that this host uses, and whether it is the one that the control plane names.',
    labelNames: ['interface', 'relay', 'named'],
    registers: [registry],
  });
  for (const { interface: link, relay } of networks) {
    if (relay !== null)
      used.set({ interface: link, relay: labelOf(relay.peer), named: `${relay.peer === relay.named}` }, 1);
  }
}

function setRouteMetrics(registry: Registry, networks: readonly NetworkStatus[]): void {
  const state = new Gauge({
    name: 'cpn_route_state',
    help: 'Whether a route is in this state through this peer; without a peer, this host or no connector serves it.',
    labelNames: ['interface', 'prefix', 'via', 'state'],
    registers: [registry],
  });
  for (const { interface: link, routes } of networks) {
    for (const { prefix, via, state: current } of routes.slice(0, maxReported)) {
      const labels = { interface: link, prefix, via: labelOf(via ?? '') };
      for (const [each, value] of flagsOf(routeStates, current)) state.set({ ...labels, state: each }, value);
    }
  }
}
