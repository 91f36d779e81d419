import { resolve } from 'node:path';
import type { Meter } from '../../app/meter.ts';
import type { Tools } from '../../app/tools.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import { openTextFile } from '../context.ts';
import type { Input } from '../input/input.ts';
import { type ListenAddress, parseListenAddress } from '../input/listen-address.ts';

/** The meter of a daemon, and the publisher of its metrics, which runs until `signal` aborts. */
interface DaemonMetrics {
  readonly meter: Meter;
  publish(tools: Tools, signal: AbortSignal): Promise<void>;
}

/** The metrics of `--metrics` and `--metrics-file`; null without both flags, and then their modules are not loaded. */
export async function openMetrics(input: Input): Promise<DaemonMetrics | null> {
  const listen = readAddress(input);
  const path = readPath(input);
  if (listen === null && path === null) return null;
  const [{ createMetrics }, { publishMetrics }] = await Promise.all([
    import('./metrics/metrics.ts'),
    import('./metrics/publish.ts'),
  ]);
  const metrics = createMetrics();
  const file = path === null ? null : await openTextFile(path);
  return {
    meter: metrics.meter,
    publish: (tools, signal) => publishMetrics(tools, metrics, { listen, file }, signal),
  };
}

function readAddress(input: Input): ListenAddress | null {
  const text = input.text('metrics');
  if (text === undefined) return null;
  // Names and addresses of peers are private: other hosts get them only with an explicit address.
  return parseListenAddress(input.nameOf('metrics'), /^\d+$/.test(text) ? `127.0.0.1:${text}` : text);
}

function readPath(input: Input): string | null {
  const path = input.text('metrics-file');
  if (path === undefined) return null;
  if (path.endsWith('.prom')) return resolve(path);
  throw new InvalidValue('--metrics-file', path, 'does not end in .prom', 'node_exporter reads no other files');
}
