import { CpnError } from '../../core/errors/index.ts';
import { describeDrop, describeInbound, describeRemedy } from '../../core/forward/foreign/describe-drop.ts';
import type { Bypass } from '../../core/forward/foreign/find-bypasses.ts';
import type { ForwardDrop } from '../../core/forward/foreign/find-drops.ts';
import type { InboundDrop } from '../../core/forward/foreign/find-inbound-drop.ts';
import {
  type ForeignDrops,
  findDroppedRoutes,
  type PacketPaths,
  type UnreadRules,
} from '../../core/forward/foreign/foreign-drops.ts';
import { inboundPaths } from '../../core/forward/foreign/inbound-path.ts';
import { forwardPaths } from '../../core/forward/foreign/path.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { isDefaultRoute, type Prefix } from '../../core/net/cidr.ts';
import { type Problem, problem, toSentence } from '../../core/problems/problem.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import type { Tools } from '../tools.ts';

/** What packet rules of other programs drop although this network needs it. */
export interface Drops {
  /** Drops of packets that this connector must forward. */
  readonly forward: readonly ForwardDrop[];
  /** The routes to which no packet gets through, each with the reason. */
  readonly routes: ReadonlyMap<Prefix, string>;
  /** Packets of other hosts to the listen port of this host. */
  readonly inbound: ForeignDrops['inbound'];
  /** Rules that could not be read, and may drop more. */
  readonly unread: UnreadRules;
}

const nothingUnread: UnreadRules = { forward: [], inbound: [] };
const noDrops: Drops = { forward: [], routes: new Map(), inbound: null, unread: nothingUnread };

type Evaluated = Pick<Evaluation, 'state' | 'desired' | 'actual'>;

/** Returns the paths that foreign rules affect: through a connector, and to the dialled port. */
export function findPaths({ state, desired, actual }: Evaluated): PacketPaths {
  const { map } = state.membership;
  const self = findOwnPeer(map, state);
  if (self === undefined) return { forward: [], inbound: [] };
  const { underlay, device } = actual;
  const { link, isConnector } = desired;
  return {
    forward: isConnector ? forwardPaths({ link, map, self, underlay, options: state.options }) : [],
    inbound: inboundPaths({ self, device, listenPort: state.options.listenPort, underlay }),
  };
}

/**
 * Finds what packet rules of other programs drop. It reads them only if this host forwards, or if
 * other hosts dial it. It costs a process, so an evaluation does not include it.
 *
 * @throws CpnError if the rules of this host cannot be read
 */
export async function findDrops(
  tools: Pick<Tools, 'host'>,
  evaluation: Evaluated,
  look: 'at connectors' | 'at all' = 'at all',
): Promise<Drops> {
  const { link, isConnector } = evaluation.desired;
  const paths = findPaths(evaluation);
  const count = paths.forward.length + (isConnector || look === 'at all' ? paths.inbound.length : 0);
  if (count === 0 || !tools.host.foreignDrops) return noDrops;
  const { forward, inbound, unread = nothingUnread } = await tools.host.foreignDrops(link, paths);
  const routes = findDroppedRoutes(paths.forward, forward);
  return { forward, routes, inbound, unread };
}

/**
 * Finds rules of other programs that keep packets from the rules of a closed network. Null in an
 * open network, and on a host whose rules cannot be read.
 *
 * @throws CpnError if the rules of this host cannot be read
 */
export async function findBypasses(
  { host }: Pick<Tools, 'host'>,
  evaluation: Evaluated,
): Promise<readonly Bypass[] | null> {
  const { map } = evaluation.state.membership;
  if (map.rules === undefined || !host.foreignDrops) return null;
  const behind = findPaths(evaluation).forward.map(({ to }) => to);
  const inside = [map.cidr, ...map.routes, ...behind].filter((prefix) => !isDefaultRoute(prefix));
  const paths = { forward: [], inbound: [], inside: [...new Set(inside)] };
  return (await host.foreignDrops(evaluation.desired.link, paths)).bypasses ?? null;
}

/**
 * Warns if another program's packet rules drop packets to the listen port, and records it for "cpn
 * status". If the rules cannot be read, it does nothing: "cpn doctor" reports that.
 */
export async function checkInbound(
  tools: Pick<Tools, 'host' | 'store' | 'warn'>,
  evaluation: Evaluated,
): Promise<void> {
  const { interface: link } = evaluation.state;
  try {
    const { inbound } = await findDrops(tools, evaluation);
    await tools.store.amendNotes(link, { inboundDropped: inbound !== null });
    for (const dropped of findDropProblems(link, [], inbound)) tools.warn(toSentence(dropped));
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
  }
}

export function findDropProblems(
  link: string,
  forward: readonly ForwardDrop[],
  inbound: InboundDrop | null,
): Problem[] {
  return [
    ...forward.map((drop) =>
      problem('packets-dropped', { interface: link, drop: describeDrop(drop), command: drop.remedy }),
    ),
    ...(inbound === null
      ? []
      : [
          problem('packets-dropped', {
            interface: link,
            drop: describeInbound(inbound),
            command: describeRemedy(inbound, link),
          }),
        ]),
  ];
}
