import {
  addressesOf,
  mergeAddresses,
  type Resolved,
  withoutCarried,
  withoutExpired,
} from '../../core/names/resolved-names.ts';
import { type Address, isDefaultRoute, type Prefix, parseAddress } from '../../core/net/cidr.ts';
import { dialledHost } from '../../core/net/proxy.ts';
import type { Joined } from '../../store/state/state.ts';
import type { HostTools, Tools } from '../tools.ts';
import { parseSaved } from './saved-config.ts';

/** How long a name may take to resolve, in milliseconds. A resolver that is down must not hold up a pass. */
export const resolveDeadline = 3_000;

/** The names that a network cannot do without: those of its peers' endpoints, and of its control plane or the proxy to it. */
export function namesOf(state: Joined): string[] {
  const hosts = state.membership.map.peers.flatMap((peer) => peer.endpoint?.host ?? []);
  return [...new Set([...hosts, apiHostOf(state)])].filter(isName);
}

export interface ResolveOptions {
  /** The names to resolve; all by default. */
  readonly some?: ReadonlySet<string>;
  /** Names that take the order of the answer: this host moved, and none of their peers is in use. */
  readonly sorted?: ReadonlySet<string>;
  readonly onAnswer?: (name: string, addresses: readonly Address[]) => void;
}

/**
 * What is known of the network's names after asking this host's resolver for some of them, all by default; a name without an
 * answer keeps its last addresses. Returns `state.resolved` itself where nothing is new.
 */
export async function resolveNames(
  tools: HostTools,
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
 * The addresses of the control plane's name without those that it no longer has. Each of them costs the routes that cover it, so one
 * is kept beyond the resolver's word only where the service answered at it last. Until it answered, all are kept.
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
  // A peer's endpoint that changes away from an address that its name no longer has looks like one that the network moved.
  const inUse = isDialled ? addressesOf(name, state.resolved).slice(0, 1) : [];
  return withoutExpired(known, answer, [reached, ...inUse]);
}

/** What the tunnel carries, by its wg-quick file; a full tunnel carries endpoints past itself. */
async function findCarried(tools: Pick<Tools, 'store'>, { interface: link }: Joined): Promise<readonly Prefix[]> {
  const saved = parseSaved(link, await tools.store.readConfig(link));
  return saved?.peers.flatMap(({ allowedIps }) => allowedIps.filter((prefix) => !isDefaultRoute(prefix))) ?? [];
}

/** The addresses at which this host reaches the control plane, as far as they are known: those of the proxy, where there is one. */
export function locateApi(state: Joined): readonly Address[] {
  const host = apiHostOf(state);
  return isName(host) ? addressesOf(host, state.resolved) : [parseAddress(host)];
}

function apiHostOf({ service }: Joined): string {
  return dialledHost(service);
}

function isName(host: string): boolean {
  return !/^[0-9.]+$|:/.test(host);
}
