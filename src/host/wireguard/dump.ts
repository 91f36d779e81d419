import { parsePublicKey, parseSecretKey } from '../../core/crypto/keys.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import type { ActualPeer, Device } from '../../core/host-state/actual.ts';
import type { SocketEndpoint } from '../../core/net/endpoint.ts';
import { memoizeLast } from '../../core/util/memo.ts';
import { readAddress, readPrefix } from '../read-address.ts';

/** Parses `wg show IF dump` (wg(8), "dump"). Drops the private key. */
export function parseDump(text: string): Device {
  const [heading = '', ...lines] = text.split('\n').filter((line) => line !== '');
  return { ...parseHeading(heading), peers: lines.map(parsePeer) };
}

function parseHeading(line: string): Omit<Device, 'peers'> {
  const [, publicKey, listenPort, fwmark, ...tooMany] = line.split('\t');
  if (publicKey === undefined || listenPort === undefined || fwmark === undefined || tooMany.length > 0)
    throw notADump('the interface');
  return {
    publicKey: publicKey === '(none)' ? null : parsePublicKey(publicKey, 'public key'),
    listenPort: readNumber(listenPort),
    fwmark: fwmark === 'off' ? null : readMark(fwmark),
  };
}

/**
 * Parses successive dumps of an interface, only lines that the last one lacks. Keeps the order of
 * equal lines: wireguard-go prints peers at random.
 */
export function dumpReader(): (text: string) => Device {
  let known: ReadonlyMap<string, ActualPeer> = new Map();
  return memoizeLast((text) => {
    const [heading = '', ...lines] = text.split('\n').filter((line) => line !== '');
    // Each peer has one line: with all lines cached and equal counts, the peers are the same.
    const isSame = lines.length === known.size && lines.every((line) => known.has(line));
    const observed = isSame ? known : new Map(lines.map((line) => [line, known.get(line) ?? parsePeer(line)]));
    const device = { ...parseHeading(heading), peers: [...observed.values()] };
    known = observed;
    return device;
  });
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

/** More lenient than core: WireGuard learns endpoints with zones, and accepts port 0. */
function readEndpoint(text: string): SocketEndpoint {
  const [, inBrackets, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = readAddress(inBrackets ?? plain ?? '');
  if (host === null) throw new InvalidValue('endpoint', text, 'is not in the format of wg');
  return { host, port: Number(port) };
}

function readMark(text: string): number {
  if (!/^0x[0-9a-f]{1,8}$/.test(text)) throw new InvalidValue('fwmark', text, 'is not in the format of wg');
  return Number(text);
}

function readNumber(text: string): number {
  if (!/^\d{1,20}$/.test(text)) throw new InvalidValue('number', text, 'is not in the format of wg');
  return Number(text);
}

/** The error omits the line, which may contain the private key. */
function notADump(what: string): InvalidValue {
  return new InvalidValue(
    'wg show dump',
    undefined,
    `has an unexpected number of fields for ${what}, according to wg(8)`,
  );
}
