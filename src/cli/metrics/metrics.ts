import { Gauge, Registry } from 'prom-client';
import type { Meter } from '../../app/meter.ts';
import type { NetworkStatus } from '../../app/status.ts';
import { version } from '../version.ts';
import { countIn } from './counts.ts';
import { tellNetworks } from './network-metrics.ts';
import { tellPeers } from './peer-metrics.ts';
import { tellProcess } from './process-metrics.ts';

/** What a daemon tells to whoever watches it. */
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
      // Made anew each time, so that what was left or removed is told of no more.
      const seen = new Registry();
      const build = { name: 'cpn_build_info', help: 'The version of cpn and of the Node it runs on.' };
      new Gauge({ ...build, labelNames: ['version', 'node'], registers: [seen] }).set(
        { version, node: process.versions.node },
        1,
      );
      tellNetworks(seen, networks);
      tellPeers(seen, networks);
      if (to === 'scrape') tellProcess(seen);
      return Registry.merge([seen, counts]).metrics();
    },
  };
}
