import { printable } from '../errors/index.ts';
import type { Address } from '../net/cidr.ts';
import { formatEndpoint, isLiteral, type SocketEndpoint } from '../net/endpoint.ts';
import type { MappedNetwork } from './check-network.ts';
import { type Finding, noteFinding, okFinding } from './finding.ts';

/** The endpoint to which this host sends for a peer. */
interface UsedEndpoint {
  readonly name: string;
  /** The endpoint of the network, as the map has it; null if a peer has none. */
  readonly given: string | null;
  readonly used: SocketEndpoint;
}

/** Returns each peer's learned endpoint, or the configured one if WireGuard has none. */
export function findUsedEndpoints({ map, desired, actual }: MappedNetwork): readonly UsedEndpoint[] {
  const learned = new Map(actual.device?.peers.map((peer) => [peer.publicKey, peer.endpoint]));
  const peers = new Map(map.peers.map((peer) => [peer.publicKey, peer]));
  return desired.config.peers.flatMap(({ publicKey, endpoint }) => {
    const used = learned.get(publicKey) ?? endpoint;
    const peer = peers.get(publicKey);
    if (used === null || peer === undefined) return [];
    return [{ name: peer.name, given: peer.endpoint && formatEndpoint(peer.endpoint), used }];
  });
}

const mostNamed = 5;

/**
 * Peers at `unreachable` addresses, without a route outside the tunnel, are a note: they may dial
 * this host. If such a peer answered before, the status has the problem.
 */
export function checkEndpoints(mapped: MappedNetwork, unreachable: ReadonlySet<Address>): Finding[] {
  const { map, desired } = mapped;
  const checked = `the path to the endpoints of ${desired.link}`;
  const endpoints = findUsedEndpoints(mapped);
  if (endpoints.length === 0) return [];
  const cutOff = endpoints.filter(({ used }) => unreachable.has(used.host));
  if (cutOff.length === 0) return [okFinding('network', checked, 'there is a route to each')];
  const named = cutOff.slice(0, mostNamed).map(({ name, given, used }) => {
    const text = formatEndpoint(used);
    return `${name} (${given === null || given === text ? text : `${given}, at ${used.host}`})`;
  });
  const more = cutOff.length > named.length ? ` and ${cutOff.length - named.length} more` : '';
  const isNamed = map.peers.some(({ endpoint }) => endpoint !== null && !isLiteral(endpoint));
  const other = isNamed ? ', or publish an address of the other family under the name' : '';
  const remedy = `give this host a route to ${cutOff[0]?.used.host}${other}`;
  return [noteFinding('network', checked, printable(`there is no route to ${named.join(', ')}${more}`), remedy)];
}
