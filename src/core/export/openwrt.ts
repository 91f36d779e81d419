import { formatInterfaceAddress } from '../net/cidr.ts';
import type { DesiredPeer, TunnelConfig } from '../wg-quick/parse.ts';

/**
 * Renders sections of OpenWrt's /etc/config/network for its package wireguard-tools, which adds the
 * routes of AllowedIPs and keeps endpoints outside the tunnel. No value of a config has a quote.
 */
export function renderUci(config: TunnelConfig, link: string, banner: string): string {
  const { privateKey, listenPort, mtu, address, peers } = config;
  // A UCI section name allows fewer characters than an interface name.
  const name = link.replace(/[^a-zA-Z0-9_]/g, '_');
  const lines = [
    banner,
    `config interface '${name}'`,
    option('proto', 'wireguard'),
    option('private_key', privateKey.reveal()),
    ...(listenPort === null ? [] : [option('listen_port', listenPort)]),
    option('mtu', mtu),
    item('addresses', formatInterfaceAddress(address)),
    ...peers.flatMap((peer) => ['', `config wireguard_${name}`, ...renderPeer(peer)]),
  ];
  return `${lines.join('\n')}\n`;
}

function renderPeer({ publicKey, presharedKey, endpoint, keepalive, allowedIps }: DesiredPeer): string[] {
  return [
    option('public_key', publicKey),
    ...(presharedKey === null ? [] : [option('preshared_key', presharedKey.reveal())]),
    ...(endpoint === null ? [] : [option('endpoint_host', endpoint.host), option('endpoint_port', endpoint.port)]),
    ...(keepalive === null ? [] : [option('persistent_keepalive', keepalive)]),
    option('route_allowed_ips', 1),
    ...allowedIps.map((prefix) => item('allowed_ips', prefix)),
  ];
}

const option = (name: string, value: string | number) => `\toption ${name} '${value}'`;
const item = (name: string, value: string) => `\tlist ${name} '${value}'`;
