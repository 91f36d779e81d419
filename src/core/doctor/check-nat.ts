import type { NetworkMap, Peer } from '../map/model.ts';
import { hostPrefix } from '../net/cidr.ts';
import { type Endpoint, isLiteral } from '../net/endpoint.ts';
import { describeNat, type NatLook } from '../paths/nat-look.ts';
import type { PathRecords } from '../paths/path-record.ts';
import { isPrivate } from '../routing/public-prefixes.ts';
import { mayHavePath } from '../routing/topology/via-connectors.ts';
import type { MappedNetwork } from './check-network.ts';
import { type Finding, noteFinding, okFinding } from './finding.ts';

const unobserved = 'check that a connector with a public endpoint is online: cpn doctor --all there';

/**
 * Checks the NAT of this host, by the observations of connectors at its latest attempt at a direct
 * path. Empty for a host that reaches no peer through a relay.
 *
 * @param paths null if this host does not try direct paths
 */
export function checkNat({ map, self, desired }: MappedNetwork, paths: PathRecords | null): Finding[] {
  const { link } = desired;
  if (!map.peers.some((peer) => mayHavePath(peer, self, map))) return [];
  const checked = `the NAT of this host, for direct paths of ${link}`;
  if (paths === null)
    return [okFinding('network', checked, 'does not matter: direct paths are off (--no-direct-paths)')];
  if (!hasObserver(map, self)) {
    const remedy = 'give a connector an endpoint: cpn set --endpoint HOST:PORT there';
    return [noteFinding('network', checked, 'is unknown: the network has no connector that observes it', remedy)];
  }
  const latest = Object.values(paths)
    .flatMap(({ attempt }) => attempt ?? [])
    .toSorted((one, other) => (one.at < other.at ? 1 : -1))[0];
  if (latest?.outcome === 'no-endpoints')
    return [
      noteFinding('network', checked, 'is unknown: no connector observed this host at its latest attempt', unobserved),
    ];
  if (latest === undefined || latest.nats.own === 'unknown')
    return [okFinding('network', checked, 'is unknown until this host exchanges packets with a relayed peer')];
  const seen = latest.observed.length === 0 ? '' : `; connectors see ${latest.observed.join(' and ')}`;
  const found = `${findingOf(latest.nats.own)}${seen}`;
  if (latest.nats.own !== 'symmetric') return [okFinding('network', checked, found)];
  const remedy = `none, if the relay suffices; otherwise forward a UDP port on the router: cpn set ${link} --endpoint HOST:PORT`;
  return [noteFinding('network', checked, found, remedy)];
}

function findingOf(look: NatLook): string {
  const isLimiting =
    look === 'symmetric'
      ? ': direct only to peers whose NAT accepts packets from any port of an address, or that have none'
      : '';
  return `${describeNat(look)}${isLimiting}`;
}

/** A name is taken for one of a public address, as at the control plane. */
function isPublic(endpoint: Endpoint): boolean {
  return !isLiteral(endpoint) || !isPrivate(hostPrefix(endpoint.host));
}

/** A connector observes the endpoints of hosts only if they dial it. */
function hasObserver({ peers }: NetworkMap, self: Peer): boolean {
  return peers.some(
    ({ id, type, endpoint }) => id !== self.id && type === 'connector' && endpoint !== null && isPublic(endpoint),
  );
}
