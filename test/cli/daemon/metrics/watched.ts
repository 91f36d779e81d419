import { countCalls, NetworkController } from '../../../../src/app/run/network-controller.ts';
import { readStatus } from '../../../../src/app/status/status.ts';
import { createMetrics, type DaemonMetrics } from '../../../../src/cli/daemon/metrics/metrics.ts';
import { removed } from '../../../../src/core/reconcile/change.ts';
import { joinedTo, mapAt } from '../../../app/joined-state.ts';
import { SimulatedHost } from '../../../app/simulated-host.ts';
import { answerWith } from '../../../app/simulated-service.ts';
import { dialled, peer } from '../../../core/samples.ts';
import { eventually } from '../../../lab/eventually.ts';

/** A host on which a daemon kept a network for a while, counted, with a connector that has a peer behind it. */
export async function watchedDesk(): Promise<{ simulated: SimulatedHost; metrics: DaemonMetrics }> {
  const connector = peer(2, { type: 'connector', endpoint: dialled(2), name: 'gate "1"\\\n' });
  const map = mapAt('"1"', [connector, peer(3)]);
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  const metrics = createMetrics();
  const tools = { ...simulated.tools, meter: metrics.meter };
  const stop = new AbortController();
  metrics.meter.begin('cpn0');
  const kept = new NetworkController(countCalls(tools, 'cpn0'), 'cpn0', { interval: 3600, confirmMs: 0 }).run(
    stop.signal,
  );
  await eventually('a pass', () => simulated.logged.some(({ message }) => message === 'drift repaired'));
  stop.abort();
  await kept;
  simulated.updatePeer(2, {
    rxBytes: 148,
    txBytes: 92,
    latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) - 100,
  });
  metrics.meter.callFailed('cpn0', 'read_map', 'Unreachable');
  metrics.meter.changed('cpn0', [removed('route', '192.168.50.0/24', 'cpn0', 'gone')], false);
  metrics.meter.triedPath('cpn0', 'proven');
  metrics.meter.switchedPath('cpn0', 'direct');
  return { simulated, metrics };
}

/** All metrics of such a host. */
export async function expose({ simulated, metrics }: Awaited<ReturnType<typeof watchedDesk>>): Promise<string> {
  return metrics.format(await readStatus(simulated.tools), 'scrape');
}
