import type { AdminService, Network } from '../../api/admin-service.ts';
import { printable, quote, WrongUsage } from '../../core/errors/index.ts';
import { findProfileConnectors, isListedConnector } from '../../core/export/device-profile.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { note } from '../output/output.ts';

type Peer = Network['peers'][number];

/**
 * The preferred connector that is online; null if the device dials all peers with an endpoint.
 * @throws WrongUsage if the device would reach no peer
 */
export async function findConnector(input: Input, admin: AdminService, network: Network): Promise<Peer | null> {
  const asked = input.text('via');
  const via = asked === undefined ? null : parseChoice('--via', asked, ['connectors', 'all'] as const);
  const named = input.text('connector');
  if (via === 'all' && named !== undefined) throw new WrongUsage('--connector excludes --via all; give one of them');
  const connectors = findProfileConnectors(network);
  if (named !== undefined) return requireProfiles(admin, pick(connectors, named, network));
  const isDialled = network.peers.some(({ endpoint }) => endpoint !== null);
  if (!isDialled && via !== 'connectors')
    throw new WrongUsage(
      `no peer of ${network.name} has an endpoint, so the device can reach no peer; ${giveEndpoint(network)}`,
    );
  if (via === 'all') return null;
  if (connectors.length === 0) {
    const found = `no connector of ${network.name} has an endpoint and relays`;
    if (via === 'connectors') throw new WrongUsage(`${found}; ${giveEndpoint(network)}, or use --via all`);
    note(`${printable(found)}: the device dials each peer that has an endpoint, and later peers are not in its file`);
    return null;
  }
  if (via === null && !(await admin.describes('enroll-profile'))) {
    note('this control plane has no profiles through a connector: the device dials each peer that has an endpoint');
    return null;
  }
  return requireProfiles(admin, await findOnline(admin, network, connectors));
}

function pick(connectors: readonly Peer[], named: string, network: Network): Peer {
  const found = connectors.find(({ id }) => String(id) === named) ?? connectors.find(({ name }) => name === named);
  if (found !== undefined) return found;
  const known = connectors.map(({ id, name }) => `${quote(name)} (${id})`).join(', ') || 'none';
  throw new WrongUsage(
    `--connector ${quote(named)} is not a connector of ${network.name} that has an endpoint and relays; there are: ${known}`,
  );
}

async function requireProfiles(admin: AdminService, connector: Peer): Promise<Peer> {
  if (await admin.describes('enroll-profile')) return connector;
  throw new WrongUsage('this control plane has no profiles through a connector; use --via all');
}

/** The first connector that is not offline. If there is none, the first of all. */
async function findOnline(admin: AdminService, { id }: Network, connectors: readonly Peer[]): Promise<Peer> {
  const [first, ...others] = connectors as [Peer, ...Peer[]];
  if (others.length === 0) return first;
  const health = await admin.readHealth(id);
  const offline = new Set(health?.filter(({ state }) => state === 'offline').map((peer) => peer.id));
  return connectors.find((peer) => !offline.has(peer.id)) ?? first;
}

/** `cpn set` also moves the listen port of the connector. An endpoint from an admin does not. */
function giveEndpoint({ id, peers }: Network): string {
  return peers.some(isListedConnector)
    ? 'give a connector one, on its host: cpn set --endpoint HOST:PORT'
    : `enrol a connector with an endpoint: cpn key create ${id} --name NAME --type connector`;
}
