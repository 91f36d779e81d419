import type { DeviceProfile, EnrollRequest } from '../../../contract/peer.ts';
import { InvalidValue } from '../../../core/errors/index.ts';
import { type Prefix, parsePrefix } from '../../../core/net/cidr.ts';
import { readFields } from '../../domain/field-rules.ts';
import { readService } from '../../push/to-contract.ts';
import { readNetwork, type StoredNetwork } from '../../store/networks.ts';
import { findPeer, type StoredPeer } from '../../store/peers/peers.ts';
import type { Db } from '../../store/tables.ts';
import { isUnlisted } from '../suspension.ts';

type ProfileRequest = Pick<EnrollRequest, 'profile' | 'peer_type' | 'endpoint'>;

/**
 * The connector with key and endpoint, and the routes, as JSON; null for other peers.
 * @throws InvalidRequest if the network cannot serve such a profile
 */
export async function makeProfile(db: Db, networkId: number, asked: ProfileRequest): Promise<string | null> {
  const { profile } = asked;
  if (profile === undefined) return null;
  const network = await readNetwork(db, networkId);
  const connector = await findPeer(db, networkId, profile.connector);
  const { made } = readFields((read) => ({
    made: read(() => {
      if (asked.peer_type === 'connector') throw wrong('is not for a connector');
      if (asked.endpoint !== undefined) throw wrong('is not for a peer with an endpoint');
      const { id, public_key, endpoint } = checkConnector(network, connector, profile.connector);
      const routes = profile.routes.map((route) => checkRoute(network, route));
      const declined = network.routes.filter((route) => !routes.includes(route));
      return { connector: id, public_key, endpoint, routes: [...new Set(routes)], declined } satisfies DeviceProfile;
    }),
  }));
  return JSON.stringify(made);
}

/** The connector of a profile forwards between the device and all other peers. */
function checkConnector(network: StoredNetwork, peer: StoredPeer | undefined, id: number) {
  if (peer?.peer_type !== 'connector') throw wrong(`names peer ${id}, which is not a connector of the network`);
  if (isUnlisted(peer)) throw wrong(`names connector ${id}, which is suspended or has expired`);
  if (peer.endpoint === null)
    throw wrong(`names connector ${id}, which has no endpoint`, 'give the connector an endpoint, or name another');
  if (readService(network, peer).withdrawn.includes(network.range))
    throw wrong(`names connector ${id}, which does not relay`, 'name another, or put it back in service');
  return { ...peer, endpoint: peer.endpoint };
}

function checkRoute({ routes }: StoredNetwork, text: string): Prefix {
  const route = parsePrefix(text, 'profile');
  if (!routes.includes(route)) throw wrong(`has ${route}, which is not a route of the network`);
  return route;
}

function wrong(rule: string, remedy?: string): InvalidValue {
  return new InvalidValue('profile', undefined, rule, remedy);
}
