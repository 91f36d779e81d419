import { CpnError } from '../../core/errors/index.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import type { Joined } from '../../store/state/state.ts';
import { findServing } from '../lan/serving.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { selectJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/** Whether this host is the connector in service for a route. */
export interface ServingStatus {
  readonly route: Prefix;
  /** The interface of the network that has the route; null without one. */
  readonly interface: string | null;
  /** Why another host serves the route, or none; null if this host is in service. */
  readonly reason: string | null;
}

/**
 * Judges a route by the last state that the daemon saved, without requests to a control plane. Of
 * several networks with the route, one for which this host is in service counts.
 */
export async function readServing(tools: Tools, route: Prefix, network?: string): Promise<ServingStatus> {
  const { states, unreadable } = await selectJoined(tools, network);
  const having = states.filter(({ membership }) => membership.map.routes.includes(route));
  const found = await Promise.all(having.map((state) => readNetwork(tools, state, route)));
  const best = found.find(({ reason }) => reason === null) ?? found[0];
  if (best !== undefined) return best;
  const [unread] = unreadable;
  if (unread !== undefined) return { route, interface: unread.interface, reason: unread.error.message };
  return { route, interface: null, reason: 'no network that this host has joined has this route' };
}

async function readNetwork(tools: Tools, state: Joined, route: Prefix): Promise<ServingStatus> {
  const { interface: link } = state;
  try {
    const evaluation = await evaluateNetwork(tools, state, { acceptsUnread: true });
    const routes = findServing(evaluation, await tools.store.readNotes(link));
    const own = routes.find((each) => each.route === route);
    return { route, interface: link, reason: own === undefined ? 'this host does not serve it' : own.standby };
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return { route, interface: link, reason: error.message };
  }
}
