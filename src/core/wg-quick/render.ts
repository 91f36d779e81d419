import { formatInterfaceAddress } from '../net/cidr.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import { sameData } from '../util/same-data.ts';
import { type DesiredPeer, parseConfig, type TunnelConfig } from './parse.ts';

const banner = '# Written by cpn, which replaces it as a whole; "cpn status" shows what it stands for.';

export interface RenderOptions {
  /** The comment at the start of the text. By default that of our own files. */
  readonly heading?: string;
  /** A text with its configuration. Sections that it already contains are not parsed again. */
  readonly saved?: { readonly text: string; readonly config: TunnelConfig } | null;
}

/** Renders a wg-quick file, and parses each new section back to verify its meaning. */
export function renderConfig(config: TunnelConfig, { heading = banner, saved = null }: RenderOptions = {}): string {
  const own = `${heading}\n${renderInterface(config)}`;
  const sections = config.peers.map(renderPeer);
  const known = indexSections(saved);
  const unread = config.peers.flatMap((peer, at) => {
    const section = sections[at] ?? '';
    return sameData(known.get(section), peer) ? [] : [{ peer, section }];
  });
  const text = [own, ...unread.map(({ section }) => section)].join('\n');
  if (reveal(parseConfig(`${text}\n`)) !== reveal({ ...config, peers: unread.map(({ peer }) => peer) }))
    throw new Error('a wg-quick file does not read back as written');
  return `${[own, ...sections].join('\n')}\n`;
}

/** The peers of a file by the text of their sections. Empty if a section has another format. */
function indexSections(saved: RenderOptions['saved']): ReadonlyMap<string, DesiredPeer> {
  const start = '\n[Peer]\n';
  const [, ...bodies] = saved ? saved.text.trimEnd().split(`\n${start}`) : [];
  const peers = saved?.config.peers ?? [];
  if (bodies.length !== peers.length) return new Map();
  return new Map(peers.map((peer, at) => [`${start}${bodies[at]}`, peer]));
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

/** Includes secrets in clear text. Only for comparison, never for output. */
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
