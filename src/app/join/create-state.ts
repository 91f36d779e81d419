import { makeIdentity } from '../../core/crypto/identity.ts';
import { makeKeyPair } from '../../core/crypto/keys.ts';
import { NotOurs, PortTaken, WrongUsage } from '../../core/errors/index.ts';
import type { State } from '../../store/state/state.ts';
import { findOwnEndpoint } from '../networks/own-endpoint.ts';
import { refuseUnfixedPort } from '../reconcile/open-ports.ts';
import { awaitFreePort, findPortHolder } from '../reconcile/port-conflict.ts';
import { isJoined } from '../select.ts';
import type { HostTools, Tools } from '../tools.ts';
import { isRemoved } from './check-membership.ts';
import { hashToken, type JoinRequest, type PendingJoin } from './join-request.ts';
import { fixPort } from './kept-options.ts';

/** Creates the state of a new join, with new keys, and saves it. */
export async function createState(tools: Tools, request: JoinRequest, states: readonly State[]): Promise<PendingJoin> {
  const { name, type, options, service, networkSecret } = request;
  // A membership that ended releases its interface to the next one in the same network.
  const holder = states.filter(isJoined).find((state) => state.interface === request.interface);
  const isEnded = holder?.service.url === service.url && (await isRemoved(tools, holder));
  const link = await chooseInterface(tools, isEnded ? null : request.interface, states);
  const endpoint = await findOwnEndpoint(tools, request);
  const fixed = fixPort(options, endpoint);
  refuseUnfixedPort(fixed);
  const portFlag = options.listenPort === null ? '--endpoint' : '--listen-port';
  await checkPort(tools, { interface: link, service, options: fixed }, states, portFlag);
  const folders = await tools.store.prepare();
  tools.progress('making the key pair');
  const now = tools.now().toISOString();
  const idempotencyKey = Buffer.from(tools.random(16)).toString('hex');
  const state: State = {
    interface: link,
    createdAt: now,
    keyPair: makeKeyPair(tools.random(32)),
    keySince: now,
    keySerial: 0,
    identity: makeIdentity(tools.random(32)),
    rotation: null,
    networkSecret,
    service,
    // Without a readable description, earlier features decide if a request is proved and repeated.
    features: states.find((other) => other.service.url === service.url && other.features !== null)?.features ?? null,
    perhapsEnrolled: false,
    enrollment: { idempotencyKey, tokenHash: hashToken(request), name, type, endpoint },
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
    keptOutside: [],
    tunnelledResolvers: [],
    receipt: folders.map((path) => ({ made: 'folder', path })),
    openPorts: [],
  };
  await tools.store.write(state);
  return { state, before: null, disallowed: [] };
}

/** More tunnels than this on one host are a mistake. */
const mostInterfaces = 1000;

/** Returns the requested interface if it is free; without a request, the first free `cpnN`. */
async function chooseInterface(tools: HostTools, wanted: string | null, states: readonly State[]): Promise<string> {
  const links = await tools.host.links();
  const ours = new Set(states.map((state) => state.interface));
  if (wanted !== null) {
    if (ours.has(wanted)) {
      throw new WrongUsage(
        `this host has joined as ${wanted} already; "cpn leave ${wanted}" first, or choose another with --interface`,
      );
    }
    if (links.has(wanted)) throw new NotOurs('the interface', wanted, 'choose another with --interface');
    if ((await tools.store.readConfig(wanted)) !== null) {
      throw new NotOurs('the file', tools.store.configPath(wanted), 'choose another --interface, or move it away');
    }
    const socket = (await tools.host.foreignSocket?.(wanted)) ?? null;
    if (socket !== null) throw new NotOurs('the control socket', socket, 'choose another with --interface');
    return wanted;
  }
  for (let number = 0; number < mostInterfaces; number += 1) {
    const name = `cpn${number}`;
    if (ours.has(name) || links.has(name) || (await tools.store.readConfig(name)) !== null) continue;
    if (((await tools.host.foreignSocket?.(name)) ?? null) === null) return name;
  }
  throw new NotOurs('every interface from cpn0 to', `cpn${mostInterfaces - 1}`, 'choose one with --interface');
}

/**
 * Refuses a listen port that is in use, before the enrolment uses the key. A membership that ended
 * releases its port to the next one in the same network.
 *
 * @throws PortTaken
 */
export async function checkPort(
  tools: Tools,
  { interface: link, service, options: { listenPort: port } }: Pick<State, 'interface' | 'service' | 'options'>,
  states: readonly State[],
  flag?: '--endpoint' | '--listen-port',
): Promise<void> {
  if (port === null || (await tools.host.isPortFree(port))) return;
  const holder = states.filter(isJoined).find((state) => state.options.listenPort === port);
  if (holder?.service.url === service.url && (await isRemoved(tools, holder))) return;
  if (await awaitFreePort(tools, port)) return;
  const taken = { holder: await findPortHolder(tools, { interface: link }, port), ...(flag && { flag }) };
  throw new PortTaken(link, port, taken);
}
