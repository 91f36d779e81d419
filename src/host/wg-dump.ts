import type { ActualPeer, Device } from '../core/actual.ts';
import type { SocketEndpoint } from '../core/endpoint.ts';
import { InvalidValue } from '../core/errors.ts';
import { keepSame, rememberLast } from '../core/keep-same.ts';
import { parsePublicKey, parseSecretKey } from '../core/keys.ts';
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

/**
 * Parses dumps of one interface, one after the other: of what the last one said too it gives the very object again, and the very device
 * where nothing differs but the order. wireguard-go tells its peers in another order each time.
 */
export function dumpReader(): (text: string) => Device {
  let known: ReadonlyMap<string, ActualPeer> = new Map();
  const keep = keepSame(sameDevice);
  return rememberLast((text) => {
    const seen = new Map<string, ActualPeer>();
    const device = parseDump(text, (line) => {
      const peer = known.get(line) ?? parsePeer(line);
      seen.set(line, peer);
      return peer;
    });
    known = seen;
    return keep(device);
  });
}

function sameDevice(one: Device, other: Device): boolean {
  const { publicKey, listenPort, fwmark, peers } = one;
  if (publicKey !== other.publicKey || listenPort !== other.listenPort || fwmark !== other.fwmark) return false;
  const known = new Set(peers);
  return known.size === other.peers.length && other.peers.every((peer) => known.has(peer));
}

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

/** Says nothing of the text itself: the private key may be in it. */
function notADump(what: string): InvalidValue {
  return new InvalidValue('wg show dump', undefined, `has another number of fields for ${what} than wg(8) says`);
}
