import type { HealthSummary } from '../../contract/health.ts';
import type { Caller } from '../domain/caller.ts';
import type { Context } from '../service/context.ts';
import { listNetworks } from '../service/networks.ts';
import type { Slice, StoredPage } from '../store/page.ts';
import type { Evaluator, HealthEvaluation } from './evaluate.ts';

/** Counts states per network of the caller's organization, without networks deleted meanwhile. */
export async function summarizeNetworks(
  context: Context,
  evaluator: Pick<Evaluator, 'readRecent'>,
  caller: Caller,
  slice: Slice,
): Promise<StoredPage<HealthSummary>> {
  const page = await listNetworks(context, caller, slice);
  const entries: HealthSummary[] = [];
  // Sequentially, so that a large organization does not block other requests.
  for (const { id } of page.entries) {
    const evaluation = await evaluator.readRecent(id);
    if (evaluation !== null) entries.push(summarize(evaluation));
  }
  return { ...page, entries };
}

function summarize({ observation, judged }: HealthEvaluation): HealthSummary {
  const stateOf = (id: number) => judged.peers.get(id)?.state;
  const states = observation.peers.flatMap(({ peer }) => stateOf(peer.id) ?? []);
  const routes = [...judged.routes.values()].map(({ state }) => state);
  const offline = observation.peers.filter(
    ({ peer: { id, peer_type } }) => peer_type !== 'admin_device' && stateOf(id) === 'offline',
  );
  const silent = observation.peers.filter(
    ({ peer: { id, peer_type } }) => peer_type === 'connector' && !judged.answered.has(id),
  );
  const countOf = <State>(all: readonly State[], state: State) => all.filter((each) => each === state).length;
  return {
    network: observation.network.id,
    peers: {
      online: countOf(states, 'online'),
      offline: countOf(states, 'offline'),
      unknown: countOf(states, 'unknown'),
    },
    routes: { up: countOf(routes, 'up'), dead: countOf(routes, 'dead'), unknown: countOf(routes, 'unknown') },
    offline_servers: offline.length,
    silent_connectors: silent.length,
  };
}
