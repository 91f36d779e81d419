import { countCalls, NetworkController } from '../../../../src/app/run/network-controller.ts';
import { readStatus } from '../../../../src/app/status/status.ts';
import { createMetrics, type DaemonMetrics } from '../../../../src/cli/daemon/metrics/metrics.ts';
import { removed } from '../../../../src/core/reconcile/change.ts';
import { answerWith, Desk, joinedTo, mapAt } from '../../../app/desk.ts';
import { dialled, peer } from '../../../core/samples.ts';
import { eventually } from '../../../lab/eventually.ts';

/** A desk on which a daemon kept a network for a while, counted, with a connector that has a peer behind it. */
export async function watchedDesk(): Promise<{ desk: Desk; metrics: DaemonMetrics }> {
  const connector = peer(2, { type: 'connector', endpoint: dialled(2), name: 'gate "1"\\\n' });
  const map = mapAt('"1"', [connector, peer(3)]);
  const desk = await Desk.with(joinedTo(map));
  desk.answers = [answerWith(map)];
  const metrics = createMetrics();
  const tools = { ...desk.tools, meter: metrics.meter };
  const stop = new AbortController();
  metrics.meter.begin('cpn0');
  const kept = new NetworkController(countCalls(tools, 'cpn0'), 'cpn0', { interval: 3600, confirmMs: 0 }).run(
    stop.signal,
  );
  await eventually('a pass', () => desk.logged.some(({ message }) => message === 'drift repaired'));
  stop.abort();
  await kept;
  desk.touch(2, { rxBytes: 148, txBytes: 92, latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) - 100 });
  metrics.meter.callFailed('cpn0', 'read_map', 'Unreachable');
  metrics.meter.changed('cpn0', [removed('route', '192.168.50.0/24', 'cpn0', 'gone')], false);
  return { desk, metrics };
}

/** All metrics of such a desk. */
export async function expose({ desk, metrics }: Awaited<ReturnType<typeof watchedDesk>>): Promise<string> {
  return metrics.format(await readStatus(desk.tools), 'scrape');
}
