import type { Surroundings } from '../core/actual.ts';
import { maskPrefix, type Prefix } from '../core/cidr.ts';
import { reachOutside } from '../core/desired.ts';
import { CpnError } from '../core/errors.ts';
import type { Ground } from '../core/guard.ts';
import { keepSame, sameList } from '../core/keep-same.ts';
import { formatInterfaceAddress } from '../core/model.ts';
import { perObject } from '../core/per-object.ts';
import { parseConfig } from '../core/wg-quick/parse.ts';
import type { Joined, State } from '../store/state.ts';
import { locateApi } from './resolve.ts';
import type { Tools } from './tools.ts';

/** Gathers what a route of this network must not take away from the host. */
export async function gatherGround(
  tools: Tools,
  state: Joined,
  surroundings: Surroundings,
  states: readonly State[],
): Promise<Ground> {
  const later = states.filter((other) => other.createdAt > state.createdAt).map((other) => other.interface);
  return {
    surroundings: without(surroundings)(later),
    api: locateApi(state),
    endpoints: endpointsOf(state),
    taken: await readTaken(tools, state, states),
    later,
    allowed: state.options.allowRoutes,
  };
}

const endpointsOf = perObject(({ membership: { map }, resolved }: Joined) =>
  map.peers.flatMap((peer) => reachOutside(peer.endpoint, { map, resolved })?.host ?? []),
);

/** The prefixes that networks joined before this one have in their wg-quick files. */
async function readTaken(
  tools: Tools,
  state: Joined,
  states: readonly State[],
): Promise<{ prefix: Prefix; by: string }[]> {
  const earlier = states.filter(
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

/** A network that was joined later is the one that stands back: its subnet and routes keep nothing away from this one. */
const without = perObject((surroundings: Surroundings) => {
  const keep = keepSame<readonly string[]>(sameList);
  const leaveOut = perObject((links: readonly string[]): Surroundings => {
    const isOther = ({ link }: { readonly link: string }) => !links.includes(link);
    const { connected, routed } = surroundings;
    return { ...surroundings, connected: connected.filter(isOther), routed: routed.filter(isOther) };
  });
  return (links: readonly string[]) => leaveOut(keep(links));
});

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
