import { Counter, Histogram, type Registry } from 'prom-client';
import { type Meter, passOutcomes } from '../../../app/meter.ts';

/** Counts in a registry what a daemon does, from its start on. */
export function countIn(registry: Registry): Meter {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, ...labels: Label[]) =>
    new Counter({ name, help, labelNames: ['interface', ...labels], registers });
  const passes = counter('cpn_passes_total', 'Passes over a network, by how they ended.', 'outcome');
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
    "Times that routes, or the relaying of the network's range, went from one connector to another.",
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
    },
    passed(link, outcome, seconds) {
      passes.inc({ interface: link, outcome });
      durations.observe({ interface: link }, seconds);
    },
    changed(link, changes, isDrift) {
      for (const { kind } of changes) (isDrift ? repaired : applied).inc({ interface: link, kind });
    },
    failedOver: (link) => failovers.inc({ interface: link }),
    callFailed: (link, operation, error) => failures.inc({ interface: link, operation, error }),
  };
}
