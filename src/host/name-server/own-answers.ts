const headerBytes = 12;
/** Type, class, time to live and length, in front of the data of a record (RFC 1035, 4.1.3). */
const recordBytes = 10;
const mostPointers = 32;
const opt = 41;

/**
 * Leaves out the answers from the first one on whose name the server of the reply does not serve.
 * The resolver would use them for that name too; without them, it queries the other server.
 * Null if the reply cannot be read.
 */
export function withoutForeignAnswers(reply: Buffer, isForeign: (name: string) => boolean): Buffer | null {
  try {
    let at = headerBytes;
    for (let left = reply.readUInt16BE(4); left > 0; left -= 1) at = readName(reply, at).end + 4;
    const answers = reply.readUInt16BE(6);
    const records = answers + reply.readUInt16BE(8) + reply.readUInt16BE(10);
    let kept: { readonly count: number; readonly bytes: Buffer } | null = null;
    for (let index = 0; index < records; index += 1) {
      const { name, end } = readName(reply, at);
      if (kept === null && index < answers && isForeign(name)) kept = { count: index, bytes: reply.subarray(0, at) };
      const next = end + recordBytes + reply.readUInt16BE(end + 8);
      if (next > reply.length) return null;
      const isOpt = index >= answers && reply.readUInt16BE(end) === opt;
      if (kept !== null && isOpt) return compose(kept.bytes, kept.count, [reply.subarray(at, next)]);
      at = next;
    }
    return kept === null ? reply : compose(kept.bytes, kept.count, []);
  } catch {
    return null;
  }
}

function compose(bytes: Buffer, answers: number, additionals: readonly Buffer[]): Buffer {
  const reply = Buffer.concat([bytes, ...additionals]);
  for (const [at, count] of [
    [6, answers],
    [8, 0],
    [10, additionals.length],
  ] as const)
    reply.writeUInt16BE(count, at);
  return reply;
}

/** Labels, each after its length, then 0 or a pointer to further labels (RFC 1035, 4.1.4). */
function readName(message: Buffer, start: number): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let end: number | null = null;
  let at = start;
  for (let pointers = 0; pointers <= mostPointers; ) {
    const length = message.readUInt8(at);
    if (length === 0) return { name: labels.join('.').toLowerCase(), end: end ?? at + 1 };
    if (length < 64) {
      labels.push(message.toString('latin1', at + 1, at + 1 + length));
      if (labels.length > 127) break;
      at += 1 + length;
      continue;
    }
    end ??= at + 2;
    at = message.readUInt16BE(at) & 0x3fff;
    pointers += 1;
  }
  throw new RangeError('the name is too long');
}
