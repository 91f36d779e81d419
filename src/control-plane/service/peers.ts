import type { ChangePeer, ListedPeer, Peer, PeerDetails } from '../../contract/peer.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import { administrators, type Caller, requireTagger } from '../domain/caller.ts';
import { checkExpectedRoutes } from '../domain/route-edits.ts';
import { Forbidden, NotFound } from '../errors.ts';
import { isServing, readService, toListedPeer, toPeer } from '../push/to-contract.ts';
import { findKeyOfEntry } from '../store/audit.ts';
import type { StoredNetwork } from '../store/networks.ts';
import { mapPage, type Slice, type StoredPage } from '../store/page.ts';
import { listedFieldColumns } from '../store/peer-columns.ts';
import { dropPeer } from '../store/peers/drop-peer.ts';
import { findKeyOfEnrollment } from '../store/peers/enrollments.ts';
import { keepFormerLabel } from '../store/peers/labels.ts';
import { listPeerPage } from '../store/peers/peer-lists.ts';
import * as store from '../store/peers/peers.ts';
import { changedFields, record } from './audit.ts';
import type { Context } from './context.ts';
import { lockNetwork, requireNetwork } from './networks.ts';
import { type AttemptCounts, createAttemptCounts } from './peer-change-limit.ts';
import { checkPeerChange } from './peer-fields.ts';
import { requireAdminIfClosed, requireAdminOfApproval, requireAuthor } from './require-author.ts';
import { changeAction, isUnlisted } from './suspension.ts';
import { peerEvent, withRevision } from './with-revision.ts';

/** Lists a network's peers. Only users get unlisted ones, with `unlisted` no others. */
export async function listPeers(
  { db }: Context,
  caller: Caller,
  networkId: number,
  { unlisted, owned, slice }: { readonly unlisted: boolean; readonly owned: boolean; readonly slice: Slice },
): Promise<StoredPage<ListedPeer>> {
  const network = await requireNetwork(db, caller, networkId);
  if (unlisted && caller.kind === 'peer') throw new Forbidden('a peer may not list suspended peers');
  if (owned && caller.kind === 'peer') throw new Forbidden('a peer may not list the own devices of users');
  const filter = unlisted ? 'unlisted' : caller.kind === 'peer' ? 'listed' : 'all';
  // Hosts need no e-mail addresses.
  const show = caller.kind === 'peer' ? toPeer : toListedPeer;
  return mapPage(await listPeerPage(db, networkId, { which: filter, owned }, slice), (peer) => show(network, peer));
}

/** An enrolment's audit entry has the time of its end, which may be this much after its start. */
const longestEnrollmentMs = 60_000;

/** Returns a peer, also a suspended or expired one, with its enrolment key. */
export async function readPeer({ db }: Context, caller: Caller, networkId: number, id: number): Promise<PeerDetails> {
  const network = await requireNetwork(db, caller, networkId);
  const peer = await store.findPeer(db, networkId, id);
  if (!peer) throw new NotFound('peer');
  const from = peer.created_at;
  const to = new Date(Date.parse(from) + longestEnrollmentMs).toISOString();
  const key =
    (await findKeyOfEnrollment(db, id)) ?? (await findKeyOfEntry(db, caller.organizationId, id, { from, to }));
  return { ...toListedPeer(network, peer), enrollment_key: key ?? null };
}

/**
 * Unchanged values create no revision and count for no limit. A peer may change itself within a
 * limit, but not its priority, and its routes only by withdrawing and restoring them. A connector
 * whose first route returns is a newcomer, except after a drain, which withdraws relaying too.
 * @param check refuses peers that the caller may not change
 */
export async function changePeer(
  context: Context,
  caller: Caller,
  networkId: number,
  id: number,
  asked: ChangePeer,
  check: (peer: store.StoredPeer) => void = () => undefined,
): Promise<Peer> {
  const counts = createAttemptCounts();
  const changedPeer = await withRevision(context, async (transaction, revise, append) => {
    counts.restart();
    const network = await lockNetwork(transaction, caller, networkId);
    const author = await requireAuthor(context, transaction, requireTagger(caller, asked.tags));
    checkSelf(caller, id);
    if (caller.kind === 'peer') refuseForPeers(asked);
    const peer = await store.findPeer(transaction, networkId, id);
    if (!peer) throw new NotFound('peer');
    check(peer);
    const [fields, label] = await checkPeerChange(context, transaction, asked, peer, network);
    const changed = changedFields(peer, fields);
    if (Object.keys(changed).length === 0) return toPeer(network, peer);
    const isResumed = peer.suspended_at !== null && fields.suspended_at === null;
    // Its user may be an editor, who lost the role that the network demands, or did not log in.
    const isAdmitted = peer.user_email !== null && (isResumed || changed.expires_at !== undefined);
    if (isAdmitted) await requireAuthor(context, transaction, { ...caller, access: administrators });
    const granted = decisive.flatMap(([field, what]) => (changed[field] === undefined ? [] : what));
    if (isResumed) granted.push('resume a peer');
    if (changed.public_key !== undefined && network.approval === 'required')
      await requireAdminOfApproval(context, transaction, caller);
    for (const what of granted.slice(0, 1)) {
      await requireAdminIfClosed(context, transaction, caller, networkId, what);
    }
    checkExpectedRoutes(
      'peer',
      readService(network, peer).assigned,
      asked.expected_routes === null ? network.routes : asked.expected_routes,
    );
    if (caller.kind === 'peer') limitSelfChange(context, counts, peer, takesOut(changed, peer, fields));
    const recordChange = await revise(networkId);
    const isBack = peer.peer_type === 'connector' && !serves(network, peer) && serves(network, fields);
    const isUndrained = isDrained(network, peer) && !isDrained(network, fields);
    const serving_since =
      isBack && !isUndrained ? await store.nextServingSince(transaction, networkId, context.now()) : peer.serving_since;
    const previous_key = changed.public_key === undefined ? peer.previous_key : peer.public_key;
    const updated = await store.updatePeer(transaction, networkId, id, {
      ...fields,
      label,
      serving_since,
      previous_key,
    });
    await keepFormerLabel(transaction, peer, updated);
    await recordChange(id);
    await record(transaction, author, {
      action: changeAction(peer, updated),
      target: { kind: 'peer', id, name: updated.name },
      details: { network: networkId, ...readable(changed) },
    });
    if (isUnlisted(updated) && !isUnlisted(peer))
      append(networkId, peerEvent('peer.removed', updated, { reason: 'suspended' }));
    if (isUnlisted(peer) && !isUnlisted(updated))
      append(networkId, peerEvent('peer.enrolled', updated, { reason: 'resumed' }));
    if (changed.public_key !== undefined) append(networkId, peerEvent('key.rotated', updated));
    return toPeer(network, updated);
  });
  if (changedPeer.expires_at !== undefined) context.rescheduleExpiry();
  return changedPeer;
}

/** These give a host what rules allow a peer, or the addresses of a route. */
const decisive: readonly (readonly [keyof store.StoredPeer, string])[] = [
  ['public_key', 'change the public key of a peer'],
  ['routes', 'change which routes a connector serves'],
  ['priority', 'change which connector of a route is preferred'],
  ['expires_at', 'change when a peer expires'],
];

const newPeerMs = 3_600_000;

/** New peers (one hour) share a limit per network: one key can enrol several, each with its own. */
function limitSelfChange(
  { peerChangeLimit, newPeerLimit, now }: Context,
  counts: AttemptCounts,
  { id, network_id, created_at }: store.StoredPeer,
  always: boolean,
): void {
  const isNew = now().getTime() - Date.parse(created_at) < newPeerMs;
  if (isNew && !always) newPeerLimit.check(network_id);
  counts.add(peerChangeLimit.take(id, always));
  if (isNew) counts.add(newPeerLimit.take(network_id, always));
}

function refuseForPeers(asked: ChangePeer): void {
  const fields = Object.keys(asked) as (keyof ChangePeer)[];
  const refused = fields.find((field) => asked[field] !== undefined && !changeableByPeer.includes(field));
  if (refused === undefined) return;
  const named = describedFields[refused] ?? `its ${refused.replaceAll('_', ' ')}`;
  const others = refused === 'tags' ? 'an owner or admin' : 'an owner, admin or member';
  throw new Forbidden(`a peer may not change ${named}; ask ${others}`);
}

const changeableByPeer: readonly (keyof ChangePeer)[] = [
  ...(['name', 'endpoint', 'public_key', 'key_proof', 'network_secret_tag', 'withdrawn', 'masquerades'] as const),
  'expected_routes',
];

const describedFields: { readonly [Name in keyof ChangePeer]?: string } = {
  routes: 'which routes it serves',
  suspended: 'whether it is suspended',
  expires_at: 'when it expires',
};

/** True if hosts use the connector: it is in the map and has a route in service. */
function serves(
  network: StoredNetwork,
  peer: Pick<store.StoredPeer, 'routes' | 'withdrawn' | 'suspended_at' | 'expired'>,
): boolean {
  return !isUnlisted(peer) && isServing(network, peer);
}

function isDrained(network: StoredNetwork, peer: Pick<store.StoredPeer, 'routes' | 'withdrawn'>): boolean {
  return readService(network, peer).withdrawn.includes(network.range);
}

/** Refuses fields of a change that break a rule of the network or peer in their current state. */
export async function checkChange(
  context: Context,
  caller: Caller,
  networkId: number,
  id: number,
  asked: ChangePeer,
): Promise<void> {
  const { db } = context;
  const network = await requireNetwork(db, caller, networkId);
  checkSelf(caller, id);
  const peer = await store.findPeer(db, networkId, id);
  if (peer) await checkPeerChange(context, db, asked, peer, network);
}

/** True for a change that only suspends a peer, or only takes routes out of service. */
export async function isRemoval(
  { db }: Context,
  caller: Caller,
  networkId: number,
  id: number,
  asked: ChangePeer,
): Promise<boolean> {
  const fields = Object.keys(asked).join();
  if (fields === 'suspended') return asked.suspended === true;
  if (fields !== 'withdrawn') return false;
  await requireNetwork(db, caller, networkId);
  const peer = await store.findPeer(db, networkId, id);
  return peer !== undefined && takesOut(asked, peer, { withdrawn: JSON.stringify(asked.withdrawn) });
}

/**
 * Removes a peer and voids its token. Its address is assigned again if no other is left.
 * @param check refuses peers that the caller may not remove
 */
export async function removePeer(
  context: Context,
  caller: Caller,
  networkId: number,
  id: number,
  check: (peer: store.StoredPeer | undefined) => void = () => undefined,
): Promise<void> {
  await withRevision(context, async (transaction, revise, append) => {
    await lockNetwork(transaction, caller, networkId);
    const author = await requireAuthor(context, transaction, caller);
    checkSelf(caller, id);
    const peer = await store.findPeer(transaction, networkId, id);
    check(peer);
    if (!peer) throw new NotFound('peer');
    // No map has a peer that waits for approval.
    const recordChange = store.isWaiting(peer) ? null : await revise(networkId);
    const { name, address } = peer;
    await dropPeer(context.now(), transaction, networkId, id);
    await recordChange?.(id);
    await record(transaction, author, {
      action: 'peer.delete',
      target: { kind: 'peer', id, name },
      details: { network: networkId, address },
    });
    append(networkId, peerEvent('peer.removed', { id, name }, { reason: 'removed' }));
  });
}

/** True for a change that only takes routes out of service. */
function takesOut(
  changed: object,
  peer: store.StoredPeer,
  { withdrawn }: Pick<store.StoredPeer, 'withdrawn'>,
): boolean {
  const after = new Set(JSON.parse(withdrawn) as Prefix[]);
  return (
    Object.keys(changed).join() === 'withdrawn' &&
    (JSON.parse(peer.withdrawn) as Prefix[]).every((each) => after.has(each))
  );
}

function checkSelf(caller: Caller, id: number): void {
  if (caller.kind === 'peer' && caller.peerId !== id) throw new Forbidden('a peer may change or remove only itself');
}

const jsonColumns = [
  ...['routes', 'withdrawn'],
  ...listedFieldColumns.flatMap(([name, kind]) => (kind === 'json' ? [name] : [])),
];

/** The changed fields with stored JSON parsed to lists and objects. */
function readable(changed: Record<string, unknown>): Record<string, unknown> {
  // `expired` follows from `expires_at`.
  const { expired: _, ...shown } = changed;
  const entries = Object.entries(shown).map(([name, value]) => {
    return [name, jsonColumns.includes(name) && typeof value === 'string' ? JSON.parse(value) : value];
  });
  return Object.fromEntries(entries);
}
