import { resolve } from 'node:path';
import type { Meter } from '../app/meter.ts';
import type { Tools } from '../app/tools.ts';
import { InvalidValue } from '../core/errors.ts';
import { openTextFile } from './context.ts';
import type { Input } from './input.ts';
import { type ListenAddress, parseListenAddress } from './listen-address.ts';

/** What counts for a daemon, and what tells of it until `signal` aborts. */
interface Telling {
  readonly meter: Meter;
  tell(tools: Tools, signal: AbortSignal): Promise<void>;
}

/** What `--metrics` and `--metrics-file` ask for; null where that is nothing, and then nothing of it is loaded. */
export async function openMetrics(input: Input): Promise<Telling | null> {
  const listen = readAddress(input);
  const path = readPath(input);
  if (listen === null && path === null) return null;
  const [{ createMetrics }, { tellMetrics }] = await Promise.all([
    import('./metrics/metrics.ts'),
    import('./metrics/tell.ts'),
  ]);
  const metrics = createMetrics();
  const file = path === null ? null : await openTextFile(path);
  return {
    meter: metrics.meter,
    tell: (tools, signal) => tellMetrics(tools, metrics, { listen, file }, signal),
  };
}

function readAddress(input: Input): ListenAddress | null {
  const text = input.text('metrics');
  if (text === undefined) return null;
  // Peers' names and addresses are nobody else's business unless somebody says so.
  return parseListenAddress(input.nameOf('metrics'), /^\d+$/.test(text) ? `127.0.0.1:${text}` : text);
}

function readPath(input: Input): string | null {
  const path = input.text('metrics-file');
  if (path === undefined) return null;
  if (path.endsWith('.prom')) return resolve(path);
  throw new InvalidValue('--metrics-file', path, 'does not end in .prom', 'node_exporter reads no other files');
}
