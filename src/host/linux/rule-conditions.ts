import { rangeOf } from '../../core/cidr.ts';
import type { AddressRange, Condition } from '../../core/forward/chain.ts';
import { readAddress, readPrefix } from '../read-address.ts';
import { type Entry, isEntry, listOf } from './shown-entry.ts';

/** The elements of a named set or map; null where there is none that can be read. */
export type SetOf = (name: string) => readonly unknown[] | null;

const unknown: Condition = { on: 'unknown' };

/** Reads a match (libnftables-json(5)): all conditions of one of the lists must hold. */
export function readMatch({ op, left, right }: Entry, setOf: SetOf): (readonly Condition[])[] {
  if (op !== '==' && op !== '!=' && op !== 'in') return [[unknown]];
  const not = op === '!=';
  const values = readValues(right, setOf);
  if (values === null) return [[unknown]];
  const fields = isEntry(left) ? listOf(left.concat) : [];
  if (fields.length === 0) return [readField(left, values, not)];
  if (not) return [[unknown]];
  return values.map((value) => readCondition(left, value, setOf) ?? [unknown]);
}

/** The conditions for a field, or for fields side by side, to have one value; null for what cannot be read. */
export function readCondition(field: unknown, value: unknown, setOf: SetOf): readonly Condition[] | null {
  const fields = isEntry(field) ? listOf(field.concat) : [];
  if (fields.length === 0) {
    const values = readValues(value, setOf);
    return values && readField(field, values, false);
  }
  const parts = isEntry(value) ? listOf(value.concat) : [];
  return fields.flatMap((each, at) => readField(each, [parts[at]], false));
}

function readField(field: unknown, values: readonly unknown[], not: boolean): Condition[] {
  const { meta, ct, payload } = isEntry(field) ? field : {};
  if (isEntry(meta)) return readMeta(meta.key, values, not);
  if (isEntry(ct) && ct.key === 'state' && values.every(isText)) return [{ on: 'state', not, states: values }];
  if (!isEntry(payload)) return [unknown];
  if (payload.protocol === 'ip6' || payload.protocol === 'icmpv6') return [{ on: 'nothing' }];
  const end = payload.protocol === 'ip' && ends[String(payload.field)];
  if (!end) return [unknown];
  const ranges = values.map(readRange);
  return ranges.every((range) => range !== null) ? [{ on: end, not, ranges }] : [unknown];
}

const ends: Readonly<Record<string, 'from' | 'to'>> = { saddr: 'from', daddr: 'to' };

/** Interfaces by number are printed by name. */
const cards: Readonly<Record<string, 'iif' | 'oif'>> = { iif: 'iif', iifname: 'iif', oif: 'oif', oifname: 'oif' };

function readMeta(key: unknown, values: readonly unknown[], not: boolean): Condition[] {
  if (!values.every(isText)) return [unknown];
  const card = cards[String(key)];
  if (card) return [{ on: card, not, names: values }];
  if (key !== 'nfproto' && key !== 'protocol') return [unknown];
  const isIpv4 = values.includes(key === 'nfproto' ? 'ipv4' : 'ip');
  return isIpv4 === not ? [{ on: 'nothing' }] : [];
}

/** One value, or those of a set; null of a named set that cannot be read. */
function readValues(right: unknown, setOf: SetOf): readonly unknown[] | null {
  const named = isText(right) && right.startsWith('@') ? setOf(right.slice(1)) : undefined;
  if (named === null) return null;
  const inPlace = isEntry(right) && Array.isArray(right.set) ? right.set : right;
  return [named ?? inPlace].flat().map(withoutTimeout);
}

function withoutTimeout(element: unknown): unknown {
  return isEntry(element) && isEntry(element.elem) ? element.elem.val : element;
}

function readRange(value: unknown): AddressRange | null {
  const { prefix, range } = isEntry(value) ? value : {};
  const [first, last] = isEntry(prefix) ? [`${prefix.addr}/${prefix.len}`] : Array.isArray(range) ? range : [value];
  const [low, high] = [readOne(first), last === undefined ? undefined : readOne(last)];
  if (low === null || high === null) return null;
  return { first: low.first, last: (high ?? low).last };
}

function readOne(value: unknown): AddressRange | null {
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
