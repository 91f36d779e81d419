import type { Rule } from '../../../core/host-state/policy-rule.ts';
import type { Prefix } from '../../../core/net/cidr.ts';
import { readPrefix } from '../../read-address.ts';
import { type Entry, numberOf, protocolName, tableName } from './json-entry.ts';

/** Parses an IPv4 rule as `ip -json -details -Numeric rule show` prints it (print_rule in ip/iprule.c of iproute2). */
export function readRule(entry: Entry): Rule {
  const { priority, src, srclen, dst, dstlen, fwmark, table, suppress_prefixlen: suppress, protocol } = entry;
  // A masked mark is another condition.
  const masked = 'fwmask' in entry;
  return {
    priority: numberOf(priority, 'priority'),
    // A flag is printed as a key without a value.
    not: 'not' in entry,
    from: readSelector(src, srclen),
    to: readSelector(dst, dstlen),
    fwmark: fwmark === undefined || masked ? null : numberOf(Number(fwmark), 'fwmark'),
    table: table === undefined ? null : tableName(table),
    suppress: suppress === undefined ? null : numberOf(suppress, 'suppress_prefixlen'),
    protocol: protocolName(protocol ?? '0'),
    more: Object.keys(entry).filter((key) => !knownKeys.has(key) || (masked && key === 'fwmark')),
  };
}

/** The names of all other keys are returned in `more`. */
const knownKeys = new Set([
  'priority',
  'not',
  'src',
  'srclen',
  'dst',
  'dstlen',
  'fwmark',
  'table',
  'suppress_prefixlen',
  'protocol',
]);

function readSelector(address: unknown, length: unknown): Prefix | null {
  if (address === undefined || address === 'all') return null;
  return readPrefix(length === undefined ? String(address) : `${address}/${numberOf(length, 'a prefix length')}`);
}
