import { Once } from '../../app/run/once.ts';
import { readStatus } from '../../app/status.ts';
import type { Tools } from '../../app/tools.ts';
import type { ListenAddress } from '../listen-address.ts';
import { shareLooks } from './look.ts';
import { contentType, type Metrics } from './metrics.ts';
import { type MetricsServer, serveMetrics } from './serve.ts';

/** Where the metrics of a daemon are told. */
export interface Outlets {
  readonly listen: ListenAddress | null;
  readonly file: TextFile | null;
}

/** A file that node_exporter reads. */
export interface TextFile {
  write(text: string): Promise<void>;
  remove(): Promise<void>;
}

/** Milliseconds between two texts in the file, and between two tries to listen. */
const everyFile = 15_000;
const everyTry = 5_000;

/** Tells the metrics, beside all else that the daemon does and never in its way, until `signal` aborts. */
export async function tellMetrics(
  tools: Tools,
  metrics: Metrics,
  { listen, file }: Outlets,
  signal: AbortSignal,
): Promise<void> {
  // A join that was never finished would be warned of each time.
  const look = shareLooks(() => readStatus({ ...tools, warn: () => {} }), tools.monotonic);
  const page = { contentType, format: async () => metrics.format(await look(), 'scrape') };
  await Promise.all([
    listen && keepServing(tools, () => serveMetrics(listen, page), signal),
    file && keepWriting(tools, file, async () => metrics.format(await look(), 'file'), signal),
  ]);
}

/** The address may be that of a tunnel, which is there once its network is up. */
async function keepServing(tools: Tools, serve: () => Promise<MetricsServer>, signal: AbortSignal): Promise<void> {
  const trouble = { begins: 'metrics cannot be served; trying again', ends: 'metrics can be served now' };
  const once = new Once(tools.log, {}, trouble);
  while (!signal.aborted) {
    try {
      const server = await serve();
      once.notice(null);
      tools.log.info({ url: server.url }, 'metrics are served');
      await aborted(signal);
      return await server.close();
    } catch (error) {
      once.notice(error);
      await tools.sleep(everyTry, signal);
    }
  }
}

async function keepWriting(tools: Tools, file: TextFile, format: () => Promise<string>, signal: AbortSignal) {
  const trouble = { begins: 'the file of metrics cannot be written', ends: 'the file of metrics can be written again' };
  const once = new Once(tools.log, {}, trouble);
  while (!signal.aborted) {
    try {
      await file.write(await format());
      once.notice(null);
    } catch (error) {
      once.notice(error);
    }
    await tools.sleep(everyFile, signal);
  }
  // Nobody would notice in it that it tells of the past.
  await file.remove().catch((error) => once.notice(error));
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });
}
