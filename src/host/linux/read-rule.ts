import type { Prefix } from '../../core/cidr.ts';
import type { Rule } from '../../core/rule.ts';
import { readPrefix } from '../read-address.ts';
import { type Entry, nameProtocol, nameTable, numberOf } from './shown-entry.ts';

/** Reads an IPv4 rule as `ip -json -details -Numeric rule show` prints it (print_rule in ip/iprule.c of iproute2). */
export function readRule(entry: Entry): Rule {
  const { priority, src, srclen, dst, dstlen, fwmark, table, suppress_prefixlen: suppress, protocol } = entry;
  // A mark of which only some bits count is another thing.
  const masked = 'fwmask' in entry;
  return {
    priority: numberOf(priority, 'priority'),
    // A word by itself is printed as a key without a value.
    not: 'not' in entry,
    from: readSelector(src, srclen),
    to: readSelector(dst, dstlen),
    fwmark: fwmark === undefined || masked ? null : numberOf(Number(fwmark), 'fwmark'),
    table: table === undefined ? null : nameTable(table),
    suppress: suppress === undefined ? null : numberOf(suppress, 'suppress_prefixlen'),
    protocol: nameProtocol(protocol ?? '0'),
    more: Object.keys(entry).filter((key) => !read.has(key) || (masked && key === 'fwmark')),
  };
}

/** What is read here; of whatever else a rule says, the name is told. */
const read = new Set([
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
