import { covers, hostPrefix, maskPrefix, type Prefix } from '../../core/cidr.ts';
import { makeKeyPair } from '../../core/keys.ts';
import { formatInterfaceAddress, type InterfaceAddress, type TunnelConfig } from '../../core/model.ts';
import { Secret } from '../../core/secret.ts';
import { parseConfig } from '../../core/wg-quick/parse.ts';
import { renderConfig } from '../../core/wg-quick/render.ts';

/** What was brought up with a wg-quick file of ours: the only place where this driver can look up marks, MTU and routes. */
export interface TunnelFile {
  /** Our mark, as {@link Link.alias} has it on Linux; null where nobody set one. */
  readonly alias: string | null;
  readonly config: TunnelConfig;
}

const banner = '# What cpn brought up; it replaces this file as a whole, and removes it with the tunnel.';

/** The file's text: nothing but what core's own wg-quick text may hold, so never a hook. */
export function renderTunnelFile({ alias, config }: TunnelFile): Secret {
  return new Secret(renderConfig(config, alias === null ? banner : `${banner}\n# alias ${alias}`));
}

/** @throws InvalidValue for a text that we cannot have written */
export function parseTunnelFile(text: string): TunnelFile {
  return { alias: /^# alias (\S+)$/m.exec(text)?.[1] ?? null, config: parseConfig(text) };
}

/** The routes that wg-quick made for a file: its allowed IPs, but for those that the subnet of its address covers. */
export function routesOf({ config }: TunnelFile): Prefix[] {
  const allowed = new Set(config.peers.flatMap((peer) => peer.allowedIps));
  return [...allowed].filter((prefix) => !isOnLink(prefix, config.address));
}

/** Whether a prefix needs no route of its own beside this address. */
export function isOnLink(prefix: Prefix, address: InterfaceAddress): boolean {
  const subnet = maskPrefix(formatInterfaceAddress(address));
  return subnet !== hostPrefix(address.address) && covers(subnet, prefix);
}

/**
 * The file with a peer of nobody that owns the subnet of the address, for systems on which an address brings no route to its subnet
 * along (macOS): wg-quick makes the route for the peer, which is taken out again at once, and the route stays. So a peer that
 * comes later needs no new route, which would take a restart. Null where no such peer is needed.
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
