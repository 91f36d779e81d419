import { CpnError } from '../../core/errors/index.ts';
import { describeDrop, describeInbound } from '../../core/forward/describe-drop.ts';
import type { ForeignDrops } from '../../core/forward/foreign-drops.ts';
import { inboundPaths } from '../../core/forward/inbound-path.ts';
import { forwardPaths } from '../../core/forward/path.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import type { Tools } from '../tools.ts';

/** What packet rules of other programs drop that this network needs. */
export interface Drops {
  /** What this connector is there to forward: a sentence each. */
  readonly forward: readonly string[];
  /** What other hosts send to the listen port of this one. */
  readonly inbound: ForeignDrops['inbound'];
}

const noDrops: Drops = { forward: [], inbound: null };

/**
 * Finds what the packet rules of other programs drop; looks only where this host forwards, or where other hosts dial it.
 * It costs a process, for which reason an evaluation holds none of it.
 *
 * @throws CpnError where the rules of this host cannot be read
 */
export async function findDrops(
  tools: Tools,
  { state, desired, actual }: Pick<Evaluation, 'state' | 'desired' | 'actual'>,
  look: 'at connectors' | 'at all' = 'at all',
): Promise<Drops> {
  const { map } = state.membership;
  const self = findOwnPeer(map, state);
  if (self === undefined) return noDrops;
  const { surroundings, device } = actual;
  const { link, isConnector } = desired;
  const ways = {
    forward: isConnector ? forwardPaths({ link, map, self, surroundings }) : [],
    inbound: inboundPaths({ self, device, listenPort: state.options.listenPort, surroundings }),
  };
  const count = ways.forward.length + (isConnector || look === 'at all' ? ways.inbound.length : 0);
  if (count === 0 || !tools.host.foreignDrops) return noDrops;
  const { forward, inbound } = await tools.host.foreignDrops(link, ways);
  return { forward: forward.map(describeDrop), inbound };
}

/**
 * Warns where another program's packet rules drop packets to the listen port, and notes it for "cpn status". Where the rules
 * cannot be read, it does nothing: "cpn doctor" reports that.
 */
export async function checkInbound(
  tools: Tools,
  evaluation: Pick<Evaluation, 'state' | 'desired' | 'actual'>,
): Promise<void> {
  const { interface: link } = evaluation.state;
  try {
    const { inbound } = await findDrops(tools, evaluation);
    await tools.store.amendNotes(link, { inboundDropped: inbound !== null });
    if (inbound !== null) tools.warn(describeInbound(inbound, link));
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
  }
}
