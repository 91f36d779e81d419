import { checksum } from './packet.ts';

/** Changes a packet of {@link buildPacket} where filters read it. */

/** Splits an IP packet into fragments with so many bytes of its payload each, a multiple of eight. */
export function fragment(packet: Buffer, size: number): Buffer[] {
  const isFour = (packet[0] ?? 0) >> 4 === 4;
  const length = isFour ? 20 : 40;
  const [header, payload] = [packet.subarray(0, length), packet.subarray(length)];
  const count = Math.ceil(payload.length / size);
  return Array.from({ length: count }, (_, index) => {
    const part = payload.subarray(index * size, (index + 1) * size);
    const place = ((index * size) / 8) | 0;
    const isLast = index === count - 1;
    return isFour ? fragmentOfFour(header, part, place, isLast) : fragmentOfSix(header, part, place, isLast);
  });
}

const identifier = 0x4242;

function fragmentOfFour(header: Buffer, part: Buffer, place: number, isLast: boolean): Buffer {
  const changed = Buffer.from(header);
  changed.writeUInt16BE(header.length + part.length, 2);
  changed.writeUInt16BE(identifier, 4);
  changed.writeUInt16BE(place | (isLast ? 0 : 0x2000), 6);
  return Buffer.concat([withChecksum(changed), part]);
}

function fragmentOfSix(header: Buffer, part: Buffer, place: number, isLast: boolean): Buffer {
  const extension = Buffer.from([header[6] ?? 0, 0, 0, 0, 0, 0, 0, 0]);
  extension.writeUInt16BE((place << 3) | (isLast ? 0 : 1), 2);
  extension.writeUInt32BE(identifier, 4);
  return withNext(header, 44, Buffer.concat([extension, part]));
}

/** Puts an extension header first: hop-by-hop (0), routing (43), fragment (44) or destination options (60). */
export function addHeader(packet: Buffer, kind: number): Buffer {
  const [header, payload] = [packet.subarray(0, 40), packet.subarray(40)];
  const next = header[6] ?? 0;
  const bodies: Readonly<Record<number, number[]>> = {
    // A routing header of a made-up type without segments left, which hosts ignore.
    43: [next, 0, 253, 0, 0, 0, 0, 0],
    44: [next, 0, 0, 0, 0, 0, 0x42, 0x43],
  };
  const padding = [next, 0, 1, 4, 0, 0, 0, 0];
  return withNext(header, kind, Buffer.concat([Buffer.from(bodies[kind] ?? padding), payload]));
}

/** Adds options without an effect to an IPv4 header. */
export function addOptions(packet: Buffer): Buffer {
  const header = Buffer.concat([packet.subarray(0, 20), Buffer.from([1, 1, 1, 1, 1, 1, 1, 0])]);
  header[0] = 0x47;
  header.writeUInt16BE(packet.length + 8, 2);
  return Buffer.concat([withChecksum(header), packet.subarray(20)]);
}

function withNext(header: Buffer, next: number, payload: Buffer): Buffer {
  const changed = Buffer.from(header);
  changed.writeUInt16BE(payload.length, 4);
  changed[6] = next;
  return Buffer.concat([changed, payload]);
}

function withChecksum(header: Buffer): Buffer {
  header.writeUInt16BE(0, 10);
  header.writeUInt16BE(checksum(header), 10);
  return header;
}
