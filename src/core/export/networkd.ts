import { tunnelMark, tunnelTable } from '../host-state/marks.ts';
import { covers, familyOf, formatInterfaceAddress, isDefaultRoute, maskPrefix, type Prefix } from '../net/cidr.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import type { DesiredPeer, TunnelConfig } from '../wg-quick/parse.ts';

/** A tunnel for systemd-networkd: the device with its keys, and its network settings. */
export interface Units {
  readonly netdev: string;
  readonly network: string;
}

/** Renders units (systemd.netdev(5), systemd.network(5)), with the rules of a full tunnel. */
export function renderUnits(config: TunnelConfig, link: string, banner: string): Units {
  const routes = findRoutes(config);
  const isFull = routes.some(isDefaultRoute);
  const sections = [
    ['[Match]', `Name=${link}`],
    ['[Network]', `Address=${formatInterfaceAddress(config.address)}`, 'LinkLocalAddressing=no'],
    ...routes.map(renderRoute),
    ...(isFull ? fullTunnelRules : []),
  ];
  return {
    netdev: join(banner, [...renderDevice(config, link, isFull), ...config.peers.map(renderPeer)]),
    network: join(banner, sections),
  };
}

function renderDevice({ privateKey, listenPort, mtu }: TunnelConfig, link: string, isFull: boolean): string[][] {
  return [
    ['[NetDev]', `Name=${link}`, 'Kind=wireguard', `MTUBytes=${mtu}`],
    [
      '[WireGuard]',
      `PrivateKey=${privateKey.reveal()}`,
      ...(listenPort === null ? [] : [`ListenPort=${listenPort}`]),
      ...(isFull ? [`FirewallMark=${tunnelMark}`] : []),
    ],
  ];
}

function renderPeer({ publicKey, presharedKey, endpoint, keepalive, allowedIps }: DesiredPeer): string[] {
  return [
    '[WireGuardPeer]',
    `PublicKey=${publicKey}`,
    ...(presharedKey === null ? [] : [`PresharedKey=${presharedKey.reveal()}`]),
    ...(allowedIps.length === 0 ? [] : [`AllowedIPs=${allowedIps.join(',')}`]),
    ...(endpoint === null ? [] : [`Endpoint=${formatEndpoint(endpoint)}`]),
    ...(keepalive === null ? [] : [`PersistentKeepalive=${keepalive}`]),
  ];
}

/** AllowedIPs beyond the subnet of the address, and of its family only. */
function findRoutes({ address, peers }: TunnelConfig): Prefix[] {
  const onLink = maskPrefix(formatInterfaceAddress(address));
  const prefixes = new Set(peers.flatMap(({ allowedIps }) => allowedIps));
  return [...prefixes].filter((prefix) => familyOf(prefix) === familyOf(onLink) && !covers(onLink, prefix));
}

function renderRoute(prefix: Prefix): string[] {
  const table = isDefaultRoute(prefix) ? [`Table=${tunnelTable}`] : [];
  return ['[Route]', `Destination=${prefix}`, 'Scope=link', ...table];
}

/** As wg-quick(8): only packets of the default route, except WireGuard's own, enter the tunnel. */
const fullTunnelRules = [
  ['[RoutingPolicyRule]', 'Family=both', 'Table=main', 'SuppressPrefixLength=0', 'Priority=32764'],
  [
    '[RoutingPolicyRule]',
    'Family=both',
    `FirewallMark=${tunnelMark}`,
    'InvertRule=yes',
    `Table=${tunnelTable}`,
    'Priority=32765',
  ],
];

function join(banner: string, sections: readonly (readonly string[])[]): string {
  return `${banner}\n${sections.map((lines) => `${lines.join('\n')}\n`).join('\n')}`;
}
