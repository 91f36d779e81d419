import type { Command } from '../command.ts';
import { confirmFlag, readConfirmation } from '../confirm-flag.ts';
import { openSupervisor, openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { openMetrics } from '../open-metrics.ts';

/** Milliseconds from the order to end to the end itself: what an init system's patience is a multiple of. */
const farewell = 4_500;

export const run: Command = {
  name: 'run',
  summary: 'The daemon: keep every joined network right until stopped; the tunnels outlive it',
  flags: {
    interval: {
      kind: 'text',
      value: 'SECONDS',
      summary: 'between two passes that nothing else asked for',
      byDefault: '30',
    },
    ...confirmFlag,
    metrics: {
      kind: 'text',
      value: '[HOST:]PORT',
      summary:
        'serve /metrics for Prometheus there, in plain http to whoever connects; 127.0.0.1 where HOST is left out',
    },
    'metrics-file': {
      kind: 'text',
      value: 'PATH',
      summary:
        'write the metrics to this file too, whose name ends in .prom: for the textfile collector of node_exporter',
    },
  },
  examples: ['cpn run', 'cpn run --interval 60', 'cpn run --metrics 127.0.0.1:9586'],
  async run(input) {
    const { runDaemon } = await import('../../app/run/run.ts');
    const interval = input.number('interval', 1, 3600);
    const confirmMs = readConfirmation(input);
    const stop = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
    // A tool that hangs must not hold up the host's own shutdown.
    stop.signal.addEventListener('abort', () => setTimeout(() => process.exit(exitCodes.failed), farewell).unref());
    const tools = await openTools(input, 'daemon');
    const metrics = await openMetrics(input);
    await runDaemon(metrics === null ? tools : { ...tools, meter: metrics.meter }, {
      ...(interval !== undefined && { interval }),
      ...(confirmMs !== undefined && { confirmMs }),
      supervisor: await openSupervisor(input, tools.log),
      signal: stop.signal,
      onRequest: (startOver) => process.on('SIGHUP', startOver),
      ...(metrics && { beside: (signal) => metrics.tell(tools, signal) }),
    });
    return exitCodes.done;
  },
};
