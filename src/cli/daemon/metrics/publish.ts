import type { NetworkStatus } from '../../../app/problems/network-status.ts';
import { TransitionLogger } from '../../../app/run/transition-logger.ts';
import { readStatus } from '../../../app/status/status.ts';
import type { Tools } from '../../../app/tools.ts';
import type { ListenAddress } from '../../input/listen-address.ts';
import { contentType, type DaemonMetrics } from './metrics.ts';
import { type MetricsServer, serveMetrics } from './serve.ts';

export interface Outlets {
  readonly listen: ListenAddress | null;
  readonly file: TextFile | null;
}

/** A file that node_exporter reads. */
export interface TextFile {
  write(text: string): Promise<void>;
  remove(): Promise<void>;
}

/** Milliseconds between two writes of the file, and between two attempts to listen. */
const everyFile = 15_000;
const everyTry = 5_000;

/** Publishes the metrics, concurrently with the daemon, until `signal` aborts. */
export async function publishMetrics(
  tools: Tools,
  metrics: DaemonMetrics,
  { listen, file }: Outlets,
  signal: AbortSignal,
): Promise<void> {
  // Drops warnings: an unfinished join would be reported at each observation.
  const observe = coalesceSnapshots(() => readStatus({ ...tools, warn: () => {} }), tools.monotonic);
  const page = { contentType, format: async () => metrics.format(await observe(), 'scrape') };
  await Promise.all([
    listen && keepServing(tools, () => serveMetrics(listen, page), signal),
    file && keepWriting(tools, file, async () => metrics.format(await observe(), 'file'), signal),
  ]);
}

/** Retries, because the address may belong to a tunnel that is not up yet. */
async function keepServing(
  tools: Pick<Tools, 'sleep' | 'log'>,
  serve: () => Promise<MetricsServer>,
  signal: AbortSignal,
): Promise<void> {
  const trouble = { begins: 'metrics cannot be served; retrying', ends: 'metrics can be served again' };
  const once = new TransitionLogger(tools.log, {}, trouble);
  while (!signal.aborted) {
    try {
      const server = await serve();
      once.update(null);
      tools.log.info({ url: server.url }, 'serving metrics');
      await aborted(signal);
      return await server.close();
    } catch (error) {
      once.update(error);
      await tools.sleep(everyTry, signal);
    }
  }
}

async function keepWriting(
  tools: Pick<Tools, 'sleep' | 'log'>,
  file: TextFile,
  format: () => Promise<string>,
  signal: AbortSignal,
) {
  const trouble = { begins: 'the metrics file cannot be written', ends: 'the metrics file can be written again' };
  const once = new TransitionLogger(tools.log, {}, trouble);
  while (!signal.aborted) {
    try {
      await file.write(await format());
      once.update(null);
    } catch (error) {
      once.update(error);
    }
    await tools.sleep(everyFile, signal);
  }
  // A stale file would look current.
  await file.remove().catch((error) => once.update(error));
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
}

/** Seconds for which a snapshot is reused, so that frequent scrapes start no more processes. */
const snapshotSeconds = 2;

/** Shares one snapshot between concurrent callers. @param monotonic seconds */
export function coalesceSnapshots(observe: () => Promise<NetworkStatus[]>, monotonic: () => number): typeof observe {
  let shared: Promise<NetworkStatus[]> | null = null;
  let until = 0;
  return () => {
    if (shared !== null && monotonic() < until) return shared;
    until = Number.POSITIVE_INFINITY;
    shared = observe();
    const settle = (seconds: number) => () => {
      until = monotonic() + seconds;
    };
    shared.then(settle(snapshotSeconds), settle(0));
    return shared;
  };
}
