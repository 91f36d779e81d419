import type { MessageBatch, Wait } from '../../api/service.ts';
import type { PublicKey } from '../../core/crypto/keys.ts';
import { BadReply, type CpnError, expectCpnError, Unconfirmed } from '../../core/errors/index.ts';
import { emptiesTunnel, movesRange, withoutRemoved, withoutUnlisted } from '../../core/map/map-validation.ts';
import type { NetworkMap } from '../../core/map/model.ts';
import { findOwnPeer, ownKeys } from '../../core/map/own-peer.ts';
import { adjustClock, serviceTimeOf } from '../../core/map/service-time.ts';
import { findOwnSkipped } from '../../core/map/skipped-peers.ts';
import { refusalOf, type SyncRefusal, statesDeletion } from '../../core/map/sync-refusal.ts';
import { addressesOf } from '../../core/names/resolved-names.ts';
import { isMapAltered } from '../../core/pins/pins.ts';
import { dropsMost } from '../../core/reconcile/mesh-loss.ts';
import { findRangeRefusal } from '../../core/routing/guard.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import { accessOf } from '../access.ts';
import { reclaimKey } from '../register-key.ts';
import type { Tools } from '../tools.ts';
import { othersOf } from './desire-network.ts';
import { namesOf, resolveNames } from './names/resolve-names.ts';
import { observeOptionsFor } from './observe-options.ts';
import { constrainRoutes, readEarlier } from './route-constraints.ts';
import { applyUpdate, noUpdate, type StateUpdate } from './state-update.ts';

/** Milliseconds. The host is reconciled without a reply, and must not wait long. */
const mapDeadline = 10_000;

/** Few attempts report an outage early, and survive a lost packet; a follower retries anyway. */
const followerAttempts = 3;

/** Least seconds until a second reply may confirm that the tunnel is emptied or its range moves. */
export const defaultHoldSeconds = 30;

/** The result of a request to a network's control plane, before it is saved. */
export interface RefreshResult {
  readonly update: StateUpdate;
  readonly notes: Pick<Notes, 'sync' | 'held'>;
  /** True if the service held the request until there was a change. */
  readonly waited: boolean;
  /** Set if a gateway refuses deltas. */
  readonly refusesDeltas?: true;
  /** Milliseconds until a second statement of the deletion counts; absent if none is expected. */
  readonly retryAfterMs?: number;
  /** Messages of the service to this host; absent for none. */
  readonly batch?: MessageBatch;
  /** Why the newest map was not received or accepted; the last known map stays in use. */
  readonly failure: CpnError | null;
  /** The map of `failure`, if it has a revision and is held until a second reply; else null. */
  readonly heldMap: HeldMap | null;
}

export interface HeldMap {
  readonly revision: string;
  readonly failure: Unconfirmed;
}

export interface RefreshOptions {
  /** Seconds; {@link defaultHoldSeconds} by default. */
  readonly holdSeconds?: number;
  readonly wait?: Wait;
  /** The held map: the service must send another one until two replies agree. */
  readonly heldMap?: HeldMap | null;
  /** True to request the whole map, because the network's nonce is missing. */
  readonly needsNonce?: boolean;
  /** True to request whole maps: a gateway refuses deltas. */
  readonly wholeMaps?: boolean;
  /** The receipt of the messages in the last reply; null for none. */
  readonly receipt?: string | null;
}

/**
 * Requests the newest map, and resolves its new names. A failure leaves the state unchanged.
 *
 * @throws the reason of `wait.signal` if the signal ends the request
 */
export async function refresh(
  tools: Tools,
  state: Joined,
  {
    holdSeconds = defaultHoldSeconds,
    wait,
    heldMap = null,
    wholeMaps = false,
    needsNonce = false,
    receipt = null,
  }: RefreshOptions = {},
): Promise<RefreshResult> {
  const { sync, held: heldReply } = await tools.store.readNotes(state.interface);
  const held = heldReply?.isDeletion ? null : heldReply;
  const { map: known } = state.membership;
  const access = accessOf(state);
  if (access === null)
    return { update: noUpdate, notes: { sync, held: null }, waited: false, failure: null, heldMap: null };
  const left = held === null ? 0 : held.since + holdSeconds - tools.uptime();
  const requestedAt = tools.monotonic();
  try {
    const following = wait && { attempts: followerAttempts, ...(wait.seconds && { connection: 'keep' as const }) };
    const service = await tools.connect(state, { deadlineMs: mapDeadline, ...following });
    // Only the revision of a refused map is kept, and a map with held peers differs from the
    // received one: neither is a base for deltas.
    const isBase = !wholeMaps && state.refused === null && !isMapAltered(state.pins, state.options.pin);
    const isWhole = needsNonce || state.deletion !== undefined;
    const named = isWhole ? null : known.revision && (isBase ? known : (state.refused ?? known.revision));
    const isHeld = heldMap !== null && left > 0;
    // Until the held map may be accepted, there is no reason to wait longer.
    const limited = wait && { ...wait, seconds: wait.seconds && Math.min(wait.seconds, Math.ceil(left)) };
    const [asked, waiting] = isHeld ? [heldMap.revision, limited] : [named, wait];
    const answer = await service.readMap(access.network, access.token, asked, waiting, receipt);
    const canWait = state.features?.includes('map-wait') === true;
    const isLongPoll = (wait?.seconds ?? 0) > 0 && canWait;
    const isUnchanged = answer.map === null && answer.batch === undefined;
    // If maps repeat before the interval is over, long polls cost more than polling.
    const isRepeated = answer.isRepeated === true && tools.monotonic() - requestedAt < holdSeconds;
    const isEarly = isLongPoll && (isRepeated || (isUnchanged && !answer.waited));
    // A change ends a wait, and a first request has none. Without Preference-Applied, neither shows
    // whether the service waits.
    const isOpen = wait !== undefined && canWait && !isEarly && !answer.waited;
    const waited = isOpen || (answer.waited && !isEarly);
    if (isHeld && answer.map === null) {
      return { ...failWith(heldMap.failure, { sync, held }), waited, heldMap: waited ? heldMap : null };
    }
    const isReclaimed = answer.map !== null && (await reclaimKey(tools, state, answer.map));
    const { map: received } = isReclaimed ? await service.readMap(access.network, access.token, null) : answer;
    const own = received === null ? [] : await readOwnKeys(tools, state, received);
    const map = received && withoutUnlisted(known, received, own);
    if (map !== null) refuseNewAddress(state, map);
    if (received !== null) refuseUnusableSelf(state, received);
    if (map !== null) await refuseNewRange(tools, state, map);
    const { removed = [] } = answer;
    // Stated removals count immediately. A map that only lacks peers may be an error.
    const expected = withoutRemoved(known, removed);
    // A map without most peers is first applied with confirmation. If that failed, it is held like
    // a map without any peer.
    const needsConfirmation =
      map !== null &&
      (emptiesTunnel(expected, map, own) || movesRange(known, map) || (held !== null && dropsMost(expected, map, own)));
    if (needsConfirmation) {
      const since = held?.since ?? tools.uptime();
      if (held === null || tools.uptime() - since < holdSeconds) {
        const failure = describeUnconfirmed(state, map, holdSeconds);
        const { revision } = map;
        const next = waited && revision !== null ? { revision, failure } : null;
        return { ...failWith(failure, { sync, held: { since } }), waited, heldMap: next };
      }
    }
    const mode = wait === undefined || isOpen ? sync.mode : waited ? 'push' : 'poll';
    const reached = answer.from ?? sync.reached;
    const cloned = answer.clonedSince === undefined ? {} : { clonedSince: answer.clonedSince };
    const lastSuccess = tools.now().toISOString();
    const clock = adjustClock(sync.clock, answer.servedAt, tools.uptime());
    // A single such reply may have another reason, such as too many long polls of this host at
    // once.
    const repliesEarly = isLongPoll && !isOpen ? isEarly && sync.mode === 'poll' : sync.repliesEarly === true;
    const refusesDeltas = wait === undefined ? sync.refusesDeltas === true : wholeMaps || answer.refusesDeltas === true;
    const ofProxy = { ...(repliesEarly && { repliesEarly }), ...(refusesDeltas && { refusesDeltas }) };
    const facts = { ...(reached && { reached }), ...(clock && { clock }), ...cloned, ...ofProxy };
    const notes = { sync: { mode, lastSuccess, error: null, refused: null, ...facts }, held: null };
    // If the service only has a map that this host refused, no map is confirmed.
    const isConfirmed = map !== null || state.refused === null;
    const confirmedAt = serviceTimeOf(clock, { now: tools.now().getTime(), uptime: tools.uptime() });
    const answeredBy = answer.listener === undefined ? {} : { listener: answer.listener };
    const back = state.deletion !== undefined && map !== null ? { isBack: true as const } : {};
    const update = await resolveNewNames(tools, state, map);
    return {
      update: {
        ...update,
        ...answeredBy,
        isRepeated: needsConfirmation,
        removed,
        ...(isConfirmed && { confirmedAt }),
        ...back,
      },
      notes,
      waited,
      ...(answer.refusesDeltas && { refusesDeltas: answer.refusesDeltas }),
      ...(answer.batch && { batch: answer.batch }),
      failure: null,
      heldMap: null,
    };
  } catch (error) {
    wait?.signal?.throwIfAborted();
    const failure = expectCpnError(error);
    if (!statesDeletion(failure, known)) return failWith(failure, { sync, held: heldReply });
    return confirmDeletion(tools, state, failure, { sync, held: heldReply }, holdSeconds);
  }
}

/** A single 410 may be an error, for example during a restore. The host acts on the second one. */
function confirmDeletion(
  tools: Pick<Tools, 'now' | 'uptime'>,
  { deletion }: Joined,
  failure: CpnError,
  { sync, held }: Pick<Notes, 'sync' | 'held'>,
  holdSeconds: number,
): RefreshResult {
  const since = held?.isDeletion ? held.since : tools.uptime();
  const left = since + Math.min(holdSeconds, defaultHoldSeconds) - tools.uptime();
  const result = failWith(failure, { sync, held: { since, isDeletion: true } }, 'gone');
  if (deletion !== undefined) return result;
  if (left > 0 || !held?.isDeletion) return { ...result, retryAfterMs: Math.max(0, left) * 1000 };
  return { ...result, update: { ...noUpdate, deletedAt: tools.now().toISOString() } };
}

/**
 * Refuses a map with another address of this host. The address was checked at the enrolment; a new
 * one may be the gateway's, or no host's at all.
 */
function refuseNewAddress(state: Joined, map: NetworkMap): void {
  const { service, membership } = state;
  const own = findOwnPeer(map, state);
  const { address } = membership.peer;
  if (own === undefined || own.address === address) return;
  const remedy = 'the tunnel stays as it is; ask an admin why; to use the new address, leave and join again';
  throw new BadReply(service.url, `lists this host with ${own.address}, and it joined with ${address}`, remedy);
}

/**
 * Refuses a new range of the network that conflicts with what this host reaches. A resolver in the
 * range of the enrolment counts as inside the network. A new range proves nothing: it is checked
 * like a route, against what this host reaches before the move.
 */
async function refuseNewRange(
  tools: Pick<Tools, 'host' | 'store' | 'savedConfigs'>,
  state: Joined,
  { cidr, name }: NetworkMap,
): Promise<void> {
  const { interface: link, service, membership } = state;
  const { map: known } = membership;
  if (!movesRange(known, { ...known, cidr })) return;
  const saved = await tools.savedConfigs.read(tools.store, link);
  const { states } = await tools.store.list();
  const observed = await tools.host.observe(observeOptionsFor(state));
  const earlier = await readEarlier(tools, state, states);
  const sshClients = await tools.host.sshClients();
  const others = othersOf(state, states);
  const constraints = constrainRoutes({
    state,
    others,
    earlier,
    observed,
    sshClients,
    recalled: [],
    saved,
    disallowed: [],
  });
  const reason = findRangeRefusal(cidr, constraints);
  if (reason === null) return;
  const remedy = `the tunnel stays as it is; ask an admin why; if this is intended, "cpn set ${link} --allow-route ${cidr}" accepts it`;
  throw new BadReply(service.url, `moves network ${name} from ${known.cidr} to ${cidr}, which ${reason}`, remedy);
}

/** Refuses a map with an unusable entry of this host, which would count as removed. */
function refuseUnusableSelf(state: Joined, map: NetworkMap): void {
  const own = findOwnSkipped(map, state);
  if (own === undefined) return;
  const remedy = 'the tunnel stays as it is; ask an admin to correct it';
  throw new BadReply(state.service.url, `has an entry for this host that cannot be used: ${own.reason}`, remedy);
}

/** The keys by which a map may list this host. A long poll may outlast a key. */
async function readOwnKeys(
  tools: Pick<Tools, 'store'>,
  state: Joined,
  received: NetworkMap,
): Promise<readonly PublicKey[]> {
  if (findOwnPeer(received, state) !== undefined) return ownKeys(state);
  const now = await tools.store.read(state.interface);
  return now === null ? ownKeys(state) : [...ownKeys(state), ...ownKeys(now)];
}

function failWith(
  failure: CpnError,
  { sync, held }: Pick<Notes, 'sync' | 'held'>,
  refused: SyncRefusal | null = refusalOf(failure),
): RefreshResult {
  const stands = refused === null ? {} : { refused, refusal: failure.message };
  const notes = { sync: { ...sync, error: failure.message, ...stands }, held };
  return { update: noUpdate, notes, waited: false, failure, heldMap: null };
}

async function resolveNewNames(
  tools: Pick<Tools, 'host' | 'store' | 'savedConfigs'>,
  state: Joined,
  map: NetworkMap | null,
): Promise<StateUpdate> {
  if (map === null) return noUpdate;
  const next = applyUpdate(state, { map, resolved: null });
  const unknown = new Set(namesOf(next).filter((name) => addressesOf(name, next.resolved).length === 0));
  const resolved = unknown.size === 0 ? null : await resolveNames(tools, next, { some: unknown });
  return { map, resolved, requestedAs: state.keyPair.publicKey };
}

function describeUnconfirmed(state: Joined, map: NetworkMap, interval: number): Unconfirmed {
  const { service, membership } = state;
  const own = findOwnPeer(map, state);
  const isAlone = map.peers.every((peer) => peer === own);
  const others = isAlone ? 'lists no other peer' : 'no longer lists most of the other peers';
  const change = movesRange(membership.map, map) ? `has the range ${map.cidr}, not ${membership.map.cidr},` : others;
  const isOtherKey = map.peers.some(({ id }) => id === membership.peer.id);
  const missing = isOtherKey ? 'lists another key for this host' : 'no longer lists this host';
  const problem = own === undefined ? `${missing} (peer ${membership.peer.id})` : change;
  return new Unconfirmed(service.url, `${problem} in network ${map.name}`, interval);
}
