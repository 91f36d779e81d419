import type { Peer } from '../../../contract/peer.ts';
import type { ReachablePairs } from '../../../contract/rules.ts';
import { readPort } from '../rules/draft.ts';

/** The connections whose access is shown. */
export interface Traffic {
  readonly protocol: 'tcp' | 'udp' | 'icmp';
  /** As typed. ICMP has none. */
  readonly port: string;
}

/** Whether the rules let one peer reach another. Unknown if the list of pairs is not complete. */
export type AccessState = 'allowed' | 'denied' | 'unknown';

/** Each state has its own outline in a box of 16 by 16: a check mark, a bar and a dot. */
export const accessShapes: Readonly<Record<AccessState, string>> = {
  allowed: 'M1.5 8.5L4 6L6.5 8.5L12 3L14.5 5.5L6.5 13.5Z',
  denied: 'M2 6.5H14V9.5H2Z',
  unknown: 'M6.5 6.5H9.5V9.5H6.5Z',
};

/** The query of a request about these connections; null while the port is not valid. */
export function toTrafficQuery(
  { protocol, port }: Traffic,
  more: Readonly<Record<string, string>> = {},
): string | null {
  if (protocol === 'icmp') return new URLSearchParams({ ...more, protocol }).toString();
  const number = readPort(port);
  return number === null ? null : new URLSearchParams({ ...more, protocol, port: String(number) }).toString();
}

/** The text of the connections, as in `tcp 443`. */
export function describeTrafficOf({ protocol, port }: Traffic): string {
  return protocol === 'icmp' ? 'icmp' : `${protocol} ${port.trim()}`;
}

/** What the rules decide for pairs of peers. */
export interface AccessIndex {
  readonly isComplete: boolean;
  stateOf(from: Peer, to: Peer): AccessState;
  /** The rule that allows; null in an open network, and for other pairs. */
  ruleOf(from: Peer, to: Peer): string | null;
}

/** Indexes the pairs of a network by their selectors, which name peers. */
export function indexAccess({ pairs, complete }: ReachablePairs): AccessIndex {
  const rules = new Map<string, Map<string, string | null>>();
  for (const { from, to, rule } of pairs) rules.set(from, (rules.get(from) ?? new Map()).set(to, rule));
  const find = (from: Peer, to: Peer) => {
    for (const sender of [`peer:${from.name}`, 'any']) {
      for (const receiver of [`peer:${to.name}`, 'any']) {
        const rule = rules.get(sender)?.get(receiver);
        if (rule !== undefined) return rule;
      }
    }
    return undefined;
  };
  return {
    isComplete: complete,
    stateOf(from, to) {
      if (find(from, to) !== undefined) return 'allowed';
      return complete ? 'denied' : 'unknown';
    },
    ruleOf: (from, to) => find(from, to) ?? null,
  };
}

/** Names a cell for screen readers and for the pointer, with the rule that allows. */
export function describeCell(index: AccessIndex, from: Peer, to: Peer): string {
  const rule = index.ruleOf(from, to);
  return `${from.name} to ${to.name}: ${index.stateOf(from, to)}${rule === null ? '' : ` by ${rule}`}`;
}
