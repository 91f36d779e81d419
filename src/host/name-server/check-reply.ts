import type { Answer, Question } from '../../core/names/zone.ts';
import { rcodeOf } from './forward.ts';
import type { PacketRecord, ReplyAnswer } from './message.ts';
import { type ReplyRecord, readData, readQuestion, readRecords, readTarget, recordTypes } from './reply-records.ts';

/** The maximum of CNAME records from the name of a question to its data. */
const mostFollowed = 16;
const classIn = 1;
const truncatedBit = 0x02;
/** Of replies whose records resolvers use. */
const rcodes: Readonly<Record<number, 'NOERROR' | 'NXDOMAIN'>> = { 0: 'NOERROR', 3: 'NXDOMAIN' };

export interface ForwardedQuery {
  readonly message: Buffer;
  readonly question: Question;
}

/** The names of a network, in lower case, as its daemon resolves them. */
export interface NetworkNames {
  /** True for a name that the server of the reply resolves. */
  readonly isInside: (name: string) => boolean;
  /** The answer of the daemon itself for a name; null outside its zones. */
  readonly findOwn: (name: string) => Answer | null;
}

/** From the name of the question over CNAME records to the data, which may be absent. */
interface Chain {
  readonly followed: readonly ReplyRecord[];
  readonly names: ReadonlySet<string>;
  readonly last: string;
  readonly data: readonly ReplyRecord[];
  /** The answer of the daemon for the last name. */
  readonly own: Answer | null;
  /** The first foreign name on the way. */
  readonly foreign: Buffer | null;
}

/**
 * Limits the reply of a server to its own names: a resolver such as dnsmasq caches each name of a
 * reply for the whole host. Returns the reply itself if it has no foreign name. Otherwise gives the
 * data to the name of the question, and drops all other names. Null if the reply cannot be read.
 * Never throws.
 */
export function checkReply(
  reply: Buffer,
  { message, question }: ForwardedQuery,
  names: NetworkNames,
): Buffer | ReplyAnswer | null {
  try {
    const records = readRecords(reply);
    const chain = followChain(reply, readQuestion(message), records, names);
    if (chain === null) return null;
    const hasQuestion = records.length === 0 || reply.readUInt16BE(4) === 1;
    if (hasQuestion && records.every((record) => isBelieved(reply, record, chain, names))) return reply;
    return flatten(reply, records, chain, question.name);
  } catch {
    return null;
  }
}

/** Null for a loop, or for too many records. */
function followChain(
  reply: Buffer,
  question: { readonly name: string; readonly type: number },
  records: readonly ReplyRecord[],
  { isInside, findOwn }: NetworkNames,
): Chain | null {
  const followed: ReplyRecord[] = [];
  const names = new Set<string>();
  let last = question.name;
  let foreign: Buffer | null = null;
  while (followed.length <= mostFollowed) {
    names.add(last);
    const ofName = records.filter((each) => each.section === 'answer' && each.name === last && each.class === classIn);
    const data = ofName.filter(({ type }) => type === question.type || question.type === recordTypes.ANY);
    const own = findOwn(last);
    const next = ofName.find(({ type }) => type === recordTypes.CNAME);
    if (own !== null || data.length > 0 || next === undefined) return { followed, names, last, data, own, foreign };
    followed.push(next);
    const target = readTarget(reply, next);
    last = target.name;
    if (!isInside(last)) foreign ??= target.bytes;
  }
  return null;
}

/** True for a record that only concerns names of the server. */
function isBelieved(
  reply: Buffer,
  record: ReplyRecord,
  { followed, names, data }: Chain,
  network: NetworkNames,
): boolean {
  const { section, name, type } = record;
  if (section === 'additional' && type === recordTypes.OPT) return true;
  if (record.class !== classIn) return false;
  if (section !== 'answer') return network.isInside(name);
  if (type === recordTypes.CNAME)
    return (followed.includes(record) || data.includes(record)) && network.isInside(readTarget(reply, record).name);
  if (names.has(name)) return true;
  const isOfParent = type === recordTypes.DNAME || type === recordTypes.RRSIG;
  return isOfParent && network.isInside(name) && [...names].some((each) => contains(name, each));
}

/** The reply without any name other than that of the question. */
function flatten(reply: Buffer, records: readonly ReplyRecord[], chain: Chain, name: string): ReplyAnswer | null {
  const { followed, data, own, foreign, last } = chain;
  const rcode = rcodes[rcodeOf(reply)];
  if (rcode === undefined) return null;
  if (((reply[2] ?? 0) & truncatedBit) !== 0) return { rcode: 'NOERROR', answers: [], isTruncated: true };
  const ttl = Math.min(...[...followed, ...(own?.answers ?? data)].map((each) => each.ttl));
  if (own !== null) return { rcode: own.rcode, answers: own.answers.map((each) => ({ ...each, name, ttl })) };
  const render = (type: number, bytes: Buffer) => {
    // dnsmasq caches for the time of a CNAME record that its target has no data.
    return renderRecord(type, name, type === recordTypes.CNAME ? 0 : ttl, bytes);
  };
  const answers = data.map((record) => render(record.type, readData(reply, record)));
  if (answers.length > 0) return { rcode: 'NOERROR', answers };
  if (foreign !== null) return { rcode: 'NOERROR', answers: [render(recordTypes.CNAME, foreign)] };
  const soa = records.find(({ section, type, ...each }) => {
    return section === 'authority' && type === recordTypes.SOA && each.class === classIn && contains(each.name, last);
  });
  if (soa === undefined) return { rcode, answers };
  const authority = renderRecord(soa.type, name, Math.min(ttl, soa.ttl), readData(reply, soa));
  return { rcode, answers, authorities: [authority] };
}

function contains(zone: string, name: string): boolean {
  return zone === '' || name === zone || name.endsWith(`.${zone}`);
}

/** dns-packet encodes the data of an unknown type as it is. */
function renderRecord(type: number, name: string, ttl: number, data: Buffer): PacketRecord {
  return { type: `UNKNOWN_${type}` as 'NULL', name, ttl, data };
}
