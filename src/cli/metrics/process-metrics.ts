import { Counter, Gauge, type Registry } from 'prom-client';

/**
 * Tells of this process, by the names that all exporters share. By hand, as prom-client's own keep a timer of 10 ms going, which a
 * laptop's battery pays for, and some have names that promtool objects to.
 */
export function tellProcess(registry: Registry): void {
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
