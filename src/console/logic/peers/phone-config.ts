import { encode } from 'uqr';
import type { Network } from '../../../contract/network.ts';
import type { Peer } from '../../../contract/peer.ts';
import {
  type ConnectorProfile,
  checkLine,
  deviceKeepalive,
  deviceMtu,
  findProfileRoutes,
  renderProfile,
} from '../../../core/export/device-profile.ts';
import { findConnectors, findRelays } from './connectors.ts';

/** The wg-quick text of a phone; from its profile if it dials only one connector. */
export function renderPhoneConfig(network: Network, self: Peer, privateKey: string): string {
  const { profile, address } = self;
  if (profile === undefined) return renderAll(network, self, privateKey);
  return renderProfile({ privateKey, address, range: network.private_cidr, profile });
}

/** A text of a new phone's length. @throws Error if a value does not fit in a wg-quick file */
export function draftPhoneConfig(network: Network, connector: Peer | null): string {
  const key = `${'A'.repeat(43)}=`;
  const self: Peer = {
    ...{ id: 0, name: 'phone', peer_type: 'admin_device', public_key: key, endpoint: null, created_at: '' },
    // The longest possible address.
    address: '255.255.255.255',
    ...(connector !== null && { profile: draftProfile(network, connector) }),
  };
  return renderPhoneConfig(network, self, key);
}

function draftProfile({ routes }: Network, { id, public_key, endpoint }: Peer): ConnectorProfile & Peer['profile'] {
  const taken = findProfileRoutes(routes);
  const declined = routes.filter((route) => !taken.includes(route));
  return { connector: id, public_key, endpoint: endpoint ?? '', routes: taken, declined };
}

/** A file with the key and no peers, for a network with a value that no wg-quick file can hold. */
export function renderKeyAlone({ address }: Pick<Peer, 'address'>, privateKey: string): string {
  return `[Interface]\nPrivateKey = ${privateKey}\nAddress = ${address}/32\n`;
}

/**
 * Dials all peers with an endpoint, and reaches the others and the routes through connectors.
 * Leaves out the default route: the phone keeps its own internet access.
 */
function renderAll(network: Network, self: Peer, privateKey: string): string {
  const dialled = network.peers.filter(({ id, endpoint }) => id !== self.id && endpoint !== null);
  const [relay] = findRelays(dialled, network.private_cidr);
  const ownerOf = (route: string) => findConnectors(dialled, route)[0] ?? findRelayed(network, route, relay);
  const routes = findProfileRoutes(network.routes);
  const sections = dialled.map((peer) => {
    const allowed = [
      `${peer.address}/32`,
      ...(peer === relay ? [network.private_cidr] : []),
      ...routes.filter((route) => ownerOf(route) === peer),
    ];
    return [
      '[Peer]',
      `PublicKey = ${peer.public_key}`,
      `AllowedIPs = ${allowed.join(', ')}`,
      `Endpoint = ${peer.endpoint}`,
      `PersistentKeepalive = ${deviceKeepalive}`,
    ];
  });
  const own = ['[Interface]', `PrivateKey = ${privateKey}`, `Address = ${self.address}/32`, `MTU = ${deviceMtu}`];
  return [own, ...sections].map((lines) => `${lines.map(checkLine).join('\n')}\n`).join('\n');
}

/** A connector without an endpoint is reached through the relay. */
function findRelayed(network: Network, route: string, relay: Peer | undefined): Peer | undefined {
  return findConnectors(network.peers, route).length > 0 ? relay : undefined;
}

/** WireGuard apps name a tunnel after its file, with at most this many characters. */
const longestName = 15;
/** Windows reserves these device names in every folder. */
const device = /^(con|prn|aux|nul|(com|lpt)[0-9])$/;

/** The label is unique in the network. A label that must be changed ends with the peer's id. */
export function nameFile({ id, name, dns_label }: Pick<Peer, 'id' | 'name' | 'dns_label'>): string {
  const label = dns_label ?? toPlain(name);
  if (label !== '' && label.length <= longestName && !device.test(label)) return `${label}.conf`;
  const end = `-${id}`;
  const begin = label.slice(0, longestName - end.length).replace(/-$/, '');
  return `${begin || 'wg'}${end}.conf`;
}

const toPlain = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

/** The widest code without border that a camera reads from a screen at arm's length: version 25. */
const mostModules = 117;
/** The light modules around a code that a camera needs to find it. */
export const codeBorder = 4;

/** The pixels of a module: cameras need four. */
export function findModulePixels(modules: number): number {
  return modules <= 73 ? 5 : 4;
}

export function fitsCode(text: string): boolean {
  try {
    return encode(text, { border: 0 }).size <= mostModules;
  } catch {
    return false;
  }
}
