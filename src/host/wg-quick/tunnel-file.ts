import { makeKeyPair } from '../../core/crypto/keys.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { covers, hostPrefix, maskPrefix, type Prefix } from '../../core/net/cidr.ts';
import { formatInterfaceAddress, type InterfaceAddress } from '../../core/net/interface-address.ts';
import { parseConfig } from '../../core/wg-quick/parse.ts';
import { renderConfig } from '../../core/wg-quick/render.ts';
import type { TunnelConfig } from '../../core/wg-quick/tunnel-config.ts';

/** The wg-quick file that a tunnel was created from: the only source of its mark, MTU and routes for this driver. */
export interface TunnelFile {
  /** Our mark, which is {@link Link.alias} on Linux; null without one. */
  readonly alias: string | null;
  readonly config: TunnelConfig;
}

const banner = '# What cpn brought up; it replaces this file as a whole, and removes it with the tunnel.';

/** The text of the file, which never has a hook. */
export function renderTunnelFile({ alias, config }: TunnelFile): Secret {
  return new Secret(renderConfig(config, { heading: alias === null ? banner : `${banner}\n# alias ${alias}` }));
}

/** @throws InvalidValue for a text that cpn cannot have written */
export function parseTunnelFile(text: string): TunnelFile {
  return { alias: /^# alias (\S+)$/m.exec(text)?.[1] ?? null, config: parseConfig(text) };
}

/** The routes that wg-quick adds for a file: its allowed IPs, without those that the subnet of its address covers. */
export function routesOf({ config }: TunnelFile): Prefix[] {
  const allowed = new Set(config.peers.flatMap((peer) => peer.allowedIps));
  return [...allowed].filter((prefix) => !isOnLink(prefix, config.address));
}

/** Whether the subnet of the address covers a prefix, which then needs no route. */
export function isOnLink(prefix: Prefix, address: InterfaceAddress): boolean {
  const subnet = maskPrefix(formatInterfaceAddress(address));
  return subnet !== hostPrefix(address.address) && covers(subnet, prefix);
}

/**
 * The file with a placeholder peer for the subnet of the address, for platforms where an address has no route to its subnet (macOS):
 * wg-quick adds the route for that peer, which is removed at once, and the route stays. A peer that is added later then needs no new
 * route, and so no restart. Null where no such peer is needed.
 *
 * @param random 32 bytes
 */
export function withSubnetPeer(file: TunnelFile, random: Uint8Array) {
  const { config } = file;
  const subnet = maskPrefix(formatInterfaceAddress(config.address));
  const isOwned = config.peers.some((peer) => peer.allowedIps.some((prefix) => covers(prefix, subnet)));
  if (isOwned || subnet === hostPrefix(config.address.address)) return null;
  const { publicKey } = makeKeyPair(random);
  const peer = { publicKey, presharedKey: null, endpoint: null, allowedIps: [subnet], keepalive: null };
  return { publicKey, file: { ...file, config: { ...config, peers: [...config.peers, peer] } } };
}
