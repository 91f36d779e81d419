import type { Rule } from '../map/access-rules.ts';
import type { Peer } from '../map/model.ts';
import { type Address, covers } from '../net/cidr.ts';
import { assignedRoutes } from '../routing/topology/route-owner.ts';
import { findOwnConnector } from '../routing/topology/via-connectors.ts';
import { type Decision, evaluate, rulesBetween } from '../rules/evaluate.ts';
import { areExcessive } from '../rules/resolve.ts';
import { formatPorts } from '../rules/selector.ts';
import { type Check, inconclusive, passes, stops } from './check.ts';
import { findOwner, type NetworkOnHost } from './view.ts';

/** The connection that is explained. Without a port, all that the rules allow is listed. */
export interface ExplainedFlow {
  readonly protocol: 'tcp' | 'udp' | 'icmp';
  readonly port: number | null;
}

/**
 * Checks whether the rules of a closed network allow a connection from this host to the address,
 * and names the hosts that decide. Empty in an open network.
 */
export function checkRules(address: Address, view: NetworkOnHost, flow: ExplainedFlow | null): Check[] {
  const { map } = view;
  if (map.rules === undefined) return [];
  const by = `decided at ${listPoints(address, view)}`;
  const self = map.peers.find((peer) => peer.address === view.address);
  if (self && areExcessive({ ...map, rules: map.rules }, self, assignedRoutes(map, self))) {
    const why = 'the rules select more pairs than this host can apply, so that it allows nothing';
    return [stops('rules', why, `an owner or admin can use fewer ports or tags: ${editCommand(view)}`)];
  }
  if (flow !== null && (flow.port !== null || flow.protocol === 'icmp')) {
    const { protocol, port } = flow;
    const decision = evaluate(map, { from: view.address, to: address, protocol, port, isEcho: protocol === 'icmp' });
    const what = port === null ? protocol : `${protocol} ${port}`;
    return [describeDecision(decision, what, by, view)];
  }
  const rules = rulesBetween(map, view.address, address).filter(
    ({ protocol }) => flow === null || protocol === 'any' || protocol === flow.protocol,
  );
  if (rules.length > 0) {
    const detail = `${rules.map(describeRule).join('; ')}; ${by}`;
    if (rules.some(({ protocol, ports }) => (flow !== null || protocol === 'any') && ports.length === 0))
      return [passes('rules', detail)];
    return [inconclusive('rules', detail, `it depends on the port; name it: cpn explain ${address} --port PORT`)];
  }
  return [
    stops('rules', `network ${map.name} is closed, and no rule allows this host to reach it; ${by}`, remedy(view)),
  ];
}

function describeDecision(decision: Decision, what: string, by: string, view: NetworkOnHost): Check {
  if (decision.allowed) {
    const why = decision.by === 'rule' ? `rule "${decision.rule.name}" allows ${what}` : `${what} is never filtered`;
    return passes('rules', `${why}; ${by}`);
  }
  const why =
    decision.by === 'unenforced'
      ? 'its host does not enforce rules, and the network requires that'
      : `no rule of the closed network allows ${what}`;
  return stops('rules', `${why}; ${by}`, remedy(view));
}

function editCommand({ map }: NetworkOnHost): string {
  return `cpn rules edit ${map.id ?? 'NETWORK'}`;
}

function remedy(view: NetworkOnHost): string {
  return `an owner or admin can allow it: ${editCommand(view)}`;
}

function describeRule({ name, protocol, ports }: Rule): string {
  const what = ports.length === 0 ? protocol : `${protocol} ${ports.map(formatPorts).join(', ')}`;
  return `rule "${name}" allows ${what === 'any' ? 'everything' : what}`;
}

/**
 * Names this host, and the one at the other end: the peer itself, or the connector of a route or of
 * a device.
 */
function listPoints(address: Address, { map, desired, address: own }: NetworkOnHost): string {
  const owner = covers(map.cidr, address) ? null : findOwner(address, desired.config.peers);
  const other = map.peers.find((peer) => peer.address === address || peer.publicKey === owner?.publicKey);
  const connector = other && !other.enforcesRules ? findOwnConnector(other, map) : null;
  const point = connector ?? other;
  return point === undefined || point.address === own ? 'this host' : `this host and ${describePoint(point)}`;
}

function describePoint({ name, enforcesRules }: Peer): string {
  return enforcesRules ? name : `${name}, which states no enforcement of rules`;
}
