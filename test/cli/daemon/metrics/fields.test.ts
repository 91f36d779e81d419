import { describe, expect, it } from 'vitest';
import type { NetworkStatus, PeerStatus, RouteStatus } from '../../../../src/app/problems/network-status.ts';
import { readStatus } from '../../../../src/app/status/status.ts';
import { createMetrics } from '../../../../src/cli/daemon/metrics/metrics.ts';
import type { DomainReport } from '../../../../src/core/names/split-dns.ts';
import { joinedTo, mapAt } from '../../../app/joined-state.ts';
import { SimulatedHost } from '../../../app/simulated-host.ts';
import { peer } from '../../../core/samples.ts';
import { readExposition } from './exposition.ts';

/** The metrics of networks that differ from a usual one in these fields, by name and labels. */
async function measure(...changes: Partial<NetworkStatus>[]) {
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [peer(2)])));
  const [usual] = await readStatus(simulated.tools);
  if (usual === undefined) throw new Error('there is no network');
  const networks = changes.map((each) => ({ ...usual, ...each }));
  const families = readExposition(await createMetrics().format(networks, 'file'));
  return (name: string, labels: Readonly<Record<string, string>> = {}) => {
    const samples = families.get(name)?.samples ?? [];
    const fits = Object.entries(labels);
    return samples
      .filter((sample) => fits.every(([label, value]) => sample.labels[label] === value))
      .map(({ value }) => value);
  };
}

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const sync = { mode: 'push', lastSuccess: null, error: null, refused: null } as NetworkStatus['sync'];
const silent = { latestHandshake: null, rxBytes: 0, txBytes: 0, state: 'never', pin: 'ok' } as PeerStatus;
const several = <Item>(count: number) => Array<Item>(count).fill({} as Item);

describe('a metric of a network', () => {
  it('has the value of its own field, where each field has another', async () => {
    const value = await measure({
      keySince: at(1_000),
      expiresAt: at(2_000),
      sync: { ...sync, lastSuccess: at(3_000) },
      drift: several(4),
      warnings: several(5),
      problems: several(6),
      failure: null,
    });
    expect(value('cpn_key_created_timestamp_seconds')).toEqual([1_000]);
    expect(value('cpn_peer_expires_timestamp_seconds')).toEqual([2_000]);
    expect(value('cpn_sync_last_success_timestamp_seconds')).toEqual([3_000]);
    expect(value('cpn_drift_changes')).toEqual([4]);
    expect(value('cpn_warnings')).toEqual([5]);
    expect(value('cpn_network_unreadable')).toEqual([0]);
  });

  it('is not there for a time that is not known', async () => {
    const value = await measure({ keySince: null, expiresAt: null, sync });
    for (const name of ['key_created', 'peer_expires', 'sync_last_success'])
      expect([name, value(`cpn_${name}_timestamp_seconds`)]).toEqual([name, []]);
  });

  it('of a failure is that of the last request, whether or not the network is refused', async () => {
    const value = await measure(
      { interface: 'cpn0', sync: { ...sync, error: 'no route' } },
      { interface: 'cpn1', sync },
      { interface: 'cpn2', sync: { ...sync, error: 'refused', refused: 'token' } },
    );
    expect(value('cpn_sync_failing')).toEqual([1, 0, 1]);
    expect(value('cpn_sync_refused', { reason: 'token' })).toEqual([0, 0, 1]);
  });

  it('of refused packets is there only in a closed network whose rules are loaded', async () => {
    const refused = { packets: { in: 3, out: 4 }, latest: [] };
    const value = await measure(
      { interface: 'cpn0', rules: { mode: 'closed', count: 1, refused } },
      { interface: 'cpn1', rules: { mode: 'closed', count: 1, refused: null } },
      { interface: 'cpn2', rules: { mode: 'open' } },
      { interface: 'cpn3', rules: null },
    );
    expect(value('cpn_network_closed')).toEqual([1, 1, 0]);
    expect(value('cpn_refused_packets_total')).toHaveLength(2);
    expect(value('cpn_refused_packets_total', { interface: 'cpn0', direction: 'in' })).toEqual([3]);
    expect(value('cpn_refused_packets_total', { interface: 'cpn0', direction: 'out' })).toEqual([4]);
  });

  it.each(['up', 'degraded', 'down'] as const)('of its state is 1 for %s alone', async (state) => {
    const value = await measure({ state });
    expect([value('cpn_network_state', { state }), value('cpn_network_state').toSorted()]).toEqual([[1], [0, 0, 1]]);
  });

  it.each(['push', 'poll', 'local'] as const)('of its sync is 1 for %s alone', async (mode) => {
    const value = await measure({ sync: { ...sync, mode } });
    expect([value('cpn_sync_mode', { mode }), value('cpn_sync_mode').toSorted()]).toEqual([[1], [0, 0, 1]]);
  });

  it.each(['token', 'forbidden', 'gone'] as const)('of a refusal is 1 for %s alone', async (reason) => {
    const value = await measure({ sync: { ...sync, refused: reason } });
    expect([value('cpn_sync_refused', { reason }), value('cpn_sync_refused').toSorted()]).toEqual([[1], [0, 0, 1]]);
  });

  it('of its pins counts every peer that does not match its pin', async () => {
    const pins: Record<PeerStatus['pin'], true> = { ok: true, changed: true, held: true };
    const peers = Object.keys(pins).map((pin, id) => ({ ...silent, id, name: `${id}`, pin }) as PeerStatus);
    expect((await measure({ peers }))('cpn_pins_changed')).toEqual([peers.length - 1]);
  });

  it('counts each state of its peers and routes', async () => {
    const states: Record<PeerStatus['state'], true> = {
      ...{ connected: true, relayed: true, idle: true, stale: true, never: true },
    };
    const peers = Object.keys(states).map(
      (state, id) => ({ ...silent, id, name: `${id}`, state, rxBytes: 100 + id, txBytes: 200 + id }) as PeerStatus,
    );
    const routeStates: Record<RouteStatus['state'], true> = {
      ...{ active: true, standby: true, never: true, refused: true, missing: true },
    };
    const routes = Object.keys(routeStates).map(
      (state, id) => ({ prefix: `10.${id}.0.0/16`, via: null, state }) as unknown as RouteStatus,
    );
    const domains = (['used', 'refused'] as const).map(
      (state) => ({ domain: `${state}.example`, state }) as DomainReport,
    );
    const value = await measure({ peers, routes, domains, relay: { peer: 'edge-1', named: 'edge-1' } });
    expect(value('cpn_relay', { relay: 'edge-1', named: 'true' })).toEqual([1]);
    for (const [id, { state }] of peers.entries()) {
      expect([state, value('cpn_peers', { state })]).toEqual([state, [1]]);
      expect([state, value('cpn_peer_state', { state, peer_id: `${id}` })]).toEqual([state, [1]]);
      expect(value('cpn_peer_receive_bytes_total', { peer_id: `${id}` })).toEqual([100 + id]);
      expect(value('cpn_peer_transmit_bytes_total', { peer_id: `${id}` })).toEqual([200 + id]);
    }
    for (const { prefix, state } of routes)
      expect([state, value('cpn_route_state', { state, prefix })]).toEqual([state, [1]]);
    for (const { domain, state } of domains)
      expect([state, value('cpn_domain_state', { state, domain })]).toEqual([state, [1]]);
  });
});
