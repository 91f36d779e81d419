import { mostCandidates } from '../../contract/paths.ts';
import { familyOf, maskPrefix } from '../../core/net/cidr.ts';
import { tryParseSocket } from '../../core/net/endpoint.ts';
import { choosePairCandidates } from '../../core/paths/candidates.ts';
import { listKinds } from '../../core/paths/schedule-candidates.ts';
import { findRelays, listPeersAmong } from '../store/peers/peer-lists.ts';
import { countStarts, insertStarts } from '../store/peers/peer-pairs.ts';
import { isHidden, listObservers } from './observers.ts';
import { beginTrying, isUnderWay, type Pair, restLong, restShort } from './pair.ts';
import { type Round, startsMs } from './round.ts';
import { readStated, type Stated } from './statements.ts';

/** Endpoints at one address that a network's attempts may try in a minute. */
const mostStarts = 64;
/** Milliseconds from the message to the first packet: both hosts must have it by then. */
const startInMs = 500;

/**
 * What a gathering waits for: that both hosts state their endpoints, and that after it all
 * connectors, or one, observe them. `nothing`: its time is over.
 */
export type Awaited = 'all' | 'one' | 'nothing';

/**
 * Ends the gathering of an attempt, and starts the attempt on both hosts at the same moment, unless
 * a statement is still awaited.
 */
export async function conclude(round: Round, gathered: Pair, awaited: Awaited): Promise<void> {
  const { db, network, now } = round;
  if (gathered.state !== 'gathering' || !isUnderWay(gathered, now)) return;
  const { a, b, attempt, startedAt, data } = gathered;
  const place = { network: network.id, now, since: data.askedAt ?? startedAt };
  const [one, other] = [await readStated(db, a, place), await readStated(db, b, place)];
  if (awaited !== 'nothing') {
    const isLate = awaited === 'one' || data.isLate === true;
    const open = { ...gathered, data: { ...data, isLate } };
    if (isLate && !data.isLate) round.set(open);
    if ([one, other].some((stated) => stated === null || stated.ownAt < startedAt)) return;
    const most = isLate ? Math.min(data.observers, 1) : data.observers;
    if (![one, other].every((stated) => isObserved(open, stated, most))) return observe(round, open);
  }
  if (one === null || other === null) return round.set(restShort(gathered, now, one === null ? a : b));
  if (!(await areHidden(round, a, b))) return round.set(restShort(gathered, now));
  const scope = { range: network.range, routes: network.routes, taken: await listTaken(round) };
  const { endpoints, nats, observed, isBlocked } = choosePairCandidates([one, other], scope, mostCandidates);
  const pair = { ...gathered, data: { ...gathered.data, nats } };
  const [forOther, forOne] = await countAndLimit(round, endpoints);
  const hasEndpoints = forOther.length > 0 && forOne.length > 0;
  round.set(hasEndpoints ? beginTrying(pair, now) : isBlocked ? restLong(pair, now) : restShort(pair, now));
  // Hosts that cannot try state why in `cpn explain`.
  const kinds = hasEndpoints ? listKinds([...forOne, ...forOther]) : [];
  const common = { attempt, kinds, start_in_ms: startInMs };
  const toOne = { peer: b, observed: [...observed[0]], nats: { own: nats[0], peer: nats[1] }, first: true };
  const toOther = { peer: a, observed: [...observed[1]], nats: { own: nats[1], peer: nats[0] }, first: false };
  round.send(a, { kind: 'try', data: { ...common, ...toOne, endpoints: hasEndpoints ? forOne : [] } });
  round.send(b, { kind: 'try', data: { ...common, ...toOther, endpoints: hasEndpoints ? forOther : [] } });
}

/** Either may have left the map since, or may have an endpoint now. */
async function areHidden({ db, network }: Round, a: number, b: number): Promise<boolean> {
  const peers = await listPeersAmong(db, network.id, { ids: [a, b], withOwnRoutes: false });
  return peers.length === 2 && peers.every(isHidden);
}

/** Not the endpoints of other peers: a member could name the socket at which a host is observed. */
async function listTaken({ db, network, ownSockets }: Round): Promise<ReadonlySet<string>> {
  const { connectors = [] } = (await findRelays(db, network.id)) ?? {};
  return new Set([...connectors.flatMap(({ endpoint }) => endpoint ?? []), ...ownSockets]);
}

/** True if so many connectors observed the peer since both hosts sent a packet to each of them. */
function isObserved({ data: { askedAt } }: Pair, stated: Stated | null, most: number): boolean {
  if (most === 0) return true;
  return askedAt !== undefined && (stated?.observedAt ?? []).filter((at) => at >= askedAt).length >= most;
}

/**
 * Requests what connectors observe, after both hosts have sent a packet to each of them: an earlier
 * endpoint may be one that a NAT no longer uses.
 */
async function observe(round: Round, pair: Pair): Promise<void> {
  const { a, b, data } = pair;
  if (data.askedAt !== undefined) return;
  round.set({ ...pair, data: { ...data, askedAt: round.now } });
  for (const observer of await listObservers(round.db, round.network.id))
    round.send(observer, { kind: 'observe', data: { peers: [a, b] } });
}

type Both = readonly [readonly string[], readonly string[]];

/**
 * Leaves out endpoints at addresses that the attempts of the network try too often. Nothing is
 * counted if one side has none left.
 */
async function countAndLimit(round: Round, endpoints: Both): Promise<[string[], string[]]> {
  const { db, network } = round;
  // The owner of one IPv6 address mostly has the whole subnet.
  const hostOf = (text: string) => {
    const host = tryParseSocket(text)?.host;
    return host === undefined ? text : familyOf(host) === 4 ? host : maskPrefix(`${host}/64`);
  };
  const before = await countStarts(db, network.id, [...new Set(endpoints.flat().map(hostOf))], round.ago(startsMs));
  const starts = new Map<string, number>();
  const limit = (texts: readonly string[]) =>
    texts.filter((text) => {
      const host = hostOf(text);
      const count = starts.get(host) ?? 0;
      if ((before.get(host) ?? 0) + count >= mostStarts) return false;
      starts.set(host, count + 1);
      return true;
    });
  const [one, other] = [limit(endpoints[0]), limit(endpoints[1])];
  if (one.length > 0 && other.length > 0) await insertStarts(db, network.id, starts, round.ago(0));
  return [one, other];
}
