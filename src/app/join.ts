import { createHash } from 'node:crypto';
import type { PeerType } from '../contract/peer.ts';
import type { SecretTrouble } from '../core/compare-secrets.ts';
import type { Endpoint } from '../core/endpoint.ts';
import { InvalidValue, NotNamed, Refused, Unreachable, WrongUsage } from '../core/errors.ts';
import { makeIdentity } from '../core/identity.ts';
import { makeKeyPair } from '../core/keys.ts';
import type { Options, ServiceAddress } from '../core/model.ts';
import { explainHosts } from '../core/plan-hosts.ts';
import type { Secret } from '../core/secret.ts';
import type { Joined, State } from '../store/state.ts';
import { explainLocal } from './access.ts';
import { apply, save } from './apply.ts';
import { awaitHandshake } from './await-handshake.ts';
import { chooseInterface } from './choose-interface.ts';
import { describeClaims } from './describe-claims.ts';
import { lookForTroubles } from './find-secret-troubles.ts';
import { forget } from './leave.ts';
import { findOwnEndpoint } from './own-endpoint.ts';
import { withMembership, withOptions } from './pins.ts';
import { refuseConflict } from './refuse-conflict.ts';
import { resolveNames } from './resolve.ts';
import { isJoined, refuseUnreadable } from './select.ts';
import { survey } from './survey.ts';
import { takeBack } from './take-back.ts';
import { ownTag, tellSecret } from './tell-secret.ts';
import type { Tools } from './tools.ts';

/** What a person asks for when this host is to join a network. */
export interface JoinRequest {
  readonly token: Secret;
  readonly service: ServiceAddress;
  readonly name: string;
  readonly type: PeerType;
  readonly endpoint: Endpoint | 'auto' | null;
  /** Null takes the first free `cpnN`. */
  readonly interface: string | null;
  readonly options: Options;
  /** The bytes in base64 that all hosts of the network are to have, and its control plane not; null for none. */
  readonly networkSecret: Secret | null;
  /** A person's token to follow the network with, where the service gives this host none of its own. */
  readonly personalToken: Secret | null;
  /** Milliseconds to wait for a first handshake; null for the usual time. */
  readonly patience: number | null;
}

export interface JoinReport {
  readonly state: Joined;
  /** Whether a peer answered; null where nobody could be dialled. */
  readonly handshake: boolean | null;
  /** What of the network secret keeps a handshake away; none where a peer answered. */
  readonly troubles: readonly SecretTrouble[];
}

/**
 * Joins a network: key pair on disk, enrolment, wg-quick file, interface, and a first handshake where one is to be had.
 * Every step is saved before the next, so that the same call again, with the same key, goes on where this one ended and
 * comes to the same peer and address.
 */
export async function joinNetwork(tools: Tools, request: JoinRequest): Promise<JoinReport> {
  await tools.host.check({ firewall: request.type === 'connector' });
  const state = await tools.store.lock(async () => {
    const { begun, isNew } = await beginJoin(tools, request);
    const joined = isJoined(begun) ? begun : await enroll(tools, begun, request.token, isNew);
    return bringUp(tools, await lend(tools, joined, request.personalToken));
  });
  for (const claim of describeClaims(state)) tools.warn(claim);
  const untold = await tellSecret(tools, state);
  if (untold !== null && untold !== 'unknown') tools.warn(untold.message);
  const handshake = await awaitHandshake(tools, state, request.patience);
  return { state, handshake, troubles: handshake === true ? [] : await lookForTroubles(tools, state) };
}

/** The state of an earlier, unfinished or finished join with this key, with the options now asked for; else a new one. */
async function beginJoin(tools: Tools, request: JoinRequest): Promise<{ begun: State; isNew: boolean }> {
  const tokenHash = createHash('sha256').update(request.token.reveal()).digest('hex');
  const { states, unreadable } = await tools.store.list();
  // This very key may have been used by it: a second time it would make a second peer.
  refuseUnreadable(unreadable);
  const earlier = states.find(
    ({ enrollment, service }) => enrollment.tokenHash === tokenHash && service.url === request.service.url,
  );
  if (earlier && request.interface !== null && request.interface !== earlier.interface) {
    throw new WrongUsage(
      `this key has joined as ${earlier.interface} already; leave out --interface, or "cpn leave ${earlier.interface}" first`,
    );
  }
  const { name, type, options, service, networkSecret } = request;
  if (earlier) {
    tools.progress(`going on with the join of ${earlier.interface}`);
    if (earlier.networkSecret !== null && networkSecret === null) tools.warn(describeDropped(earlier));
    if (earlier.options.pin === 'strict' && options.pin !== 'strict') tools.warn(describeLoosened(earlier));
    const fixed = fixPort(options, earlier.enrollment.endpoint);
    const begun: State = { ...withOptions(earlier, fixed), service, networkSecret, enabled: true };
    await tools.store.write(begun);
    // What probes told that are no more would otherwise hold for ever.
    if (options.probes.length === 0) await tools.store.amendNotes(begun.interface, { dead: [], probed: {} });
    return { begun, isNew: false };
  }
  const link = await chooseInterface(tools, request.interface, states);
  const endpoint = await findOwnEndpoint(tools, request);
  const folders = await tools.store.prepare();
  tools.progress('making the key pair');
  const now = tools.now().toISOString();
  const begun: State = {
    interface: link,
    createdAt: now,
    keyPair: makeKeyPair(tools.random(32)),
    keySince: now,
    keySerial: 0,
    identity: makeIdentity(tools.random(32)),
    rotation: null,
    networkSecret,
    service,
    enrollment: { idempotencyKey: makeIdempotencyKey(tools), tokenHash, name, type, endpoint },
    membership: null,
    options: fixPort(options, endpoint),
    enabled: true,
    resolved: {},
    refused: null,
    failed: [],
    drained: false,
    pins: [],
    receipt: folders.map((path) => ({ made: 'folder', path })),
  };
  await tools.store.write(begun);
  return { begun, isNew: true };
}

/** A host that is to be dialled at an endpoint listens on its port, unless it is told another: a router may map one to the other. */
function fixPort(options: Options, endpoint: Endpoint | null): Options {
  return { ...options, listenPort: options.listenPort ?? endpoint?.port ?? null };
}

function describeDropped({ interface: link }: State): string {
  return `${link} had a network secret and has none any more, because --network-secret-file was not given: peers that have it answer no handshake`;
}

function describeLoosened({ interface: link }: State): string {
  return `${link} held its peers to the keys that they are known by, and does not any more, because --pin strict was not given`;
}

async function enroll(tools: Tools, state: State, token: Secret, isNew: boolean): Promise<Joined> {
  const { name, type, endpoint, idempotencyKey } = state.enrollment;
  const { publicKey } = state.keyPair;
  try {
    tools.progress(`enrolling ${name} at ${state.service.url}`);
    const service = await tools.connect(state.service);
    const identity = state.identity?.key;
    const secretTag = ownTag(state);
    const beside = { ...(identity && { identity }), ...(secretTag !== null && { secretTag }) };
    const asked = { token, name, type, publicKey, endpoint, idempotencyKey, ...beside };
    const { peer, map, accessToken } = await service.enroll(asked);
    const joined = withMembership(state, { peer, map, accessToken, personalToken: null });
    await tools.store.write(joined);
    await refuseConflict(tools, joined);
    const sync = { mode: 'poll', lastSuccess: tools.now().toISOString(), error: null } as const;
    await tools.store.amendNotes(state.interface, { sync });
    return joined;
  } catch (error) {
    if (isNew && isHarmless(error)) await forget(tools, state);
    throw error;
  }
}

/** True when nothing can come of new keys, because nothing was done with them. Keys of an earlier attempt may be enrolled. */
function isHarmless(error: unknown): boolean {
  if (error instanceof Refused) return !error.repeated;
  return error instanceof InvalidValue || (error instanceof Unreachable && !error.delivered);
}

/** Keeps a person's token where the host has none of its own, and says where there is none at all. */
async function lend(tools: Tools, state: Joined, personalToken: Secret | null): Promise<Joined> {
  const { membership } = state;
  const isNeeded = membership.accessToken === null && personalToken !== null;
  const lent: Joined = isNeeded ? { ...state, membership: { ...membership, personalToken } } : state;
  if (isNeeded) await tools.store.write(lent);
  const local = explainLocal(lent);
  if (local !== null) tools.warn(local);
  return lent;
}

async function bringUp(tools: Tools, state: Joined): Promise<Joined> {
  const located: Joined = { ...state, resolved: await resolveNames(tools, state) };
  const planned = await survey(tools, located);
  const trouble = explainHosts(planned.desired, planned.actual);
  if (trouble !== null) tools.warn(new NotNamed(state.interface, trouble).message);
  tools.progress(`bringing ${state.interface} up as ${state.membership.peer.address}`);
  await tools.store.write(located);
  try {
    const applied = await apply(tools, planned, located);
    await save(tools, applied, located, planned);
    return applied;
  } catch (error) {
    // A tunnel that was there before is somebody's connection: better half changed than gone.
    const isNew = planned.actual.link === null;
    if (isNew) await takeBack(tools, (await tools.store.read(state.interface)) ?? located);
    throw error;
  }
}

function makeIdempotencyKey(tools: Tools): string {
  return Buffer.from(tools.random(16)).toString('hex');
}
