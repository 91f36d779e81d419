import {
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  DNSSEC_OK,
  decode,
  encode,
  type OptAnswer,
  type Question as PacketQuestion,
  type Answer as PacketRecord,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import type { Question } from '../../core/names/zone.ts';
import type { Forwarding } from '../host.ts';
import type { Transport } from './forward.ts';

/** The RCODEs (RFC 1035, 4.1.1). BADVERS has 8 more bits in the OPT record (RFC 6891, 6.1.3). */
const rcodes = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  BADVERS: 16,
} as const;
type Rcode = keyof typeof rcodes;

/** The flags of the header, other than those of dns-packet. */
const isReply = 0x8000;
const opcodeBits = 0x7800;

const headerBytes = 12;
/** Fits every path without fragments (DNS Flag Day 2020). No query needs more either. */
export const mostBytes = 1232;
/** The maximum of a reply over UDP to a client without EDNS (RFC 1035, 2.3.4). */
const plainBytes = 512;
/** The maximum of a message over TCP. */
const tcpBytes = 65_535;
const classIn = 1;

export type { PacketRecord };

/** A reply without its message. */
export interface ReplyAnswer {
  readonly rcode: Rcode;
  readonly answers: readonly PacketRecord[];
  readonly authorities?: readonly PacketRecord[];
  /** The client repeats the query over TCP. */
  readonly isTruncated?: boolean;
}

/** A query with one question. `end` is the offset behind the question. */
interface Query {
  readonly message: Buffer;
  readonly question: PacketQuestion;
  readonly end: number;
  readonly opt: OptAnswer | null;
}

/**
 * The reply to a message of a client: an answer of `answer`, or the bytes that it returned, or
 * what else it returned. Its throw becomes SERVFAIL. Null for a message without a reply: a reply,
 * or one that cannot be decoded. Never throws. A reply over UDP that is too long is truncated.
 */
export function replyTo<Found extends ReplyAnswer | Buffer | Forwarding>(
  message: Buffer,
  answer: (question: Question) => Found,
  transport: Transport,
): Buffer | Exclude<Found, ReplyAnswer | Buffer> | null {
  if (message.length < headerBytes || message.length > mostBytes) return null;
  const flags = message.readUInt16BE(2);
  if ((flags & isReply) !== 0) return null;
  if ((flags & opcodeBits) !== 0) return replyHeader(message, 'NOTIMP');
  if (!hasQueryCounts(message)) return replyHeader(message, 'FORMERR');
  let query: Query | null;
  try {
    query = readQuery(message);
  } catch {
    return null;
  }
  if (query === null) return replyHeader(message, 'FORMERR');
  const limit = transport === 'tcp' ? tcpBytes : sizeLimit(query.opt);
  try {
    const found = findAnswer(query, answer);
    // A server that replied to the query has the limit of the client itself.
    if (Buffer.isBuffer(found)) return limitLength(found, query, Math.max(limit, query.opt?.udpPayloadSize ?? 0));
    if (!('rcode' in found)) return found as Exclude<Found, ReplyAnswer | Buffer>;
    return limitLength(renderReply(query, found), query, limit);
  } catch {
    return renderReply(query, { rcode: 'SERVFAIL', answers: [] });
  }
}

/** Truncates a reply that is too long. */
function limitLength(reply: Buffer, query: Query, limit: number): Buffer {
  return reply.length <= limit ? reply : renderReply(query, { rcode: 'NOERROR', answers: [], isTruncated: true });
}

/**
 * One question, and up to two additional records, such as OPT and TSIG. dns-packet itself has no
 * limit: 12 bytes make it allocate 2 MB, and pointers in 64 KiB take it 190 ms.
 */
function hasQueryCounts(message: Buffer): boolean {
  const [questions, answers, authorities, additionals = 0] = [4, 6, 8, 10].map((at) => message.readUInt16BE(at));
  return questions === 1 && answers === 0 && authorities === 0 && additionals <= 2;
}

/**
 * Null if the question cannot be repeated from its text: a compressed name, a dot in a label, or
 * bytes other than UTF-8.
 */
function readQuery(message: Buffer): Query | null {
  const { questions = [], additionals = [] }: DecodedPacket = decode(message);
  const opts = additionals.filter((record): record is OptAnswer => record.type === 'OPT');
  const [question] = questions;
  if (question === undefined || opts.length > 1) return null;
  const repeated = encode({ questions });
  const end = repeated.length;
  // The class is left out, because dns-packet cannot encode every class.
  const isSame = repeated.subarray(headerBytes, end - 2).equals(message.subarray(headerBytes, end - 2));
  return isSame ? { message, question, end, opt: opts[0] ?? null } : null;
}

/** The reply to a query that was forwarded in vain. */
export function replyFailure(message: Buffer): Buffer {
  return replyHeader(message, 'SERVFAIL');
}

function findAnswer<Found extends ReplyAnswer | Buffer | Forwarding>(
  { message, question, end, opt }: Query,
  answer: (question: Question) => Found,
): Found | ReplyAnswer {
  if (opt !== null && opt.ednsVersion > 0) return { rcode: 'BADVERS', answers: [] };
  return message.readUInt16BE(end - 2) === classIn ? answer(question) : { rcode: 'REFUSED', answers: [] };
}

/** A client may offer less than 512 bytes, which count as 512 (RFC 6891, 6.2.3). */
function sizeLimit(opt: OptAnswer | null): number {
  return opt === null ? plainBytes : Math.min(mostBytes, Math.max(plainBytes, opt.udpPayloadSize));
}

function renderReply(
  { message, question, end, opt }: Query,
  { rcode, answers, authorities = [], isTruncated = false }: ReplyAnswer,
): Buffer {
  const authoritative = rcode === 'NOERROR' || rcode === 'NXDOMAIN' ? AUTHORITATIVE_ANSWER : 0;
  const truncated = isTruncated ? TRUNCATED_RESPONSE : 0;
  const reply = encode({
    type: 'response',
    id: message.readUInt16BE(0),
    flags: (message.readUInt16BE(2) & RECURSION_DESIRED) | authoritative | truncated | (rcodes[rcode] & 15),
    questions: [question],
    answers: [...answers],
    authorities: [...authorities],
    additionals: opt === null ? [] : [renderOpt(opt, rcode)],
  });
  // Restores a class that dns-packet cannot encode.
  message.copy(reply, headerBytes, headerBytes, end);
  return reply;
}

function renderOpt({ flags }: OptAnswer, rcode: Rcode): OptAnswer {
  const extendedRcode = rcodes[rcode] >> 4;
  const isDnssecOk = (flags & DNSSEC_OK) !== 0;
  return {
    type: 'OPT',
    name: '.',
    udpPayloadSize: mostBytes,
    extendedRcode,
    ednsVersion: 0,
    // The bit is copied (RFC 3225, 3).
    flags: isDnssecOk ? DNSSEC_OK : 0,
    flag_do: isDnssecOk,
    options: [],
  };
}

/** A reply of the header alone, which is no longer than any query. */
function replyHeader(message: Buffer, rcode: Rcode): Buffer {
  const reply = Buffer.alloc(headerBytes);
  message.copy(reply, 0, 0, 2);
  const kept = message.readUInt16BE(2) & (opcodeBits | RECURSION_DESIRED);
  reply.writeUInt16BE(isReply | kept | rcodes[rcode], 2);
  return reply;
}
