import type { Actual, Surroundings } from '../core/actual.ts';
import { maskPrefix, type Prefix } from '../core/cidr.ts';
import type { Ground } from '../core/guard.ts';
import { acceptedBy, findWays } from '../core/inside.ts';
import { keepSame, sameList } from '../core/keep-same.ts';
import { formatInterfaceAddress, type TunnelConfig } from '../core/model.ts';
import { perObject } from '../core/per-object.ts';
import type { Joined, State } from '../store/state.ts';
import { locateApi } from './resolve.ts';
import { parseSaved } from './saved-config.ts';
import type { Tools } from './tools.ts';

/** What is known of a tunnel beside its state. */
interface Known {
  /** The last-known-good wg-quick file; null where there is none, or one that cpn would not write. */
  readonly saved: TunnelConfig | null;
  /** Prefixes that `--allow-route` named before, and no longer does: that they lead into the tunnel is no reason to accept them. */
  readonly disallowed?: readonly Prefix[];
}

/** Gathers what a route of this network must not take away from the host. */
export async function gatherGround(
  tools: Tools,
  state: Joined,
  actual: Pick<Actual, 'link' | 'routes' | 'surroundings'>,
  states: readonly State[],
  { saved, disallowed = [] }: Known,
): Promise<Ground> {
  const later = states.filter((other) => other.createdAt > state.createdAt).map((other) => other.interface);
  const { map, peer } = state.membership;
  const isBelieved = (prefix: Prefix) => !disallowed.includes(prefix);
  return {
    surroundings: without(actual.surroundings)(later),
    api: locateApi(state),
    inside: {
      range: map.cidr,
      own: peer.address,
      ways: findWays(actual, later).filter(isBelieved),
      accepted: saved === null ? [] : acceptedBy(saved).filter(isBelieved),
    },
    taken: await readTaken(tools, state, states),
    later,
    allowed: state.options.allowRoutes,
  };
}

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
  // An edited file is the trouble of its own network.
  const config = parseSaved(link, await tools.store.readConfig(link));
  if (config === null) return [];
  return [maskPrefix(formatInterfaceAddress(config.address)), ...config.peers.flatMap((peer) => peer.allowedIps)];
}
