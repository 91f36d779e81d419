import type { Flow } from '../../src/core/map/access-rules.ts';
import { type Address, addressIn, type Family, familyOf, hostPrefix, rangeOf } from '../../src/core/net/cidr.ts';

/** A packet that begins a flow, or a later one of it. */
export interface Packet extends Omit<Flow, 'isEcho'> {
  /** Of TCP and UDP; the identifier of ICMP, whose `port` is the number in a sequence. */
  readonly sourcePort: number;
  /** TCP flags; SYN without them. */
  readonly flags?: number;
  readonly sequence?: number;
  readonly acknowledged?: number;
  /** The type and code of ICMP if it is no request. */
  readonly icmp?: readonly [type: number, code: number];
  readonly isEcho?: boolean;
  readonly payload: Buffer;
}

export const tcpFlags = { fin: 1, syn: 2, rst: 4, push: 8, ack: 16 } as const;

/** 253 is for experiments (RFC 3692). */
const protocols = {
  4: { icmp: 1, tcp: 6, udp: 17, other: 253 },
  6: { icmp: 58, tcp: 6, udp: 17, other: 253 },
} as const;

/** Requests other than an echo that conntrack tracks: a timestamp, and node information (RFC 4620). */
const icmpTypes = { 4: { echo: 8, other: 13 }, 6: { echo: 128, other: 139 } } as const;

/** Builds an IP packet with correct checksums. */
export function buildPacket(packet: Packet): Buffer {
  const { from, to, protocol } = packet;
  const family = familyOf(from);
  const number = protocols[family][protocol];
  const ends = Buffer.concat([bytesOf(from), bytesOf(to)]);
  const transport = Buffer.concat([headerOf(packet, family), packet.payload]);
  const pseudo = Buffer.concat([ends, uint32(transport.length), uint32(number)]);
  const at = { icmp: 2, tcp: 16, udp: 6, other: null }[protocol];
  if (at !== null) {
    const isAlone = protocol === 'icmp' && family === 4;
    transport.writeUInt16BE(checksum(isAlone ? transport : Buffer.concat([pseudo, transport])) || 0xffff, at);
  }
  if (family === 6) {
    const header = Buffer.from([0x60, 0, 0, 0, 0, 0, number, 64]);
    header.writeUInt16BE(transport.length, 4);
    return Buffer.concat([header, ends, transport]);
  }
  const header = Buffer.concat([Buffer.from([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, number, 0, 0]), ends]);
  header.writeUInt16BE(header.length + transport.length, 2);
  header.writeUInt16BE(checksum(header), 10);
  return Buffer.concat([header, transport]);
}

function headerOf(packet: Packet, family: Family): Buffer {
  const { protocol, sourcePort, flags = tcpFlags.syn, sequence = 1, acknowledged = 0, isEcho, icmp } = packet;
  const port = packet.port ?? 0;
  if (protocol === 'other') return Buffer.alloc(0);
  if (protocol === 'icmp') {
    const [type, code] = icmp ?? [icmpTypes[family][isEcho ? 'echo' : 'other'], 0];
    return Buffer.concat([Buffer.from([type, code, 0, 0]), uint16(sourcePort), uint16(packet.port ?? 1)]);
  }
  const ports = Buffer.concat([uint16(sourcePort), uint16(port)]);
  if (protocol === 'udp') return Buffer.concat([ports, uint16(8 + packet.payload.length), uint16(0)]);
  const numbers = Buffer.concat([uint32(sequence), uint32(acknowledged)]);
  return Buffer.concat([ports, numbers, Buffer.from([0x50, flags, 0xff, 0xff, 0, 0, 0, 0])]);
}

/** What a packet has that left a host. */
export interface Arrived {
  readonly from: Address;
  readonly to: Address;
  readonly protocol: number;
  /** TCP, UDP or ICMP with its payload. */
  readonly transport: Buffer;
}

export function readPacket(bytes: Buffer): Arrived {
  const family: Family = (bytes[0] ?? 0) >> 4 === 4 ? 4 : 6;
  const [at, size, protocol, start] = family === 4 ? [12, 4, bytes[9], 20] : [8, 16, bytes[6], 40];
  const addressFrom = (place: number) =>
    addressIn(family, BigInt(`0x${bytes.subarray(place, place + size).toString('hex')}`));
  return {
    from: addressFrom(at),
    to: addressFrom(at + size),
    protocol: protocol ?? 0,
    transport: bytes.subarray(start),
  };
}

/** True of an error that has another packet in it. */
export function isError({ protocol, transport }: Pick<Arrived, 'protocol' | 'transport'>): boolean {
  const type = transport[0] ?? 0;
  return (protocol === 1 && [3, 4, 5, 11, 12].includes(type)) || (protocol === 58 && type < 128);
}

export function checksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

function bytesOf(address: Address): Buffer {
  const hex = rangeOf(hostPrefix(address)).first.toString(16);
  return Buffer.from(hex.padStart(familyOf(address) === 4 ? 8 : 32, '0'), 'hex');
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
