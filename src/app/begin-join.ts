import { createHash } from 'node:crypto';
import type { PeerType } from '../contract/peer.ts';
import type { Prefix } from '../core/cidr.ts';
import { type Endpoint, formatEndpoint } from '../core/endpoint.ts';
import { PortTaken, WrongUsage } from '../core/errors.ts';
import { makeIdentity } from '../core/identity.ts';
import { makeKeyPair } from '../core/keys.ts';
import type { Options, ServiceAddress } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';
import type { State } from '../store/state.ts';
import { lend } from './access.ts';
import { chooseInterface } from './choose-interface.ts';
import { isRemoved, refuseRemoved } from './is-removed.ts';
import { fixPort, keepOptions, type Named } from './kept-options.ts';
import { forget } from './leave.ts';
import { findDisallowed } from './option-changes.ts';
import { findOwnEndpoint } from './own-endpoint.ts';
import { withOptions } from './pins.ts';
import { isJoined, refuseUnreadable } from './select.ts';
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
  /** What of this was asked for, and does not only have its usual value. */
  readonly named: ReadonlySet<Named>;
  /** The bytes in base64 that all hosts of the network are to have, and its control plane not; null for none. */
  readonly networkSecret: Secret | null;
  /** A person's token to follow the network with, where the service gives this host none of its own. */
  readonly personalToken: Secret | null;
  /** Nobody is there to decide: a service manager or the like joins this host. */
  readonly isUnattended: boolean;
  /** Milliseconds to wait for a first handshake; null for the usual time. */
  readonly patience: number | null;
}

/** A join that has a state on disk. */
interface Begun {
  readonly begun: State;
  /** What an earlier join left on disk; null for a new one. */
  readonly before: State | null;
  /** Prefixes that `--allow-route` named in the earlier join, and does not in this one. */
  readonly disallowed: readonly Prefix[];
}

/** The state of an earlier, unfinished or finished join with this key, with the options now asked for; else a new one. */
export async function beginJoin(tools: Tools, request: JoinRequest): Promise<Begun> {
  const tokenHash = createHash('sha256').update(request.token.reveal()).digest('hex');
  const { states, unreadable } = await tools.store.list();
  // This very key may have been used by it: a second time it would make a second peer.
  refuseUnreadable(unreadable);
  const [earlier, ...leftovers] = states
    .filter(({ enrollment, service }) => enrollment.tokenHash === tokenHash && service.url === request.service.url)
    .toSorted((one, other) => (one.createdAt < other.createdAt ? -1 : 1));
  // A crash left them, after the membership came to its place.
  for (const each of leftovers) await forget(tools, await takeBack(tools, each));
  if (earlier && request.interface !== null && request.interface !== earlier.interface) {
    throw new WrongUsage(
      `this key has joined as ${earlier.interface} already; leave out --interface, or "cpn leave ${earlier.interface}" first`,
    );
  }
  const { name, type, options, service, networkSecret } = request;
  if (earlier) {
    await refuseOther(tools, earlier, request);
    tools.progress(`going on with the join of ${earlier.interface}`);
    const kept = keepOptions(earlier, request, earlier.enrollment.endpoint);
    const begun: State = {
      ...withOptions(earlier, kept.options),
      service,
      networkSecret: kept.networkSecret,
      enabled: true,
    };
    if (isJoined(earlier)) await refuseRemoved(tools, lend(earlier, request.personalToken));
    else await refusePort(tools, begun, states);
    await tools.store.write(begun);
    // What probes told that are no more would otherwise hold for ever.
    if (request.named.has('probes')) await tools.store.amendNotes(begun.interface, { dead: [], probed: {} });
    return { begun, before: earlier, disallowed: findDisallowed(earlier, begun) };
  }
  // One that is of a membership which ended is free for the next one in the same network.
  const holder = states.filter(isJoined).find((state) => state.interface === request.interface);
  const isEnded = holder?.service.url === service.url && (await isRemoved(tools, holder));
  const link = await chooseInterface(tools, isEnded ? null : request.interface, states);
  const endpoint = await findOwnEndpoint(tools, request);
  const fixed = fixPort(options, endpoint);
  const portFlag = options.listenPort === null ? '--endpoint' : '--listen-port';
  await refusePort(tools, { interface: link, service, options: fixed }, states, portFlag);
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
    // Where the description cannot be read now, what the service described before holds: else nothing would prove or repeat a request.
    features: states.find((state) => state.service.url === service.url && state.features !== null)?.features ?? null,
    perhapsEnrolled: false,
    enrollment: { idempotencyKey: makeIdempotencyKey(tools), tokenHash, name, type, endpoint },
    membership: null,
    options: fixed,
    enabled: true,
    resolved: {},
    refused: null,
    failed: [],
    pathMtu: null,
    drained: false,
    pins: [],
    labels: [],
    receipt: folders.map((path) => ({ made: 'folder', path })),
  };
  await tools.store.write(begun);
  return { begun, before: null, disallowed: [] };
}

/** Milliseconds between two attempts, as a tunnel in user space that was just removed releases its port a moment later. */
const portPause = 200;
const portAttempts = 5;

/**
 * Refuses a listen port that is in use, before a use of the key is taken. A membership that ended makes way for the next one in
 * the same network, and so does its port.
 *
 * @throws PortTaken
 */
async function refusePort(
  tools: Tools,
  { interface: link, service, options: { listenPort: port } }: Pick<State, 'interface' | 'service' | 'options'>,
  states: readonly State[],
  flag?: '--endpoint' | '--listen-port',
): Promise<void> {
  if (port === null || (await tools.host.isPortFree(port))) return;
  const holder = states.filter(isJoined).find((state) => state.options.listenPort === port);
  if (holder?.service.url === service.url && (await isRemoved(tools, holder))) return;
  for (let attempt = 0; attempt < portAttempts; attempt += 1) {
    await tools.sleep(portPause);
    if (await tools.host.isPortFree(port)) return;
  }
  throw new PortTaken(link, port, undefined, flag);
}

/**
 * The control plane has the name, type and endpoint of a join that has begun. A repeated join does not change them.
 *
 * @throws WrongUsage where the request names another value
 */
async function refuseOther(tools: Tools, earlier: State, request: JoinRequest): Promise<void> {
  const { interface: link, enrollment } = earlier;
  const { named } = request;
  const refuse = (flag: string, given: string, present: string) => {
    if (given === present) return;
    const isSettable = isJoined(earlier) && flag !== '--type';
    const remedy = isSettable
      ? `"cpn set ${link} ${flag} ${given}" changes it`
      : `to change it, "cpn leave ${link}" and join with a new key`;
    throw new WrongUsage(
      `the join of ${link} with this key has ${flag} ${present}, not ${given}; leave out ${flag}; ${remedy}`,
    );
  };
  if (named.has('type')) refuse('--type', request.type, enrollment.type);
  if (named.has('name')) refuse('--name', request.name, enrollment.name);
  if (!named.has('endpoint')) return;
  const { options } = keepOptions(earlier, request, enrollment.endpoint);
  const endpoint = await findOwnEndpoint(tools, { ...request, options });
  refuse('--endpoint', describeEndpoint(endpoint), describeEndpoint(enrollment.endpoint));
}

function describeEndpoint(endpoint: Endpoint | null): string {
  return endpoint === null ? 'none' : formatEndpoint(endpoint);
}

function makeIdempotencyKey(tools: Tools): string {
  return Buffer.from(tools.random(16)).toString('hex');
}
