import { createHash } from 'node:crypto';
import type { PeerType } from '../contract/peer.ts';
import type { Endpoint } from '../core/endpoint.ts';
import { InvalidValue, Refused, Unreachable, WrongUsage } from '../core/errors.ts';
import { makeKeyPair } from '../core/keys.ts';
import type { Options, ServiceAddress } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';
import type { Joined, State } from '../store/state.ts';
import { apply, save } from './apply.ts';
import { awaitHandshake } from './await-handshake.ts';
import { chooseInterface } from './choose-interface.ts';
import { forget, removeFromService } from './leave.ts';
import { amendNotes } from './notes.ts';
import { findOwnEndpoint } from './own-endpoint.ts';
import { resolveNames } from './resolve.ts';
import { isJoined, refuseUnreadable } from './select.ts';
import { survey } from './survey.ts';
import { takeBack } from './take-back.ts';
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
  /** Milliseconds to wait for a first handshake; null for the usual time. */
  readonly patience: number | null;
}

export interface JoinReport {
  readonly state: Joined;
  /** Whether a peer answered; null where nobody could be dialled. */
  readonly handshake: boolean | null;
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
    return bringUp(tools, isJoined(begun) ? begun : await enroll(tools, begun, request.token, isNew));
  });
  return { state, handshake: await awaitHandshake(tools, state, request.patience) };
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
  const { name, type, options, service } = request;
  if (earlier) {
    tools.progress(`going on with the join of ${earlier.interface}`);
    const begun: State = { ...earlier, service, options: fixPort(options, earlier.enrollment.endpoint), enabled: true };
    await tools.store.write(begun);
    return { begun, isNew: false };
  }
  const link = await chooseInterface(tools, request.interface, states);
  const endpoint = await findOwnEndpoint(tools, request);
  const folders = await tools.store.prepare();
  tools.progress('making the key pair');
  const begun: State = {
    interface: link,
    createdAt: tools.now().toISOString(),
    keyPair: makeKeyPair(tools.random(32)),
    service,
    enrollment: { idempotencyKey: makeIdempotencyKey(tools), tokenHash, name, type, endpoint },
    membership: null,
    options: fixPort(options, endpoint),
    enabled: true,
    resolved: {},
    refused: null,
    receipt: folders.map((path) => ({ made: 'folder', path })),
  };
  await tools.store.write(begun);
  return { begun, isNew: true };
}

/** A host that is to be dialled at an endpoint listens on its port, unless it is told another: a router may map one to the other. */
function fixPort(options: Options, endpoint: Endpoint | null): Options {
  return { ...options, listenPort: options.listenPort ?? endpoint?.port ?? null };
}

async function enroll(tools: Tools, state: State, token: Secret, isNew: boolean): Promise<Joined> {
  const { name, type, endpoint, idempotencyKey } = state.enrollment;
  const { publicKey } = state.keyPair;
  try {
    tools.progress(`enrolling ${name} at ${state.service.url}`);
    const service = await tools.connect(state.service);
    const { peer, map, accessToken } = await service.enroll({ token, name, type, publicKey, endpoint, idempotencyKey });
    const joined: Joined = { ...state, membership: { peer, map, accessToken } };
    await tools.store.write(joined);
    await refuseTwin(tools, joined);
    const sync = { mode: 'poll', lastSuccess: tools.now().toISOString(), error: null } as const;
    await amendNotes(tools, state.interface, { sync });
    return joined;
  } catch (error) {
    if (isNew && isHarmless(error)) await forget(tools, state);
    throw error;
  }
}

/** A host is in a network once: a second time, through another key, is undone at once. */
async function refuseTwin(tools: Tools, state: Joined): Promise<void> {
  const { map } = state.membership;
  const twin = (await tools.store.list()).states.find(
    ({ interface: link, service, membership }) =>
      link !== state.interface && service.url === state.service.url && membership?.map.id === map.id,
  );
  if (!twin) return;
  await removeFromService(tools, state);
  await forget(tools, state);
  throw new WrongUsage(
    `this host is in network ${map.name} already, as ${twin.interface}; "cpn leave ${twin.interface}" first`,
  );
}

/** True when nothing can come of new keys, because nothing was done with them. Keys of an earlier attempt may be enrolled. */
function isHarmless(error: unknown): boolean {
  if (error instanceof Refused) return !error.repeated;
  return error instanceof InvalidValue || (error instanceof Unreachable && !error.delivered);
}

async function bringUp(tools: Tools, state: Joined): Promise<Joined> {
  const located: Joined = { ...state, resolved: await resolveNames(tools, state) };
  const planned = await survey(tools, located);
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
