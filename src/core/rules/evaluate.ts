import type { Flow, Rule, Selector } from '../map/access-rules.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import { type Address, covers, type Prefix } from '../net/cidr.ts';
import { enforcementIn } from './enforcement.ts';

/** What decides on a flow. */
export type Decision =
  | { readonly allowed: true; readonly by: 'open' | 'always' }
  | { readonly allowed: true; readonly by: 'rule'; readonly rule: Rule }
  | { readonly allowed: false; readonly by: 'closed' | 'unenforced' };

/**
 * Peers probe this port: discard (RFC 863) is rarely open, and a reset proves as much as a
 * connection. Hosts of a closed network answer it with a reset.
 */
export const probedPort = 9;

/** The part of a map that rules depend on. */
export type RuledNetwork = Pick<NetworkMap, 'cidr' | 'peers' | 'rules'>;

/**
 * Decides whether a flow is allowed. This function defines what rules mean: packet filters of
 * hosts, previews and explanations must agree with it.
 *
 * Never filtered are ICMP echo and TCP 9 between peers: with them hosts find out who is reachable.
 */
export function evaluate({ cidr, peers, rules }: RuledNetwork, flow: Flow): Decision {
  if (rules === undefined) return { allowed: true, by: 'open' };
  const receiver = peers.find((peer) => peer.address === flow.to);
  if (isProbe(flow) && covers(cidr, flow.from) && covers(cidr, flow.to)) return { allowed: true, by: 'always' };
  if (rules.requiresEnforcement && receiver && enforcementIn({ peers })(receiver) === 'nothing') {
    return { allowed: false, by: 'unenforced' };
  }
  const rule = rulesBetween({ cidr, peers, rules }, flow.from, flow.to).find((each) => admits(each, flow));
  return rule === undefined ? { allowed: false, by: 'closed' } : { allowed: true, by: 'rule', rule };
}

/** The rules that select these ends, for whatever protocol and port. */
export function rulesBetween({ cidr, peers, rules }: RuledNetwork, from: Address, to: Address): readonly Rule[] {
  const peerAt = (address: Address) => peers.find((peer) => peer.address === address);
  const [sender, receiver] = [peerAt(from), peerAt(to)];
  return (rules?.rules ?? []).filter(
    (rule) =>
      rule.from.some((selector) => selects(selector, from, sender, cidr)) &&
      rule.to.some((selector) => selects(selector, to, receiver, cidr)),
  );
}

/** A route selects no address of the network's own range: those are its peers'. */
function selects(selector: Selector, address: Address, peer: Peer | undefined, range: Prefix): boolean {
  switch (selector.kind) {
    case 'any':
      return true;
    case 'peer':
      return peer !== undefined && `${peer.id}` === `${selector.id}`;
    case 'tag':
      return peer?.tags?.includes(selector.tag) ?? false;
    case 'route':
    case 'cidr':
      return covers(selector.prefix, address) && !covers(range, address);
    case 'gone':
      return false;
  }
}

function admits({ protocol, ports }: Rule, flow: Flow): boolean {
  if (protocol !== 'any' && protocol !== flow.protocol) return false;
  const { port } = flow;
  return ports.length === 0 || (port !== null && ports.some(({ first, last }) => first <= port && port <= last));
}

function isProbe({ protocol, port, isEcho }: Flow): boolean {
  return isEcho === true || (protocol === 'tcp' && port === probedPort);
}
