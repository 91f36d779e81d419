// The console bundles this file, which must have no imports.

type Id = number | string;

/** The profile of a device, as the service stores it. */
export interface ConnectorProfile {
  readonly connector: Id;
  readonly public_key: string;
  readonly endpoint: string;
  readonly routes: readonly string[];
  /** The routes of the network that the file left out. */
  readonly declined: readonly string[];
}

/** The fields of an API peer on which profiles depend. */
export interface ListedPeer {
  readonly id: Id;
  readonly name: string;
  readonly peer_type: string;
  readonly public_key: string;
  readonly endpoint: string | null;
  readonly withdrawn?: readonly string[] | undefined;
  readonly serving_since?: string | undefined;
  readonly priority?: number | undefined;
  readonly suspended_at?: string | undefined;
  readonly network_secret_tag?: string | undefined;
  readonly profile?: ConnectorProfile | undefined;
}

export interface ListedNetwork<Peer extends ListedPeer = ListedPeer> {
  readonly private_cidr: string;
  readonly routes: readonly string[];
  readonly peers: readonly Peer[];
}

/** Connectors with an endpoint that relay, in the hosts' order of preference. */
export function findProfileConnectors<Peer extends ListedPeer>(network: ListedNetwork<Peer>): Peer[] {
  const since = ({ serving_since }: Peer) => serving_since ?? '9999';
  return network.peers
    .filter((peer) => isListedConnector(peer) && peer.endpoint !== null)
    .filter(({ withdrawn = [] }) => !withdrawn.includes(network.private_cidr))
    .sort(
      (a, b) => (b.priority ?? 0) - (a.priority ?? 0) || since(a).localeCompare(since(b)) || compareIds(a.id, b.id),
    );
}

/** The default routes of a profile: a device keeps its own path to the internet. */
export function findProfileRoutes(routes: readonly string[]): string[] {
  return routes.filter((route) => !isDefault(route));
}

/** Every path carries this size (RFC 8200). Devices do not measure, and mobile paths are small. */
export const deviceMtu = 1280;

/** Seconds, as wg(8) recommends. Half of a NAT's usual timeout, 60 s, is too slow for some. */
export const deviceKeepalive = 25;

export interface ProfileFile {
  readonly privateKey: string;
  readonly address: string;
  /** The network's own range. */
  readonly range: string;
  readonly profile: ConnectorProfile;
  readonly presharedKey?: string | null;
}

/** @throws Error for a value with a line break, which would add a setting */
export function renderProfile({ privateKey, address, range, profile, presharedKey = null }: ProfileFile): string {
  const own = ['[Interface]', `PrivateKey = ${privateKey}`, `Address = ${address}/32`, `MTU = ${deviceMtu}`];
  const peer = [
    '[Peer]',
    `PublicKey = ${profile.public_key}`,
    ...(presharedKey === null ? [] : [`PresharedKey = ${presharedKey}`]),
    `AllowedIPs = ${[range, ...profile.routes].join(', ')}`,
    `Endpoint = ${profile.endpoint}`,
    `PersistentKeepalive = ${deviceKeepalive}`,
  ];
  return [own, peer].map((lines) => `${lines.map(checkLine).join('\n')}\n`).join('\n');
}

/** @throws Error for a value with a line break, which would add a setting */
export function checkLine(line: string): string {
  if (/[^\x20-\x7e]/.test(line)) throw new Error('the network has a value that no wg-quick file can hold');
  return line;
}

/** Returns why a device's file no longer fits its network, as clauses; empty without a profile. */
export function findOutdated(network: ListedNetwork, peer: ListedPeer): string[] {
  const { profile } = peer;
  if (profile === undefined) return [];
  const connector = network.peers.find((each) => each.id === profile.connector && isListedConnector(each));
  return [...compareConnector(profile, peer, connector), ...compareRoutes(profile, network.routes)];
}

function compareConnector(profile: ConnectorProfile, peer: ListedPeer, connector: ListedPeer | undefined): string[] {
  if (connector === undefined) return [`its connector, peer ${profile.connector}, is no longer in the network`];
  const { name, endpoint } = connector;
  return [
    ...(connector.public_key === profile.public_key ? [] : [`${name} has another key`]),
    ...(endpoint === profile.endpoint
      ? []
      : [
          endpoint === null
            ? `${name} has no endpoint`
            : `${name} is at ${endpoint}, and the profile has ${profile.endpoint}`,
        ]),
    ...(connector.network_secret_tag === peer.network_secret_tag ? [] : [`${name} has another network secret`]),
  ];
}

function compareRoutes({ routes, declined }: ConnectorProfile, present: readonly string[]): string[] {
  // A profile without routes that declined a LAN route was created without routes on purpose.
  const takesRoutes = routes.length > 0 || declined.every(isDefault);
  const added = findProfileRoutes(present).filter((route) => !routes.includes(route) && !declined.includes(route));
  const gone = routes.filter((route) => !present.includes(route));
  return [
    ...(takesRoutes && added.length > 0 ? [`the profile lacks ${added.join(' and ')}`] : []),
    ...(gone.length > 0 ? [`${gone.join(' and ')} ${gone.length === 1 ? 'is' : 'are'} no longer in the network`] : []),
  ];
}

export function isListedConnector({ peer_type, suspended_at }: ListedPeer): boolean {
  return peer_type === 'connector' && suspended_at === undefined;
}

const isDefault = (route: string) => route.endsWith('/0');

function compareIds(a: Id, b: Id): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b));
}
