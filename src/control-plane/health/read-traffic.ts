import { mostBusiest, type NetworkTraffic, type PeerTraffic, trafficIntervalSeconds } from '../../contract/traffic.ts';
import type { Caller } from '../domain/caller.ts';
import { NotFound } from '../errors.ts';
import type { Context } from '../service/context.ts';
import { requireNetwork } from '../service/networks.ts';
import { findPeer } from '../store/peers/peers.ts';
import { findTraffic, listTraffic } from '../store/traffic.ts';
import { intervalEnd, parseTraffic, toSeries } from './traffic-history.ts';

/** Returns the traffic of a peer in the last 24 hours. @throws NotFound */
export async function readPeerTraffic(
  { db, readTime }: Context,
  caller: Caller,
  network: number,
  peer: number,
): Promise<PeerTraffic> {
  await requireNetwork(db, caller, network);
  if ((await findPeer(db, network, peer)) === undefined) throw new NotFound('peer');
  const now = (await readTime(db)).getTime();
  const stored = await findTraffic(db, peer);
  return { ...frameOf(now), ...toSeries(stored === null ? null : parseTraffic(stored), now) };
}

/** The traffic of a network in the last 24 hours: in total, and of the busiest. @throws NotFound */
export async function readNetworkTraffic(
  { db, readTime }: Context,
  caller: Caller,
  network: number,
): Promise<NetworkTraffic> {
  await requireNetwork(db, caller, network);
  const now = (await readTime(db)).getTime();
  const total = toSeries(null, now);
  const series = (await listTraffic(db, network)).map(({ peer_id, history }) => {
    const own = toSeries(parseTraffic(history), now);
    let sum = 0;
    for (const kind of ['received', 'sent'] as const) {
      for (const [at, rate] of own[kind].entries()) {
        total[kind][at] = (total[kind][at] ?? 0) + rate;
        sum += rate;
      }
    }
    return { peer: peer_id, ...own, sum };
  });
  const busiest = series
    .filter(({ sum }) => sum > 0)
    .sort((one, other) => other.sum - one.sum || one.peer - other.peer)
    .slice(0, mostBusiest)
    .map(({ sum: _, ...own }) => own);
  return { ...frameOf(now), total, busiest };
}

const frameOf = (now: number) => ({ interval_seconds: trafficIntervalSeconds, until: intervalEnd(now) }) as const;
