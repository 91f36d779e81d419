import { resolve } from 'node:path';
import type { Tools } from '../../app/tools.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import { openSupervisor, openTextFile, openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import type { Input } from '../input/input.ts';
import { type ListenAddress, parseListenAddress } from '../input/listen-address.ts';
import type { Command } from '../parse/command.ts';
import { confirmFlag, readConfirmation } from '../pass-command.ts';

/** Milliseconds from SIGTERM to a forced exit, below the stop timeout of init systems. */
const maxStopMs = 4_500;

export const run: Command = {
  name: 'run',
  summary: 'Run the daemon: reconcile every joined network until stopped; the tunnels stay up afterwards',
  flags: {
    interval: { kind: 'text', value: 'SECONDS', summary: 'time between two scheduled passes', byDefault: '30' },
    ...confirmFlag,
    metrics: {
      kind: 'text',
      value: '[HOST:]PORT',
      summary: 'serve /metrics for Prometheus over plain http, without authentication; HOST defaults to 127.0.0.1',
    },
    'metrics-file': {
      kind: 'text',
      value: 'PATH',
      summary: "also write the metrics to this file for node_exporter's textfile collector; its name ends in .prom",
    },
  },
  examples: ['cpn run', 'cpn run --interval 60', 'cpn run --metrics 127.0.0.1:9586'],
  async run(input) {
    const { runDaemon } = await import('../../app/run/daemon.ts');
    const interval = input.number('interval', 1, 3600);
    const confirmMs = readConfirmation(input);
    const metrics = await openMetrics(input);
    const stop = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
    // A hanging tool must not delay the shutdown of the host.
    stop.signal.addEventListener('abort', () => setTimeout(() => process.exit(exitCodes.failed), maxStopMs).unref());
    const tools = await openTools(input, 'daemon');
    await runDaemon(metrics === null ? tools : { ...tools, meter: metrics.meter }, {
      ...(interval !== undefined && { interval }),
      ...(confirmMs !== undefined && { confirmMs }),
      supervisor: await openSupervisor(input, tools.log),
      signal: stop.signal,
      onRequest: (startOver) => process.on('SIGHUP', startOver),
      ...(metrics && { background: (signal) => metrics.publish(tools, signal) }),
    });
    return exitCodes.done;
  },
};

/** Null without `--metrics` and `--metrics-file`. Then their modules are not loaded. */
async function openMetrics(input: Input) {
  const listen = readAddress(input);
  const path = readPath(input);
  if (listen === null && path === null) return null;
  const [{ createMetrics }, { publishMetrics }] = await Promise.all([
    import('../daemon/metrics/metrics.ts'),
    import('../daemon/metrics/publish.ts'),
  ]);
  const metrics = createMetrics();
  const file = path === null ? null : await openTextFile(path);
  return {
    meter: metrics.meter,
    publish: (tools: Tools, signal: AbortSignal) => publishMetrics(tools, metrics, { listen, file }, signal),
  };
}

function readAddress(input: Input): ListenAddress | null {
  const text = input.text('metrics');
  if (text === undefined) return null;
  // Names and addresses of peers are private: only an explicit address opens them to others.
  return parseListenAddress(input.nameOf('metrics'), /^\d+$/.test(text) ? `127.0.0.1:${text}` : text);
}

function readPath(input: Input): string | null {
  const path = input.text('metrics-file');
  if (path === undefined) return null;
  if (path.endsWith('.prom')) return resolve(path);
  throw new InvalidValue('--metrics-file', path, 'does not end in .prom', 'node_exporter reads no other files');
}
