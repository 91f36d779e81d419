import type { Network } from '../../../contract/network.ts';
import type { Peer } from '../../../contract/peer.ts';
import { findConnectors, findRelays } from './connectors.ts';

/** Half of the 60 s after which common NATs forget a UDP mapping is too slow for some; wg(8) advises this. */
const keepalive = 25;

/**
 * The wg-quick text of a phone: it dials the peers that have an endpoint, and reaches the others and the routes through connectors. The
 * default route is left out: the phone keeps its own way to the internet.
 */
export function renderPhoneConfig(network: Network, self: Peer, privateKey: string): string {
  const dialled = network.peers.filter(({ id, endpoint }) => id !== self.id && endpoint !== null);
  const [relay] = findRelays(dialled, network.private_cidr);
  const ownerOf = (route: string) => findConnectors(dialled, route)[0] ?? findRelayed(network, route, relay);
  const routes = network.routes.filter((route) => !route.endsWith('/0'));
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
      `PersistentKeepalive = ${keepalive}`,
    ];
  });
  const own = ['[Interface]', `PrivateKey = ${privateKey}`, `Address = ${self.address}/32`, 'MTU = 1420'];
  return [own, ...sections].map((lines) => `${lines.map(toLine).join('\n')}\n`).join('\n');
}

/** A connector without an endpoint is reached through the relay. */
function findRelayed(network: Network, route: string, relay: Peer | undefined): Peer | undefined {
  return findConnectors(network.peers, route).length > 0 ? relay : undefined;
}

/** @throws Error for a value with a line break, which would be a setting of its own */
function toLine(line: string): string {
  if (/[^\x20-\x7e]/.test(line)) throw new Error('the network has a value that no wg-quick file can hold');
  return line;
}
