import { keyPairOf } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import { familyOf, formatInterfaceAddress } from '../net/cidr.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import type { DesiredPeer, TunnelConfig } from '../wg-quick/parse.ts';

/** Renders a keyfile (nm-settings-keyfile(5)). NetworkManager adds routes and full-tunnel rules. */
export function renderKeyfile(config: TunnelConfig, link: string, banner: string): string {
  const { privateKey, listenPort, mtu, address, peers } = config;
  const manual = ['method=manual', `address1=${formatInterfaceAddress(address)}`];
  // A tunnel without an address of a family carries no packets of that family.
  const disabled = ['method=disabled'];
  const isIpv4 = familyOf(address.address) === 4;
  return [
    banner,
    '[connection]',
    `id=${link}`,
    `uuid=${identify(privateKey)}`,
    'type=wireguard',
    `interface-name=${link}`,
    '',
    '[wireguard]',
    `private-key=${privateKey.reveal()}`,
    ...(listenPort === null ? [] : [`listen-port=${listenPort}`]),
    `mtu=${mtu}`,
    '',
    ...peers.flatMap(renderPeer),
    '[ipv4]',
    ...(isIpv4 ? manual : disabled),
    '',
    '[ipv6]',
    ...(isIpv4 ? disabled : manual),
    '',
  ].join('\n');
}

function renderPeer({ publicKey, presharedKey, endpoint, keepalive, allowedIps }: DesiredPeer): string[] {
  return [
    `[wireguard-peer.${publicKey}]`,
    // 0: the key is in this file, so NetworkManager does not prompt for it.
    ...(presharedKey === null ? [] : [`preshared-key=${presharedKey.reveal()}`, 'preshared-key-flags=0']),
    ...(endpoint === null ? [] : [`endpoint=${formatEndpoint(endpoint)}`]),
    ...(keepalive === null ? [] : [`persistent-keepalive=${keepalive}`]),
    ...(allowedIps.length === 0 ? [] : [`allowed-ips=${allowedIps.join(';')};`]),
    '',
  ];
}

/** A UUID (RFC 9562, version 8) of the keys, so that a second export replaces the first. */
function identify(privateKey: Secret): string {
  const bytes = Buffer.from(keyPairOf(privateKey).publicKey, 'base64').subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
