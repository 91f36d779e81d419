import { readdir, readFile, stat } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readExposition } from '../cli/daemon/metrics/exposition.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice } from './office.ts';

let office: Office;

beforeAll(async () => {
  office = await startOffice();
}, 60_000);

afterAll(() => office?.lab.stop());

/** The response of `url` to a program on this host. */
async function scrape(host: Host, url: string) {
  const program = `fetch('${url}').then((reply) => reply.text()).then((text) => process.stdout.write(text))`;
  return readExposition((await host.exec([process.execPath, '-e', program])).stdout);
}

it("a daemon serves the metrics of its tunnel to a scraper and node_exporter, also at the tunnel's address", async () => {
  const peer = await office.lab.addHost('edge-1', { address: '203.0.113.2/24' });
  const { address: there } = await join(office, peer, '--endpoint', '203.0.113.2:51820');
  const host = await office.lab.addHost('edge-2', { address: '203.0.113.3/24' });
  const { address } = await join(office, host, '--endpoint', '203.0.113.3:51820');
  const other = await startDaemon(peer, '--interval', '3600');
  // As at the start of a machine: the address comes with the network.
  await host.exec(['ip', 'link', 'del', 'cpn0']);
  const file = path(host.folder, 'cpn.prom');
  const daemon = await startDaemon(host, '--interval', '3600', '--metrics', `${address}:9586`, '--metrics-file', file);
  const { url } = await daemon.awaitLog('metrics', (line) => line.msg === 'serving metrics');
  expect(url).toBe(`http://${address}:9586/metrics`);
  expect(await host.ping(there, patiently)).toMatchObject({ received: 1 });

  const metrics = await eventually('a reading after the handshake', async () => {
    const families = await scrape(host, `http://${address}:9586/metrics`);
    return families.get('cpn_peers')?.samples.some(({ labels, value }) => labels.state === 'connected' && value === 1)
      ? families
      : null;
  });
  const of = (name: string, labels: object = {}) =>
    metrics
      .get(name)
      ?.samples.find((sample) => Object.entries(labels).every(([label, text]) => sample.labels[label] === text))?.value;
  const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'latest-handshakes']);
  const edge = { interface: 'cpn0', peer: 'edge-1' };
  expect(of('cpn_peer_latest_handshake_timestamp_seconds', edge)).toBe(Number(stdout.trim().split('\t')[1]));
  expect(of('cpn_peer_receive_bytes_total', edge)).toBeGreaterThan(0);
  expect(of('cpn_sync_mode', { mode: 'push' })).toBe(1);
  expect(of('cpn_passes_total', { outcome: 'repaired' })).toBe(1);
  expect(of('cpn_drift_repaired_total', { kind: 'interface' })).toBe(1);
  expect(of('cpn_route_state', { prefix: '192.168.50.0/24', state: 'missing' })).toBe(1);

  expect(of('cpn_failovers_total')).toBe(0);

  await office.controlPlane.process.stop(10_000);
  await eventually('a call that failed', async () => {
    const failed = (await scrape(host, `http://${address}:9586/metrics`)).get('cpn_api_failures_total')?.samples;
    return failed?.some(({ labels }) => labels.operation === 'read_map' && labels.error === 'Unreachable');
  });

  expect(readExposition(await readFile(file, 'utf8')).has('cpn_network_state')).toBe(true);
  expect((await stat(file)).mode & 0o777).toBe(0o644);
  await daemon.stop();
  expect((await readdir(host.folder)).filter((name) => name.startsWith('cpn.prom'))).toEqual([]);
  await other.stop();
});
