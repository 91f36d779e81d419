import { Counter, Gauge, Registry } from 'prom-client';
import type { Meter } from '../../../app/meter.ts';
import type { NetworkStatus } from '../../../app/status/network-status.ts';
import { version } from '../../version.ts';
import { countIn } from './counts.ts';
import { setNetworkMetrics } from './network-metrics.ts';
import { setPeerMetrics } from './peer-metrics.ts';

/** The metrics of a daemon. */
export interface Metrics {
  readonly meter: Meter;
  /**
   * All of it as Prometheus reads it. The file for node_exporter has nothing of the process, as that tells of itself under the
   * same names.
   */
  format(networks: readonly NetworkStatus[], to: 'scrape' | 'file'): Promise<string>;
}

/** The media type of what {@link Metrics.format} gives. */
export const contentType = Registry.PROMETHEUS_CONTENT_TYPE;

/** Metrics of one daemon, with nothing counted yet. */
export function createMetrics(): Metrics {
  const counts = new Registry();
  return {
    meter: countIn(counts),
    format(networks, to) {
      // A new registry each time: networks and peers that were removed disappear.
      const seen = new Registry();
      const build = { name: 'cpn_build_info', help: 'The version of cpn and of the Node it runs on.' };
      new Gauge({ ...build, labelNames: ['version', 'node'], registers: [seen] }).set(
        { version, node: process.versions.node },
        1,
      );
      setNetworkMetrics(seen, networks);
      setPeerMetrics(seen, networks);
      if (to === 'scrape') setProcessMetrics(seen);
      return Registry.merge([seen, counts]).metrics();
    },
  };
}

/**
 * Sets the process metrics under their usual names. prom-client's own keep a 10 ms timer running, which drains a laptop's
 * battery, and some have names that promtool rejects.
 */
function setProcessMetrics(registry: Registry): void {
  const registers = [registry];
  const { user, system } = process.cpuUsage();
  new Counter({ name: 'process_cpu_seconds_total', help: 'Processor time spent.', registers }).inc(
    (user + system) / 1e6,
  );
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  gauge('process_resident_memory_bytes', 'Resident memory.').set(process.memoryUsage.rss());
  gauge('process_start_time_seconds', 'When the process started.').set(startedAt);
}

/** Seconds since the epoch; taken once, as the clock may be set later. */
const startedAt = Date.now() / 1000 - process.uptime();
