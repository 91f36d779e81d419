import type { Surroundings } from '../core/actual.ts';
import { type Address, maskPrefix, type Prefix, parseAddress } from '../core/cidr.ts';
import { locate } from '../core/desired.ts';
import { CpnError } from '../core/errors.ts';
import type { Ground } from '../core/guard.ts';
import { formatInterfaceAddress } from '../core/model.ts';
import { parseConfig } from '../core/wg-quick/parse.ts';
import type { Joined } from '../store/state.ts';
import type { Tools } from './tools.ts';

/** How long a name may take to resolve, in milliseconds. A resolver that is down must not hold up a pass. */
const resolveDeadline = 3_000;

/** Gathers what a route of this network must not take away from the host. */
export async function gatherGround(tools: Tools, state: Joined, surroundings: Surroundings): Promise<Ground> {
  const { map } = state.membership;
  const endpoints = map.peers.flatMap((peer) => locate(peer.endpoint, state.resolved)?.host ?? []);
  return {
    surroundings,
    api: await resolveApi(tools, state),
    endpoints,
    taken: await readTaken(tools, state),
    allowed: state.options.allowRoutes,
  };
}

/** The state with the names of its peers' endpoints resolved anew; a name that does not resolve keeps its last address. */
export async function resolveEndpoints(tools: Tools, state: Joined): Promise<Joined> {
  const { map } = state.membership;
  const hosts = map.peers.flatMap((peer) => peer.endpoint?.host ?? []);
  const names = new Set(hosts.filter(isName));
  if (names.size === 0) return state;
  const resolved = await Promise.all(
    [...names].map(async (name) => [name, await resolveKeeping(tools, name, state.resolved[name])] as const),
  );
  return {
    ...state,
    resolved: Object.fromEntries(resolved.flatMap(([name, address]) => (address ? [[name, address]] : []))),
  };
}

async function resolveKeeping(tools: Tools, name: string, known: Address | undefined): Promise<Address | undefined> {
  const addresses = await tools.host.resolve(name, resolveDeadline);
  // One of several addresses is as good as another; changing between them would look like drift.
  return known !== undefined && addresses.includes(known) ? known : (addresses[0] ?? known);
}

async function resolveApi(tools: Tools, state: Joined): Promise<readonly Address[]> {
  const host = new URL(state.service.url).hostname.replace(/^\[|\]$/g, '');
  return isName(host) ? tools.host.resolve(host, resolveDeadline) : [parseAddress(host)];
}

/** The prefixes that networks joined before this one have in their wg-quick files. */
async function readTaken(tools: Tools, state: Joined): Promise<{ prefix: Prefix; by: string }[]> {
  const earlier = (await tools.store.list()).filter(
    (other) => other.interface !== state.interface && other.enabled && other.createdAt < state.createdAt,
  );
  const taken = await Promise.all(
    earlier.map(async (other) => {
      const by = `network ${other.membership?.map.name ?? '?'} (${other.interface})`;
      return (await readPrefixes(tools, other.interface)).map((prefix) => ({ prefix, by }));
    }),
  );
  return taken.flat();
}

async function readPrefixes(tools: Tools, link: string): Promise<Prefix[]> {
  const text = await tools.store.readConfig(link);
  if (text === null) return [];
  try {
    const { address, peers } = parseConfig(text);
    return [maskPrefix(formatInterfaceAddress(address)), ...peers.flatMap((peer) => peer.allowedIps)];
  } catch (error) {
    // A file that somebody edited is that network's trouble, not this one's.
    if (error instanceof CpnError) return [];
    throw error;
  }
}

function isName(host: string): boolean {
  return !/^[0-9.]+$|:/.test(host);
}
