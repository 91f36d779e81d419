import type { ComparedRange, NamedSet, PortRange, RuleCondition } from '../../../core/forward/foreign/chain.ts';
import { rangeOf } from '../../../core/net/cidr.ts';
import { readAddress, readPrefix } from '../../read-address.ts';
import { asList, isEntry, type JsonEntry } from '../ip/json-entry.ts';

/** The elements of a named set or map. Null if it is missing or unsupported. */
export type SetOf = (name: string) => readonly unknown[] | UnreadSet | null;

/** A set that was listed without its elements. */
export interface UnreadSet {
  readonly set: NamedSet;
  /** False if each element is a single value. */
  readonly hasRanges: boolean;
}

export function isUnread(elements: readonly unknown[] | UnreadSet): elements is UnreadSet {
  return 'hasRanges' in elements;
}

const unknown: RuleCondition = { on: 'unknown' };

/** Parses a match (libnftables-json(5)) into alternatives. All conditions of one list must hold. */
export function readMatch({ op, left, right }: JsonEntry, setOf: SetOf): (readonly RuleCondition[])[] {
  if (op !== '==' && op !== '!=' && op !== 'in') return [[unknown]];
  const not = op === '!=';
  const values = readValues(right, setOf);
  if (values === null) return [[unknown]];
  if (isUnread(values)) return [readUnread(left, values, not)];
  const fields = isEntry(left) ? asList(left.concat) : [];
  if (fields.length === 0) return [readField(left, values, not)];
  if (not) return [[unknown]];
  return values.map((value) => readCondition(left, value, setOf) ?? [unknown]);
}

/** The conditions under which a field, or a concatenation, has a value. Null if unsupported. */
export function readCondition(field: unknown, value: unknown, setOf: SetOf): readonly RuleCondition[] | null {
  const fields = isEntry(field) ? asList(field.concat) : [];
  if (fields.length === 0) {
    const values = readValues(value, setOf);
    return values && (isUnread(values) ? readUnread(field, values, false) : readField(field, values, false));
  }
  const parts = isEntry(value) ? asList(value.concat) : [];
  return fields.flatMap((each, at) => readField(each, [parts[at]], false));
}

/** The conditions under which a field has a value in an unread set. */
export function readUnread(field: unknown, { set, hasRanges }: UnreadSet, not: boolean): RuleCondition[] {
  const { protocol, field: name } = isEntry(field) && isEntry(field.payload) ? field.payload : {};
  if (protocol === 'ip6' || protocol === 'icmpv6') return [{ on: 'nothing' }];
  const end = protocol === 'ip' && !hasRanges && !not ? (addressFields[String(name)] ?? null) : null;
  return [...impliedProtocol(protocol), { on: 'unread', set, end }];
}

function readField(field: unknown, values: readonly unknown[], not: boolean): RuleCondition[] {
  const { meta, ct, payload } = isEntry(field) ? field : {};
  if (isEntry(meta)) return readMeta(meta.key, values, not);
  if (isEntry(ct) && ct.key === 'state' && values.every(isText)) return [{ on: 'state', not, states: values }];
  if (isEntry(ct) && ct.key === 'status' && values.length === 1 && values[0] === 'dnat')
    return [{ on: 'redirected', not }];
  return isEntry(payload) ? readPayload(payload, values, not) : [unknown];
}

function readPayload({ protocol, field }: JsonEntry, values: readonly unknown[], not: boolean): RuleCondition[] {
  if (protocol === 'ip6' || protocol === 'icmpv6') return [{ on: 'nothing' }];
  if (protocol === 'ip') {
    if (field === 'protocol') return [readProtocol(values, not)];
    const end = addressFields[String(field)];
    const ranges = values.map(readAddressRange);
    return end && ranges.every((range) => range !== null) ? [{ on: end, not, ranges }] : [unknown];
  }
  const port = field === 'dport' ? readPorts(values, not) : unknown;
  if (protocol === 'th') return [port];
  return transports.has(String(protocol)) ? [...impliedProtocol(protocol), port] : [unknown];
}

/** A match on a field of a protocol implies that protocol. */
function impliedProtocol(protocol: unknown): RuleCondition[] {
  return transports.has(String(protocol)) ? [{ on: 'protocol', not: false, names: [String(protocol)] }] : [];
}

const transports = new Set(['udp', 'tcp', 'udplite', 'sctp', 'dccp', 'icmp']);

function readProtocol(values: readonly unknown[], not: boolean): RuleCondition {
  const names = values.map((value) => (isText(value) ? value : protocolNames[String(value)]));
  return names.every((name) => name !== undefined) ? { on: 'protocol', not, names } : unknown;
}

/** Protocols that some versions of nft print as numbers. */
export const protocolNames: Readonly<Record<string, string>> = { 1: 'icmp', 6: 'tcp', 17: 'udp', 58: 'ipv6-icmp' };

function readPorts(values: readonly unknown[], not: boolean): RuleCondition {
  const ranges = values.map(readPortRange);
  return ranges.every((range) => range !== null) ? { on: 'port', not, ranges } : unknown;
}

function readPortRange(value: unknown): PortRange | null {
  const [first, last = first] = isEntry(value) && Array.isArray(value.range) ? value.range : [value];
  return typeof first === 'number' && typeof last === 'number' ? { first, last } : null;
}

const addressFields: Readonly<Record<string, 'from' | 'to'>> = { saddr: 'from', daddr: 'to' };

/** nft prints the name for an interface index too. */
const interfaceKeys: Readonly<Record<string, 'iif' | 'oif'>> = {
  iif: 'iif',
  iifname: 'iif',
  oif: 'oif',
  oifname: 'oif',
};

function readMeta(key: unknown, values: readonly unknown[], not: boolean): RuleCondition[] {
  if (key === 'l4proto') return [readProtocol(values, not)];
  if (!values.every(isText)) return [unknown];
  const direction = interfaceKeys[String(key)];
  if (direction) return [{ on: direction, not, names: values }];
  if (key !== 'nfproto' && key !== 'protocol') return [unknown];
  const isIpv4 = values.includes(key === 'nfproto' ? 'ipv4' : 'ip');
  return isIpv4 === not ? [{ on: 'nothing' }] : [];
}

/** One value, or the values of a set. Null for a named set that is missing or unsupported. */
function readValues(right: unknown, setOf: SetOf): ReturnType<SetOf> {
  const named = isText(right) && right.startsWith('@') ? setOf(right.slice(1)) : undefined;
  if (named === null || (named !== undefined && isUnread(named))) return named;
  const inPlace = isEntry(right) && Array.isArray(right.set) ? right.set : right;
  return [named ?? inPlace].flat().map(withoutTimeout);
}

function withoutTimeout(element: unknown): unknown {
  return isEntry(element) && isEntry(element.elem) ? element.elem.val : element;
}

export function readAddressRange(value: unknown): ComparedRange | null {
  const { prefix, range } = isEntry(value) ? value : {};
  const [first, last] = isEntry(prefix) ? [`${prefix.addr}/${prefix.len}`] : Array.isArray(range) ? range : [value];
  const [low, high] = [readAddressOrPrefix(first), last === undefined ? undefined : readAddressOrPrefix(last)];
  if (low === null || high === null) return null;
  return { first: low.first, last: (high ?? low).last };
}

function readAddressOrPrefix(value: unknown): ComparedRange | null {
  if (!isText(value)) return null;
  const [address = ''] = value.split('/', 1);
  if (readAddress(address) !== address) return null;
  try {
    return rangeOf(readPrefix(value));
  } catch {
    return null;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
