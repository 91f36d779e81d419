import { formatEndpoint } from '../endpoint.ts';
import { type DesiredPeer, formatInterfaceAddress, type TunnelConfig } from '../model.ts';
import { perObject } from '../per-object.ts';
import { parseConfig } from './parse.ts';

const banner = '# Written by cpn, which replaces it as a whole; "cpn status" shows what it stands for.';

/**
 * Writes a configuration as a wg-quick file, and reads it back before anybody else does: what comes out is what went in. A section
 * reads the same wherever it stands, so that one that was read back before is not read again.
 *
 * @param heading the comment that it begins with; that of our own files unless told
 */
export function renderConfig(config: TunnelConfig, heading = banner): string {
  const own = `${heading}\n${renderInterface(config)}`;
  const unread = config.peers.filter((peer) => !readBack.has(peer));
  check([own, ...unread.map(sectionOf)].join('\n'), { ...config, peers: unread });
  for (const peer of unread) readBack.add(peer);
  return `${[own, ...config.peers.map(sectionOf)].join('\n')}\n`;
}

const readBack = new WeakSet<DesiredPeer>();
const sectionOf = perObject((peer: DesiredPeer) => renderPeer(peer));

function check(text: string, config: TunnelConfig): void {
  if (reveal(parseConfig(`${text}\n`)) !== reveal(config))
    throw new Error('a wg-quick file does not read back as written');
}

function renderInterface({ privateKey, address, listenPort, fwmark, mtu }: TunnelConfig): string {
  return [
    '[Interface]',
    `PrivateKey = ${privateKey.reveal()}`,
    `Address = ${formatInterfaceAddress(address)}`,
    ...(listenPort === null ? [] : [`ListenPort = ${listenPort}`]),
    ...(fwmark === null ? [] : [`FwMark = 0x${fwmark.toString(16)}`]),
    `MTU = ${mtu}`,
  ].join('\n');
}

function renderPeer({ publicKey, presharedKey, allowedIps, endpoint, keepalive }: DesiredPeer): string {
  return [
    '',
    '[Peer]',
    `PublicKey = ${publicKey}`,
    ...(presharedKey === null ? [] : [`PresharedKey = ${presharedKey.reveal()}`]),
    ...(allowedIps.length === 0 ? [] : [`AllowedIPs = ${allowedIps.join(', ')}`]),
    ...(endpoint === null ? [] : [`Endpoint = ${formatEndpoint(endpoint)}`]),
    ...(keepalive === null ? [] : [`PersistentKeepalive = ${keepalive}`]),
  ].join('\n');
}

/** Everything in the open, secrets too: for comparing, never for showing. */
function reveal(config: TunnelConfig): string {
  const peers = config.peers.map((peer) => ({ ...peer, presharedKey: peer.presharedKey?.reveal() ?? null }));
  const { privateKey, address, listenPort, fwmark, mtu } = config;
  const { address: own, length } = address;
  return JSON.stringify([privateKey.reveal(), own, length, listenPort, fwmark, mtu, peers.map(ordered)]);
}

function ordered(peer: Omit<DesiredPeer, 'presharedKey'> & { presharedKey: string | null }): unknown[] {
  const { publicKey, presharedKey, allowedIps, endpoint, keepalive } = peer;
  return [publicKey, presharedKey, allowedIps, endpoint && formatEndpoint(endpoint), keepalive];
}
