import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { NetworkStatus } from '../../../app/problems/network-status.ts';
import { type Meter, passOutcomes } from '../../../app/tools.ts';
import { attemptOutcomes } from '../../../core/paths/path-record.ts';
import { version } from '../../../core/util/version.ts';
import { setNetworkMetrics } from './network-metrics.ts';
import { setPeerMetrics } from './peer-metrics.ts';

export interface DaemonMetrics {
  readonly meter: Meter;
  /** A file has no process metrics: node_exporter has its own under the same names. */
  format(networks: readonly NetworkStatus[], to: 'scrape' | 'file'): Promise<string>;
}

export const contentType = Registry.PROMETHEUS_CONTENT_TYPE;

export function createMetrics(): DaemonMetrics {
  const counts = new Registry();
  return {
    meter: countIn(counts),
    format(networks, to) {
      // A new registry drops networks and peers that were removed.
      const registry = new Registry();
      const build = { name: 'cpn_build_info', help: 'The version of cpn and of the Node it runs on.' };
      new Gauge({ ...build, labelNames: ['version', 'node'], registers: [registry] }).set(
        { version, node: process.versions.node },
        1,
      );
      setNetworkMetrics(registry, networks);
      setPeerMetrics(registry, networks);
      if (to === 'scrape') setProcessMetrics(registry);
      return Registry.merge([registry, counts]).metrics();
    },
  };
}

/** prom-client's own run a 10 ms timer, which drains batteries, and some fail promtool. */
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

/** Seconds since the epoch. Read once, because the clock may be set later. */
const startedAt = Date.now() / 1000 - process.uptime();

function countIn(registry: Registry): Meter {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, ...labels: Label[]) =>
    new Counter({ name, help, labelNames: ['interface', ...labels], registers });
  const passes = counter('cpn_passes_total', 'Passes over a network, by outcome.', 'outcome');
  const durations = new Histogram({
    name: 'cpn_pass_duration_seconds',
    help: 'Time that passes took.',
    labelNames: ['interface'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const repaired = counter('cpn_drift_repaired_total', 'Changes by other programs that were undone.', 'kind');
  const applied = counter('cpn_changes_applied_total', 'Changes made because the network changed.', 'kind');
  const failovers = counter(
    'cpn_failovers_total',
    "Times that routes, or the relaying of the network's range, moved from one connector to another.",
  );
  const attempts = counter('cpn_path_attempts_total', 'Attempts at direct paths, by outcome.', 'outcome');
  const switches = counter(
    'cpn_path_switches_total',
    'Times that a peer behind NAT moved to a direct path, or back to the relay.',
    'to',
  );
  const failures = counter(
    'cpn_api_failures_total',
    'Calls to the control plane that failed after their retries, by the name of the error.',
    'operation',
    'error',
  );
  return {
    begin(link) {
      for (const outcome of passOutcomes) passes.inc({ interface: link, outcome }, 0);
      failovers.inc({ interface: link }, 0);
      for (const outcome of attemptOutcomes) attempts.inc({ interface: link, outcome }, 0);
      for (const to of ['direct', 'relayed']) switches.inc({ interface: link, to }, 0);
    },
    passed(link, outcome, seconds) {
      passes.inc({ interface: link, outcome });
      durations.observe({ interface: link }, seconds);
    },
    changed(link, changes, isDrift) {
      for (const { kind } of changes) (isDrift ? repaired : applied).inc({ interface: link, kind });
    },
    failedOver: (link) => failovers.inc({ interface: link }),
    triedPath: (link, outcome) => attempts.inc({ interface: link, outcome }),
    switchedPath: (link, to) => switches.inc({ interface: link, to }),
    callFailed: (link, operation, error) => failures.inc({ interface: link, operation, error }),
  };
}
