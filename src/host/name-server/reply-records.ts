const headerBytes = 12;
/** Type, class, time to live and length, in front of the data of a record (RFC 1035, 4.1.3). */
const recordBytes = 10;
const mostPointers = 32;
const mostNameBytes = 255;
/** No set of records of a LAN has more. */
const mostRecords = 1_000;

export const recordTypes = {
  ...{ NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, SRV: 33 },
  ...{ DNAME: 39, OPT: 41, RRSIG: 46, ANY: 255 },
} as const;

/** The types whose data may have compressed names, after some bytes (RFC 3597, 4). */
const compressed: Readonly<Record<number, { readonly before: number; readonly names: number }>> = {
  [recordTypes.NS]: { before: 0, names: 1 },
  [recordTypes.CNAME]: { before: 0, names: 1 },
  [recordTypes.SOA]: { before: 0, names: 2 },
  [recordTypes.PTR]: { before: 0, names: 1 },
  [recordTypes.MX]: { before: 2, names: 1 },
  [recordTypes.SRV]: { before: 6, names: 1 },
  [recordTypes.DNAME]: { before: 0, names: 1 },
};

/** A name in lower case, without a trailing dot. A dot within a label is `\046`. */
interface ReadName {
  readonly name: string;
  /** Uncompressed, in the spelling of the message. */
  readonly bytes: Buffer;
  /** The offset behind it. */
  readonly end: number;
}

export interface ReplyRecord {
  readonly section: 'answer' | 'authority' | 'additional';
  /** As in {@link ReadName}. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** In seconds. */
  readonly ttl: number;
  /** The offsets of its data. */
  readonly start: number;
  readonly end: number;
}

/** @throws RangeError if the message ends before */
export function readQuestion(message: Buffer): { readonly name: string; readonly type: number } {
  const { name, end } = readName(message, headerBytes);
  return { name, type: message.readUInt16BE(end) };
}

/**
 * @throws RangeError if the message ends before the last record, has too many records, or has a
 *   loop of pointers
 */
export function readRecords(message: Buffer): ReplyRecord[] {
  const counts = [4, 6, 8, 10].map((offset) => message.readUInt16BE(offset));
  if (counts.reduce((sum, count) => sum + count) > mostRecords) throw new RangeError('too many records');
  let at = headerBytes;
  for (let left = message.readUInt16BE(4); left > 0; left -= 1) at = readName(message, at).end + 4;
  const records: ReplyRecord[] = [];
  for (const [offset, section] of [
    [6, 'answer'],
    [8, 'authority'],
    [10, 'additional'],
  ] as const) {
    for (let left = message.readUInt16BE(offset); left > 0; left -= 1) {
      const { name, end: head } = readName(message, at);
      const start = head + recordBytes;
      const end = start + message.readUInt16BE(head + 8);
      if (end > message.length) throw new RangeError('the record is cut');
      const ttl = message.readInt32BE(head + 4);
      records.push({
        ...{ section, name, type: message.readUInt16BE(head), class: message.readUInt16BE(head + 2) },
        // A time with the first bit is 0 (RFC 2181, 8).
        ...{ ttl: Math.max(0, ttl), start, end },
      });
      at = end;
    }
  }
  return records;
}

/** The name to which a CNAME record leads. */
export function readTarget(message: Buffer, { start, end }: ReplyRecord): ReadName {
  const target = readName(message, start);
  if (target.end !== end) throw new RangeError('the data is no name');
  return target;
}

/** The data of a record, without pointers into the message. */
export function readData(message: Buffer, { type, start, end }: ReplyRecord): Buffer {
  const { before, names } = compressed[type] ?? { before: 0, names: 0 };
  let at = start + before;
  const parts = [message.subarray(start, at)];
  for (let left = names; left > 0; left -= 1) {
    const name = readName(message, at);
    parts.push(name.bytes);
    at = name.end;
  }
  if (at > end) throw new RangeError('the data is cut');
  return Buffer.concat([...parts, message.subarray(at, end)]);
}

/** The names behind pointers, by offset. Without it, each pointer to a long name takes its time. */
const namesOf = new WeakMap<Buffer, Map<number, ReadName>>();

/** Labels, each after its length, then 0 or a pointer to further labels (RFC 1035, 4.1.4). */
function readName(message: Buffer, start: number, pointers = 0): ReadName {
  const labels: string[] = [];
  const parts: Buffer[] = [];
  let at = start;
  let length = message.readUInt8(at);
  for (; length > 0 && length < 64 && at - start < mostNameBytes; length = message.readUInt8(at)) {
    const next = at + 1 + length;
    parts.push(message.subarray(at, next));
    labels.push(message.toString('latin1', at + 1, next).replace(/[.\\]/g, escapeCharacter));
    at = next;
  }
  const rest = length < 64 ? root : readPointer(message, at, pointers + 1);
  const bytes = Buffer.concat([...parts, rest.bytes]);
  if (bytes.length > mostNameBytes || (length > 0 && length < 64)) throw new RangeError('the name is too long');
  const own = labels.map((label) => label.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()));
  const name = [...own, ...(rest.name === '' ? [] : [rest.name])].join('.');
  return { name, bytes, end: at + (length === 0 ? 1 : 2) };
}

const root = { name: '', bytes: Buffer.of(0) };

function readPointer(message: Buffer, at: number, pointers: number): ReadName {
  if (pointers > mostPointers) throw new RangeError('the name has a loop');
  const offset = message.readUInt16BE(at) & 0x3fff;
  const names = namesOf.get(message) ?? new Map<number, ReadName>();
  namesOf.set(message, names);
  const found = names.get(offset) ?? readName(message, offset, pointers);
  names.set(offset, found);
  return found;
}

function escapeCharacter(character: string): string {
  return `\\0${character.charCodeAt(0)}`;
}
