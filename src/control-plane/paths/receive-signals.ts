import { type FailedAttempt, mostWanted, type PathEnd, type PathSignals } from '../../contract/paths.ts';
import type { PeerCaller } from '../domain/caller.ts';
import { listPeersAmong } from '../store/peers/peer-lists.ts';
import type { StoredPeer } from '../store/peers/peers.ts';
import { conclude } from './conclude.ts';
import { isHidden, isObserver, listObservers } from './observers.ts';
import { end, isLost, isUnderWay, mayStart, type Pair, prove, reconsider, rest, restShort, start } from './pair.ts';
import { firstAttempt, type Round } from './round.ts';
import { saveObserved, saveOwn } from './statements.ts';

/** Pairs of one host that have a direct path or try for one. */
const mostPairs = 32;
/** Attempts of one host at once: it sends only so many packets. */
const mostUnderWay = 8;
/** Those of them that other hosts began: the rest is for the peers that the host itself names. */
const mostOfOthers = 4;
/** Milliseconds from the message to the moment at which both hosts use the path. */
const switchInMs = 300;

/** Applies what a host states. Ignores entries for itself and for peers that are not in the map. */
export async function receiveSignals(round: Round, caller: PeerCaller, signals: PathSignals): Promise<void> {
  const { peerId: self, address } = caller;
  const peers = await listNamed(round, self, signals);
  const sender = peers.get(self);
  if (sender === undefined) return;
  const isOther = ({ peer }: { readonly peer: number }) => peer !== self && peers.has(peer);
  const place = { network: round.network.id, now: round.now };
  // Statements of other connectors do not count.
  const isTrusted = isObserver(sender) && (await listObservers(round.db, round.network.id)).includes(self);
  const observed = isTrusted ? (signals.observed ?? []).filter(isOther) : [];
  const moved = [...(await saveObserved(round.db, self, observed, place))];
  const { candidates } = signals;
  if (candidates && (await saveOwn(round.db, self, candidates, address, place))) moved.push(self);
  await round.load([...peers.keys()]);
  const ended = (signals.ended ?? []).filter(isOther);
  const lost = ended.filter(({ peer, why }) => returnToRelay(round, self, peer, why) && why === 'lost');
  if (lost.length > 0) await observeAgain(round, [self, ...lost.map(({ peer }) => peer)]);
  for (const failed of (signals.failed ?? []).filter(isOther)) endAttempt(round, self, failed);
  for (const peer of signals.declined ?? []) if (isOther({ peer })) decline(round, self, peer);
  for (const peer of moved) for (const pair of round.pairsOf(peer)) reconsiderIn(round, pair);
  for (const { peer, attempt } of (signals.proven ?? []).filter(isOther)) takeProof(round, self, peer, attempt);
  const wanted = [...new Set(signals.wanted ?? [])].filter((peer) => isOther({ peer }));
  const wantedPeers = wanted.flatMap((id) => peers.get(id) ?? []);
  await startWanted(round, sender, wantedPeers, candidates !== undefined);
  const stated = [...(candidates ? [self] : []), ...observed.map(({ peer }) => peer)];
  const gathering = new Set(stated.flatMap((peer) => round.pairsOf(peer)));
  for (const pair of gathering) await conclude(round, pair, 'all');
}

/** Returns the sender and the peers that it names, if they are in the map. */
async function listNamed({ db, network }: Round, self: number, signals: PathSignals): Promise<Map<number, StoredPeer>> {
  const { wanted = [], observed = [], proven = [], failed = [], declined = [], ended = [] } = signals;
  const named = [...wanted, ...declined, ...[...observed, ...proven, ...failed, ...ended].map(({ peer }) => peer)];
  const ids = [...new Set([self, ...named])];
  const peers = await listPeersAmong(db, network.id, { ids, withOwnRoutes: false });
  return new Map(peers.map((peer) => [peer.id, peer]));
}

/** Returns true if the pair had a direct path. An attempt that began since goes on. */
function returnToRelay(round: Round, self: number, peer: number, why: PathEnd): boolean {
  const pair = round.pairOf(self, peer);
  if (pair === undefined) return false;
  const wasDirect = pair.state === 'direct';
  if (wasDirect) round.send(peer, { kind: 'return', data: { peer: self } });
  const ended = wasDirect ? end(pair, why, round.now, round.random()) : pair;
  // After a sleep or a move, the backoff of attempts that failed meanwhile has no meaning.
  const next = why === 'moved' ? reconsider(ended, round.now) : ended;
  if (next !== pair) round.set(next);
  return wasDirect;
}

/** A NAT may have taken another port: an endpoint that is new lets the next attempt begin soon. */
async function observeAgain(round: Round, peers: readonly number[]): Promise<void> {
  for (const observer of await listObservers(round.db, round.network.id))
    round.send(observer, { kind: 'observe', data: { peers: peers.slice(0, mostWanted) } });
}

function endAttempt(round: Round, self: number, { peer, attempt, tried }: FailedAttempt): void {
  const pair = round.pairOf(self, peer);
  if (pair?.attempt !== attempt || pair.data.tried?.[self] !== undefined) return;
  const next = { ...pair, data: { ...pair.data, tried: { ...pair.data.tried, [self]: tried } } };
  if (pair.state === 'trying') round.set(rest(next, round.now, round.random()));
  // The other side ended the attempt first.
  else if (pair.state === 'resting' && pair.data.tried !== undefined) round.set(next);
}

/** Ends an attempt with a host that takes none. The other side gets that in place of endpoints. */
function decline(round: Round, self: number, peer: number): void {
  const pair = round.pairOf(self, peer);
  if (pair === undefined || !isUnderWay(pair, round.now)) return;
  round.set(restShort(pair, round.now, self));
  const nothing = { attempt: pair.attempt, endpoints: [], start_in_ms: 0, first: false };
  round.send(peer, { kind: 'try', data: { peer: self, ...nothing, declined: true } });
}

function takeProof(round: Round, self: number, peer: number, attempt: number): void {
  const pair = round.pairOf(self, peer);
  if (pair?.state !== 'trying' || pair.attempt !== attempt || !isUnderWay(pair, round.now)) return;
  const next = prove(pair, self, round.now);
  round.set(next);
  if (next.state !== 'direct') return;
  for (const [to, about] of [
    [self, peer],
    [peer, self],
  ] as const)
    round.send(to, { kind: 'switch', data: { peer: about, attempt, switch_in_ms: switchInMs } });
}

function reconsiderIn(round: Round, pair: Pair, tries = 0): void {
  const next = reconsider(pair, round.now, tries);
  if (next !== pair) round.set(next);
}

/**
 * Begins attempts, as far as the limits and the backoff allow. Silence is a no.
 *
 * @param isStated true if the sender states its endpoints too
 */
async function startWanted(
  round: Round,
  sender: StoredPeer,
  wanted: readonly StoredPeer[],
  isStated: boolean,
): Promise<void> {
  const { now, network } = round;
  const self = sender.id;
  const isSpare = (peer: number) => {
    const { underWay, ofOthers, used } = round.countOf(peer);
    return underWay < mostUnderWay && used < mostPairs && (peer === self || ofOthers < mostOfOthers);
  };
  for (const peer of wanted) {
    const pair = round.pairOf(self, peer.id);
    if (pair && isLost(pair, now)) returnToRelay(round, self, peer.id, 'lost');
    // It takes paths again. A peer that is silent each time must not begin attempts without end.
    if (pair?.data.silent === self) reconsiderIn(round, pair, pair.tries);
  }
  const due = wanted.filter((peer) => mayStart(round.pairOf(self, peer.id), now) && isHidden(peer));
  if (due.length === 0 || !isHidden(sender)) return;
  const observers = await listObservers(round.db, network.id);
  if (!isStated) round.send(self, { kind: 'candidates', data: { peers: due.map(({ id }) => id) } });
  for (const { id } of due) {
    if (!isSpare(self) || !isSpare(id)) continue;
    const common = { by: self, observers: observers.length, now, random: round.random(), first: firstAttempt() };
    round.begin(start(round.pairOf(self, id), { peers: [self, id], ...common }));
    round.send(id, { kind: 'candidates', data: { peers: [self] } });
  }
}
