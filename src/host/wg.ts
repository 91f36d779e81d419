import type { ActualPeer, Device } from '../core/actual.ts';
import { formatEndpoint, type SocketEndpoint } from '../core/endpoint.ts';
import { InvalidValue } from '../core/errors.ts';
import { rememberLast } from '../core/keep-same.ts';
import { parsePublicKey, parseSecretKey } from '../core/keys.ts';
import { Secret } from '../core/secret.ts';
import type { ConfigureDevice, DeviceChange, RemovePeers, RenewPeers } from '../core/step.ts';
import { readAddress, readPrefix } from './read-address.ts';

/** Parses `wg show IF dump` (wg(8), "dump"). The private key is dropped here. */
export function parseDump(text: string, readPeer = parsePeer): Device {
  const [first = '', ...rest] = text.split('\n').filter((line) => line !== '');
  const [, publicKey, listenPort, fwmark, ...tooMany] = first.split('\t');
  if (publicKey === undefined || listenPort === undefined || fwmark === undefined || tooMany.length > 0)
    throw notADump('the interface');
  return {
    publicKey: publicKey === '(none)' ? null : parsePublicKey(publicKey, 'public key'),
    listenPort: readNumber(listenPort),
    fwmark: fwmark === 'off' ? null : readMark(fwmark),
    peers: rest.map((line) => readPeer(line)),
  };
}

/** Parses dumps of one interface, one after the other: of what the last one said too, it gives the very object again. */
export function dumpReader(): (text: string) => Device {
  let known: ReadonlyMap<string, ActualPeer> = new Map();
  return rememberLast((text) => {
    const seen = new Map<string, ActualPeer>();
    const device = parseDump(text, (line) => {
      const peer = known.get(line) ?? parsePeer(line);
      seen.set(line, peer);
      return peer;
    });
    known = seen;
    return device;
  });
}

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

function parsePeer(line: string): ActualPeer {
  const fields = line.split('\t');
  if (fields.length !== 8) throw notADump('a peer');
  const [publicKey = '', presharedKey = '', endpoint = '', allowedIps = '', ...numbers] = fields;
  const [handshake = '', rx = '', tx = '', keepalive = ''] = numbers;
  return {
    publicKey: parsePublicKey(publicKey, 'public key'),
    presharedKey: presharedKey === '(none)' ? null : parseSecretKey(presharedKey, 'preshared key'),
    endpoint: endpoint === '(none)' ? null : readEndpoint(endpoint),
    allowedIps: allowedIps === '(none)' ? [] : allowedIps.split(',').map(readPrefix),
    keepalive: keepalive === 'off' ? null : readNumber(keepalive),
    latestHandshake: readNumber(handshake) || null,
    rxBytes: readNumber(rx),
    txBytes: readNumber(tx),
  };
}

/** More lenient than core: WireGuard learns endpoints with zones, and takes port 0 from whoever sets it. */
function readEndpoint(text: string): SocketEndpoint {
  const [, inBrackets, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = readAddress(inBrackets ?? plain ?? '');
  if (host === null) throw new InvalidValue('endpoint', text, 'is none that wg prints');
  return { host, port: Number(port) };
}

function readMark(text: string): number {
  if (!/^0x[0-9a-f]{1,8}$/.test(text)) throw new InvalidValue('fwmark', text, 'is none that wg prints');
  return Number(text);
}

function readNumber(text: string): number {
  if (!/^\d{1,20}$/.test(text)) throw new InvalidValue('number', text, 'is none that wg prints');
  return Number(text);
}

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

/** Says nothing of the text itself: the private key may be in it. */
function notADump(what: string): InvalidValue {
  return new InvalidValue('wg show dump', undefined, `has another number of fields for ${what} than wg(8) says`);
}
