import { describeDrop } from '../core/forward/describe-drop.ts';
import { forwardPaths } from '../core/forward/path.ts';
import { findOwnPeer } from '../core/own-peer.ts';
import type { Survey } from './survey.ts';
import type { Tools } from './tools.ts';

/**
 * Tells, a sentence each, what somebody else's packet rules drop that this connector is there to forward; nothing where it is no
 * connector. It costs a process, for which reason a survey holds none of it.
 *
 * @throws CpnError where the rules of this host cannot be read
 */
export async function findDrops(tools: Tools, { state, desired, actual }: Survey): Promise<readonly string[]> {
  const { map } = state.membership;
  const self = findOwnPeer(map, state);
  if (!desired.isConnector || self === undefined) return [];
  const { link } = desired;
  const paths = forwardPaths({ link, map, self, surroundings: actual.surroundings });
  return (await tools.host.forwardDrops(link, paths)).map(describeDrop);
}
