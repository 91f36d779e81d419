import type { Wait } from '../api/service.ts';
import { BadReply, CpnError, Unconfirmed } from '../core/errors.ts';
import type { PublicKey } from '../core/keys.ts';
import { dropsMost } from '../core/mesh-loss.ts';
import type { NetworkMap } from '../core/model.ts';
import { emptiesTunnel, keepUnlisted } from '../core/newer-map.ts';
import { findOwnPeer, ownKeys } from '../core/own-peer.ts';
import { isHolding } from '../core/pins.ts';
import { findOwnSkipped } from '../core/skipped-peers.ts';
import { refusalOf } from '../core/sync-refusal.ts';
import type { Joined } from '../store/state.ts';
import type { Notes } from '../store/store.ts';
import { accessOf } from './access.ts';
import { type News, noNews, withNews } from './news.ts';
import { reclaimKey } from './reclaim-key.ts';
import { namesOf, resolveNames } from './resolve.ts';
import type { Tools } from './tools.ts';

/** Milliseconds. Without an answer the host is kept right all the same, and should not wait for it long. */
const mapDeadline = 10_000;

/** Whoever waits for changes asks again and again, and should soon know that nobody answers; one lost packet is no trouble yet. */
const attemptsOfFollower = 3;

/** Seconds between an answer that would empty the tunnel and the one that confirms it, at the least. */
export const usualInterval = 30;

/** What a network's control plane said, and how that went. Nothing is saved yet. */
export interface Refreshed {
  readonly news: News;
  /** What of the network's notes is different now. */
  readonly notes: Pick<Notes, 'sync' | 'held'>;
  /** The service held its answer back until there was one. */
  readonly waited: boolean;
  /** What kept the newest map away; the last known one stands in its place. */
  readonly failure: CpnError | null;
  /** The map that `failure` is about, where it is held until a second answer says the same and can be named; else null. */
  readonly doubt: Doubt | null;
}

/** A map that is not believed yet. */
export interface Doubt {
  readonly revision: string;
  readonly failure: Unconfirmed;
}

export interface RefreshOptions {
  /** Seconds; {@link usualInterval} unless told. */
  readonly interval?: number;
  readonly wait?: Wait;
  /** What the last question ended in: until the map may be believed, the service is asked for another one than that. */
  readonly doubt?: Doubt | null;
}

/**
 * Asks for the newest map, and resolves names in it that are new; whatever fails, what was known before stays known.
 *
 * @throws the reason of `wait.signal` when that ends it
 */
export async function refresh(
  tools: Tools,
  state: Joined,
  { interval = usualInterval, wait, doubt = null }: RefreshOptions = {},
): Promise<Refreshed> {
  const { sync, held } = await tools.store.readNotes(state.interface);
  const { map: known } = state.membership;
  const access = accessOf(state);
  if (access === null) return { news: noNews, notes: { sync, held: null }, waited: false, failure: null, doubt: null };
  const left = held === null ? 0 : held.since + interval - tools.uptime();
  try {
    const attempts = wait && { attempts: attemptsOfFollower };
    const service = await tools.connect(state, { deadlineMs: mapDeadline, ...attempts });
    // Of a map that was refused only the revision is kept, and one in which peers are held is not what was told: no base for changes.
    const isBase = state.refused === null && !isHolding(state.pins, state.options.pin);
    const named = known.revision && (isBase ? known : (state.refused ?? known.revision));
    const isHeld = doubt !== null && left > 0;
    const answer = await (isHeld
      ? service.readMap(access.network, access.token, doubt.revision, wait && shorten(wait, left))
      : service.readMap(access.network, access.token, named, wait));
    const { waited } = answer;
    if (isHeld && answer.map === null) {
      const { failure } = doubt;
      return { news: noNews, notes: fail(failure, { sync, held }), waited, failure, doubt: waited ? doubt : null };
    }
    const isReclaimed = answer.map !== null && (await reclaimKey(tools, state, answer.map));
    const { map: told } = isReclaimed ? await service.readMap(access.network, access.token, null) : answer;
    const own = told === null ? [] : await readOwnKeys(tools, state, told);
    const map = told && keepUnlisted(known, told, own);
    if (map !== null) refuseMove(state, map);
    if (told !== null) refuseSkipped(state, told);
    // A map that drops most peers is applied under commit-confirm first. If that failed, it is held like one that drops all.
    const isDoubted = map !== null && (emptiesTunnel(known, map, own) || (held !== null && dropsMost(known, map, own)));
    if (isDoubted) {
      const since = held?.since ?? tools.uptime();
      if (held === null || tools.uptime() - since < interval) {
        const failure = unconfirmed(state, map, interval);
        const { revision } = map;
        const next = waited && revision !== null ? { revision, failure } : null;
        return { news: noNews, notes: fail(failure, { sync, held: { since } }), waited, failure, doubt: next };
      }
    }
    const mode = wait === undefined ? sync.mode : waited ? 'push' : 'poll';
    const notes = { sync: { mode, lastSuccess: tools.now().toISOString(), error: null, refused: null }, held: null };
    const news = await resolveNew(tools, state, map);
    return { news: { ...news, isSaidTwice: isDoubted }, notes, waited, failure: null, doubt: null };
  } catch (error) {
    wait?.signal?.throwIfAborted();
    if (!(error instanceof CpnError)) throw error;
    return { news: noNews, notes: fail(error, { sync, held }), waited: false, failure: error, doubt: null };
  }
}

/** Until a map may be believed there is nothing to wait for beyond that. */
function shorten({ seconds, ...wait }: Wait, left: number): Wait {
  return { ...wait, seconds: seconds && Math.min(seconds, Math.ceil(left)) };
}

/** An address is given once, at the enrolment, where it is judged: another one may be the gateway's, or no host's at all. */
function refuseMove(state: Joined, map: NetworkMap): void {
  const { service, membership } = state;
  const own = findOwnPeer(map, state);
  const { address } = membership.peer;
  if (own === undefined || own.address === address) return;
  const remedy = 'the tunnel stays as it is; ask an admin why, and to take the new address leave and join again';
  throw new BadReply(service.url, `lists this host with ${own.address}, and it joined with ${address}`, remedy);
}

/** Of this host's own entry nothing is left out: without it the host would count as removed. */
function refuseSkipped(state: Joined, map: NetworkMap): void {
  const own = findOwnSkipped(map, state);
  if (own === undefined) return;
  const remedy = 'the tunnel stays as it is; ask an admin to put it right';
  throw new BadReply(state.service.url, `has an entry for this host that cannot be used: ${own.reason}`, remedy);
}

/** The keys under which a map may list this host: they may have changed while its answer was held back. */
async function readOwnKeys(tools: Tools, state: Joined, told: NetworkMap): Promise<readonly PublicKey[]> {
  if (findOwnPeer(told, state) !== undefined) return ownKeys(state);
  const now = await tools.store.read(state.interface);
  return now === null ? ownKeys(state) : [...ownKeys(state), ...ownKeys(now)];
}

function fail(error: CpnError, { sync, held }: Pick<Notes, 'sync' | 'held'>): Pick<Notes, 'sync' | 'held'> {
  return { sync: { ...sync, error: error.message, refused: refusalOf(error) ?? sync.refused }, held };
}

async function resolveNew(tools: Tools, state: Joined, map: NetworkMap | null): Promise<News> {
  if (map === null) return noNews;
  const next = withNews(state, { map, resolved: null });
  const unknown = new Set(namesOf(next).filter((name) => next.resolved[name] === undefined));
  const resolved = unknown.size === 0 ? null : await resolveNames(tools, next, unknown);
  return { map, resolved, askedAs: state.keyPair.publicKey };
}

function unconfirmed(state: Joined, map: NetworkMap, interval: number): Unconfirmed {
  const { service, membership } = state;
  const own = findOwnPeer(map, state);
  const isAlone = map.peers.every((peer) => peer === own);
  const others = isAlone ? 'lists no other peer' : 'no longer lists most of the other peers';
  const isOtherKey = map.peers.some(({ id }) => id === membership.peer.id);
  const missing = isOtherKey ? 'lists another key for this host' : 'no longer lists this host';
  const problem = own === undefined ? `${missing} (peer ${membership.peer.id})` : others;
  return new Unconfirmed(service.url, `${problem} in network ${map.name}`, interval);
}
