import { Counter, Gauge, type Registry } from 'prom-client';
import type { NetworkStatus } from '../../../app/problems/network-status.ts';
import { printable } from '../../../core/errors/index.ts';

/** The maximum of peers, and of routes, with own metrics: each costs the metrics store memory. */
export const maxReported = 500;

const longestName = 64;

/** A name from the network as a label value: short, and without control characters. */
export function labelOf(name: string): string {
  return printable([...name].slice(0, longestName).join(''));
}

/** 1 for the current state and 0 for every other, so that no state is missing. */
export function flagsOf<State extends string>(states: readonly State[], current: State | null): [State, number][] {
  return states.map((state) => [state, state === current ? 1 : 0]);
}

/** Seconds since the epoch. */
function secondsOf(time: string): number {
  return Date.parse(time) / 1000;
}

const networkStates = ['up', 'degraded', 'down'] as const satisfies readonly NetworkStatus['state'][];
const refusals = ['token', 'forbidden', 'gone'] as const satisfies readonly NetworkStatus['sync']['refused'][];
const syncModes = ['push', 'poll', 'local'] as const satisfies readonly NetworkStatus['sync']['mode'][];

export function setNetworkMetrics(registry: Registry, networks: readonly NetworkStatus[]): void {
  const gauge = <Label extends string>(name: string, help: string, ...labels: Label[]) =>
    new Gauge({ name, help, labelNames: ['interface', ...labels], registers: [registry] });
  const info = gauge('cpn_network_info', 'The networks that this host joined.', 'network', 'address');
  const state = gauge('cpn_network_state', 'Whether a network is in this state, as in "cpn status".', 'state');
  const unreadable = gauge(
    'cpn_network_unreadable',
    'Whether the status of a network cannot be read: its state is damaged, or a tool fails.',
  );
  const drift = gauge('cpn_drift_changes', 'Differences between the host and its intended state.');
  const warnings = gauge('cpn_warnings', 'Warnings of "cpn status".');
  const mode = gauge('cpn_sync_mode', 'How a network receives changes; local receives none.', 'mode');
  const failing = gauge('cpn_sync_failing', 'Whether the last request to the control plane failed.');
  const refused = gauge(
    'cpn_sync_refused',
    'Whether the control plane refuses this host its network, and why.',
    'reason',
  );
  const success = gauge(
    'cpn_sync_last_success_timestamp_seconds',
    'When the control plane last answered; absent if it never did.',
  );
  const key = gauge('cpn_key_created_timestamp_seconds', 'When the key pair of this host was made.');
  const expiry = gauge(
    'cpn_peer_expires_timestamp_seconds',
    'When this host expires in its network; absent if it does not.',
  );
  const pins = gauge('cpn_pins_changed', 'Peers whose key or address differs from their pin.');
  for (const network of networks) {
    const labels = { interface: network.interface };
    const { address, sync, keySince, expiresAt } = network;
    info.set({ ...labels, network: labelOf(network.network?.name ?? ''), address: address ?? '' }, 1);
    for (const [each, value] of flagsOf(networkStates, network.state)) state.set({ ...labels, state: each }, value);
    unreadable.set(labels, network.failure === null ? 0 : 1);
    drift.set(labels, network.drift.length);
    warnings.set(labels, network.warnings.length);
    for (const [each, value] of flagsOf(syncModes, sync.mode)) mode.set({ ...labels, mode: each }, value);
    failing.set(labels, sync.error === null ? 0 : 1);
    for (const [each, value] of flagsOf(refusals, sync.refused)) refused.set({ ...labels, reason: each }, value);
    if (sync.lastSuccess !== null) success.set(labels, secondsOf(sync.lastSuccess));
    if (keySince !== null) key.set(labels, secondsOf(keySince));
    if (expiresAt !== null) expiry.set(labels, secondsOf(expiresAt));
    pins.set(labels, network.peers.filter(({ pin }) => pin !== 'ok').length);
  }
  setRulesMetrics(registry, networks);
}

function setRulesMetrics(registry: Registry, networks: readonly NetworkStatus[]): void {
  const registers = [registry];
  const closed = new Gauge({
    name: 'cpn_network_closed',
    help: 'Whether only what a rule allows passes in the network.',
    labelNames: ['interface'],
    registers,
  });
  const refused = new Counter({
    name: 'cpn_refused_packets_total',
    help: 'Packets that the rules of a closed network refused on this host: in, from the tunnel; out, toward it.',
    labelNames: ['interface', 'direction'],
    registers,
  });
  for (const { interface: link, rules } of networks) {
    if (rules !== null) closed.set({ interface: link }, rules.mode === 'closed' ? 1 : 0);
    if (rules?.mode !== 'closed' || rules.refused === null) continue;
    for (const direction of ['in', 'out'] as const)
      refused.inc({ interface: link, direction }, rules.refused.packets[direction]);
  }
}
