import { describe, expect, it } from 'vitest';
import type { NetworkStatus, PeerStatus } from '../../../../src/app/problems/network-status.ts';
import { readStatus } from '../../../../src/app/status/status.ts';
import { createMetrics } from '../../../../src/cli/daemon/metrics/metrics.ts';
import { maxReported } from '../../../../src/cli/daemon/metrics/network-metrics.ts';
import { joinedTo, mapAt } from '../../../app/joined-state.ts';
import { SimulatedHost } from '../../../app/simulated-host.ts';
import { peer } from '../../../core/samples.ts';
import { readExposition } from './exposition.ts';
import { expose, watchedDesk } from './watched.ts';

/** The values of a metric by some of its labels. */
function valuesOf(text: string, name: string, ...labels: string[]): Record<string, number> {
  const samples = readExposition(text).get(name)?.samples ?? [];
  return Object.fromEntries(
    samples.map((sample) => [labels.map((label) => sample.labels[label]).join(' '), sample.value]),
  );
}

describe('metrics of a daemon', () => {
  it('have each network, peer and route of cpn status, under valid Prometheus names', async () => {
    const watched = await watchedDesk();
    const text = await expose(watched);
    expect(valuesOf(text, 'cpn_network_info', 'interface', 'network', 'address')).toEqual({
      'cpn0 office 10.77.0.1': 1,
    });
    expect(valuesOf(text, 'cpn_network_state', 'state')).toEqual({ up: 1, degraded: 0, down: 0 });
    expect(valuesOf(text, 'cpn_peers', 'state')).toEqual({
      ...{ connected: 1, relayed: 1, idle: 0, stale: 0, never: 0 },
    });
    const gate = 'gate \\"1\\"\\\\\ufffd 2';
    expect(valuesOf(text, 'cpn_peer_state', 'peer', 'peer_id', 'state')).toMatchObject({
      [`${gate} connected`]: 1,
      [`${gate} stale`]: 0,
      'peer-3 3 relayed': 1,
      'peer-3 3 never': 0,
    });
    const handshakes = valuesOf(text, 'cpn_peer_latest_handshake_timestamp_seconds', 'peer', 'peer_id');
    expect(handshakes).toEqual({ [gate]: Math.floor(watched.simulated.tools.now().getTime() / 1000) - 100 });
    expect(valuesOf(text, 'cpn_peer_receive_bytes_total', 'peer_id')).toEqual({ 2: 148, 3: 0 });
    expect(valuesOf(text, 'cpn_peer_transmit_bytes_total', 'peer_id')).toEqual({ 2: 92, 3: 0 });
    expect(valuesOf(text, 'cpn_route_state', 'prefix', 'state')).toMatchObject({
      '192.168.50.0/24 active': 1,
      '192.168.50.0/24 standby': 0,
    });
    expect(valuesOf(text, 'cpn_relay', 'relay', 'named')).toEqual({ 'gate \\"1\\"\\\\\ufffd false': 1 });
    expect(valuesOf(text, 'cpn_sync_mode', 'mode')).toEqual({ push: 0, poll: 1, local: 0 });
    expect(valuesOf(text, 'cpn_sync_refused', 'reason')).toEqual({ token: 0, forbidden: 0, gone: 0 });
    expect(valuesOf(text, 'cpn_drift_changes')).toEqual({ '': 0 });
    expect(valuesOf(text, 'cpn_passes_total', 'outcome')).toMatchObject({ repaired: 1, failed: 0 });
    expect(valuesOf(text, 'cpn_drift_repaired_total', 'kind')).toMatchObject({ interface: 1, peer: 1, route: 1 });
    expect(valuesOf(text, 'cpn_changes_applied_total', 'kind')).toEqual({ route: 1 });
    expect(valuesOf(text, 'cpn_failovers_total', 'interface')).toEqual({ cpn0: 0 });
    expect(valuesOf(text, 'cpn_peer_paths', 'path')).toEqual({ direct: 1, relayed: 1 });
    expect(valuesOf(text, 'cpn_path_attempts_total', 'outcome')).toEqual({
      ...{ proven: 1, failed: 0, blocked: 0, 'no-endpoints': 0, declined: 0 },
    });
    expect(valuesOf(text, 'cpn_path_switches_total', 'to')).toEqual({ direct: 1, relayed: 0 });
    expect(valuesOf(text, 'cpn_api_failures_total', 'operation', 'error')).toEqual({ 'read_map Unreachable': 1 });
    expect(valuesOf(text, 'cpn_build_info', 'version', 'node')).toEqual({ [`dev ${process.versions.node}`]: 1 });
    expect(valuesOf(text, 'process_resident_memory_bytes')['']).toBeGreaterThan(1e6);
    expect(Math.abs((valuesOf(text, 'process_start_time_seconds')[''] ?? 0) - Date.now() / 1000)).toBeLessThan(3600);
  });

  it('leave out of a file what node_exporter tells of itself', async () => {
    const { simulated, metrics } = await watchedDesk();
    const families = [...readExposition(await metrics.format(await readStatus(simulated.tools), 'file')).keys()];
    expect(families).toContain('cpn_network_state');
    expect(families.filter((name) => !name.startsWith('cpn_'))).toEqual([]);
  });

  it('tell that the control plane refuses the network, and why', async () => {
    const { simulated, metrics } = await watchedDesk();
    const { sync } = await simulated.tools.store.readNotes('cpn0');
    await simulated.tools.store.amendNotes('cpn0', { sync: { ...sync, error: 'refused', refused: 'gone' } });
    const text = await metrics.format(await readStatus(simulated.tools), 'scrape');
    expect(valuesOf(text, 'cpn_sync_refused', 'reason')).toEqual({ token: 0, forbidden: 0, gone: 1 });
  });

  it('tell no more of what is gone, and of a network that cannot be looked at only that', async () => {
    const { simulated, metrics } = await watchedDesk();
    const [network] = await readStatus(simulated.tools);
    const failed = { ...network, peers: [], routes: [], network: null, address: null, failure: new Error() };
    const text = await metrics.format([failed as unknown as NetworkStatus], 'scrape');
    expect(valuesOf(text, 'cpn_network_unreadable', 'interface')).toEqual({ cpn0: 1 });
    expect(readExposition(text).get('cpn_peer_state')?.samples).toEqual([]);
  });

  it('tell of no more routes than they are asked to store', async () => {
    const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [peer(2)])));
    const [network] = await readStatus(simulated.tools);
    const routes = [...Array(maxReported + 7).keys()].map((number) => {
      return { prefix: `10.${number >> 8}.${number & 255}.0/24`, via: 'edge-1', state: 'active' };
    });
    const text = await createMetrics().format([{ ...network, routes } as unknown as NetworkStatus], 'scrape');
    const prefixes = readExposition(text)
      .get('cpn_route_state')
      ?.samples.map(({ labels }) => labels.prefix);
    expect(new Set(prefixes).size).toBe(maxReported);
  });

  it('tell of no more peers than they are asked to store, and of no name more than its beginning', async () => {
    const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [peer(2)])));
    const [network] = await readStatus(simulated.tools);
    const [one] = network?.peers ?? [];
    const many = [...Array(maxReported + 7).keys()].map(
      (id) => ({ ...one, id, name: '\u{1f600}'.repeat(300) }) as PeerStatus,
    );
    const text = await createMetrics().format([{ ...network, peers: many } as NetworkStatus], 'scrape');
    const families = readExposition(text).get('cpn_peer_receive_bytes_total')?.samples ?? [];
    expect(families).toHaveLength(maxReported);
    expect(new Set(families.map(({ labels }) => labels.peer))).toEqual(new Set(['\u{1f600}'.repeat(64)]));
    expect(valuesOf(text, 'cpn_peers_untold', 'interface')).toEqual({ cpn0: 7 });
    expect(valuesOf(text, 'cpn_peers', 'state')).toMatchObject({ never: maxReported + 7 });
  });
});
