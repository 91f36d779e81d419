import type { ServiceSocket } from '../../../core/forward/access-filter.ts';
import {
  addressesOf,
  mergeAddresses,
  type Resolved,
  withoutCarried,
  withoutExpired,
} from '../../../core/names/resolved-names.ts';
import { type Address, isDefaultRoute, type Prefix, parseAddress } from '../../../core/net/cidr.ts';
import { isLoopback } from '../../../core/net/endpoint.ts';
import { dialledHost, dialledPort, hostOf, proxyOf } from '../../../core/net/proxy.ts';
import { isSocketAddress } from '../../../core/net/socket-path.ts';
import type { Joined } from '../../../store/state/state.ts';
import type { Tools } from '../../tools.ts';

/** Milliseconds for the resolution of a name. A resolver that is down must not delay a pass. */
export const resolveDeadline = 3_000;

/** Returns the names of the peers' endpoints, and of the control plane or its proxy. */
export function namesOf(state: Joined): string[] {
  const hosts = state.membership.map.peers.flatMap((peer) => peer.endpoint?.host ?? []);
  return [...new Set([...hosts, apiHostOf(state)])].filter(isName);
}

/** Returns the names of the control plane and its proxy, which resolves the former. */
export function serviceNames(state: Joined): string[] {
  const host = isSocketAddress(state.service.url) ? [] : [hostOf(state.service.url)];
  return [...new Set([apiHostOf(state), ...host])].filter(isName);
}

/**
 * Returns the names that must resolve outside the tunnel: those of the service, and the endpoints
 * of connectors. Any other peer may choose the name of its endpoint.
 */
export function neededNames(state: Joined): string[] {
  const connectors = state.membership.map.peers.filter(({ type }) => type === 'connector');
  const dialled = connectors.flatMap(({ endpoint }) => endpoint?.host ?? []);
  return [...new Set([...serviceNames(state), ...dialled])].filter(isName);
}

export interface ResolveOptions {
  /** The names to resolve; all by default. */
  readonly some?: ReadonlySet<string>;
  /** Names that take the reply's order: this host moved, and none of their peers is in use. */
  readonly sorted?: ReadonlySet<string>;
  readonly onAnswer?: (name: string, addresses: readonly Address[]) => void;
}

/**
 * Queries some names, all by default, and returns the addresses of each. A name without a reply
 * keeps its addresses. Returns `state.resolved` itself if nothing changed.
 */
export async function resolveNames(
  tools: Pick<Tools, 'host' | 'store' | 'savedConfigs'>,
  state: Joined,
  { some, sorted, onAnswer }: ResolveOptions = {},
): Promise<Resolved> {
  const names = namesOf(state);
  const { resolved: known } = state;
  const entries = await Promise.all(
    names.map(async (name): Promise<[string, readonly Address[]]> => {
      const before = addressesOf(name, known);
      if (some && !some.has(name)) return [name, before];
      const answer = await tools.host.resolve(name, resolveDeadline);
      if (answer.length > 0) onAnswer?.(name, answer);
      const isKnown = answer.every((address) => before.includes(address));
      const usable = isKnown ? answer : withoutCarried(before, answer, await findCarried(tools, state));
      const merged = mergeAddresses(before, usable, sorted?.has(name));
      return [name, name === apiHostOf(state) ? await withoutFormer(tools, state, merged, usable) : merged];
    }),
  );
  const resolved = entries.filter(([, addresses]) => addresses.length > 0);
  const same = resolved.length === Object.keys(known).length && resolved.every(([name, each]) => known[name] === each);
  return same ? known : Object.fromEntries(resolved);
}

/**
 * Removes former addresses of the control plane, because each costs the routes that cover it. Keeps
 * the address of the last reply, and all addresses until the first reply.
 */
async function withoutFormer(
  tools: Pick<Tools, 'store'>,
  state: Joined,
  known: readonly Address[],
  answer: readonly Address[],
): Promise<readonly Address[]> {
  const { reached } = (await tools.store.readNotes(state.interface)).sync;
  if (reached === undefined) return known;
  const name = apiHostOf(state);
  const isDialled = state.membership.map.peers.some(({ endpoint }) => endpoint?.host === name);
  // Otherwise a peer's endpoint that leaves an address counts as moved by the network.
  const inUse = isDialled ? addressesOf(name, state.resolved).slice(0, 1) : [];
  return withoutExpired(known, answer, [reached, ...inUse]);
}

/** The prefixes in the tunnel's wg-quick file, without default routes: endpoints stay outside. */
async function findCarried(
  tools: Pick<Tools, 'store' | 'savedConfigs'>,
  { interface: link }: Joined,
): Promise<readonly Prefix[]> {
  const saved = await tools.savedConfigs.read(tools.store, link);
  return saved?.peers.flatMap(({ allowedIps }) => allowedIps.filter((prefix) => !isDefaultRoute(prefix))) ?? [];
}

/** Returns the known addresses of the control plane or, with a proxy, those of the proxy. */
export function locateApi(state: Joined): readonly Address[] {
  const host = apiHostOf(state);
  return isName(host) ? addressesOf(host, state.resolved) : [parseAddress(host)];
}

/**
 * The sockets of the control plane, as this host reaches it; none through a proxy, which leads
 * further. If it runs on this host, peers reach it at the tunnel address too. `own` lists the
 * addresses of this host.
 */
export function locateServices(state: Joined, own: readonly Address[]): readonly ServiceSocket[] {
  if (proxyOf(state.service) !== null) return [];
  const port = dialledPort(state.service);
  const found = locateApi(state);
  const isHere = found.some((address) => isLoopback(address) || own.includes(address));
  return [...found, ...(isHere ? [state.membership.peer.address] : [])].map((address) => ({ address, port }));
}

function apiHostOf({ service }: Joined): string {
  return dialledHost(service);
}

function isName(host: string): boolean {
  return !/^[0-9.]+$|:/.test(host);
}
