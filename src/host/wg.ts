import { formatEndpoint } from '../core/endpoint.ts';
import { parsePublicKey, parseSecretKey } from '../core/keys.ts';
import { Secret } from '../core/secret.ts';
import type { ConfigureDevice, DeviceChange, RemovePeers, RenewPeers } from '../core/step.ts';

/**
 * Writes the text for `wg addconf IF /dev/stdin`. What a peer lacks is set to its empty value, because `addconf` leaves
 * alone what is not named; allowed IPs alone are replaced, by none where none are named (config.c of wireguard-tools).
 */
export function renderDevice({ privateKey, listenPort, fwmark, peers }: ConfigureDevice): Secret {
  const lines: string[] = [];
  if (privateKey !== undefined || listenPort !== undefined || fwmark !== undefined) lines.push('[Interface]');
  if (privateKey !== undefined) lines.push(`PrivateKey = ${revealKey(privateKey, 'private key')}`);
  if (listenPort !== undefined) lines.push(`ListenPort = ${listenPort}`);
  if (fwmark !== undefined) lines.push(`FwMark = ${fwmark === null ? 'off' : `0x${fwmark.toString(16)}`}`);
  for (const peer of peers) lines.push(...renderPeer(peer));
  return new Secret(`${lines.join('\n')}\n`);
}

/** The arguments of the calls that remove peers: one, unless they are too many for one argument list. */
export function removalArgs({ link, publicKeys }: RemovePeers): string[][] {
  const calls: string[][] = [];
  for (let start = 0; start < publicKeys.length; start += mostRemovals) {
    const some = publicKeys.slice(start, start + mostRemovals);
    calls.push(['set', link, ...some.flatMap((key) => ['peer', key, 'remove'])]);
  }
  return calls;
}

/** A call of `wg`, and what it reads on its standard input. */
interface Call {
  readonly args: string[];
  readonly input?: Secret;
}

/**
 * The calls that take peers out and put them in again: one for all of those without a preshared key, and one for each that has one,
 * as `wg set` has a single standard input.
 */
export function renewalCalls({ link, peers }: RenewPeers): Call[] {
  const open = peers.filter((peer) => peer.presharedKey === null);
  return [
    ...(open.length === 0 ? [] : [{ args: ['set', link, ...open.flatMap(renewalArgs)] }]),
    ...peers.flatMap((peer) =>
      peer.presharedKey === null
        ? []
        : [
            {
              args: ['set', link, ...renewalArgs(peer)],
              input: new Secret(revealKey(peer.presharedKey, 'preshared key')),
            },
          ],
    ),
  ];
}

function renewalArgs({ publicKey, presharedKey, endpoint, allowedIps, keepalive }: DeviceChange): string[] {
  return [
    ...['peer', publicKey, 'remove', 'peer', publicKey],
    ...(presharedKey === null ? [] : ['preshared-key', '/dev/stdin']),
    ...(endpoint === null ? [] : ['endpoint', formatEndpoint(endpoint)]),
    ...['persistent-keepalive', String(keepalive ?? 0), 'allowed-ips', allowedIps.join(',')],
  ];
}

/** 60 KB of arguments; execve(2) promises 128 KiB whatever the stack's limit is. */
const mostRemovals = 1000;

/** 32 zero bytes: WireGuard's "no preshared key". */
const noKey = `${'A'.repeat(43)}=`;

function renderPeer({ publicKey, presharedKey, allowedIps, endpoint, keepalive }: DeviceChange): string[] {
  return [
    '[Peer]',
    `PublicKey = ${parsePublicKey(publicKey)}`,
    `PresharedKey = ${presharedKey === null ? noKey : revealKey(presharedKey, 'preshared key')}`,
    ...(allowedIps.length === 0 ? [] : [`AllowedIPs = ${allowedIps.join(', ')}`]),
    ...(endpoint === null ? [] : [`Endpoint = ${formatEndpoint(endpoint)}`]),
    `PersistentKeepalive = ${keepalive ?? 'off'}`,
  ];
}

/** `wg` quotes a key that it cannot parse in its error, so that none such is shown to it. */
function revealKey(key: Secret, field: string): string {
  return parseSecretKey(key.reveal(), field).reveal();
}
