import { InvalidValue } from '../errors/index.ts';
import type { PortRange, Selector } from '../map/access-rules.ts';
import { type Prefix, parsePrefix, parsePrefixOrAddress } from '../net/cidr.ts';

/** A selector as a user writes it: peers by name. */
export type NamedSelector = Exclude<Selector, { kind: 'peer' }> | { readonly kind: 'peer'; readonly name: string };

/**
 * Parses `peer:NAME`, `tag:NAME`, `route:CIDR`, `cidr:CIDR`, `gone:NAME` or `any`.
 *
 * @throws InvalidValue
 */
export function parseSelector(text: string, field = 'selector'): NamedSelector {
  const refuse = (problem: string) =>
    new InvalidValue(field, text, problem, 'write peer:NAME, tag:NAME, route:CIDR, cidr:CIDR or any');
  if (text === 'any') return { kind: 'any' };
  const colon = text.indexOf(':');
  const kind = text.slice(0, colon);
  const rest = text.slice(colon + 1);
  if (colon === -1 || rest === '') throw refuse('is no selector');
  if (kind === 'peer' || kind === 'gone') return { kind, name: rest };
  if (kind === 'tag') {
    if (!tagPattern.test(rest)) throw new InvalidValue(field, text, notTag);
    return { kind, tag: rest };
  }
  if (kind === 'route' || kind === 'cidr') return { kind, prefix: readPrefix(text, rest, field, kind) };
  throw refuse('is no selector');
}

/** Formats a selector for {@link parseSelector}. */
export function formatSelector(selector: NamedSelector): string {
  switch (selector.kind) {
    case 'any':
      return 'any';
    case 'tag':
      return `tag:${selector.tag}`;
    case 'peer':
    case 'gone':
      return `${selector.kind}:${selector.name}`;
    default:
      return `${selector.kind}:${selector.prefix}`;
  }
}

/** The most tags of a peer. */
export const mostTags = 16;

/** A label in the form of DNS: lower case letters, digits and hyphens. */
export const tagPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
export const notTag = 'is no tag: 1 to 63 lower case letters, digits and hyphens, with no hyphen at an end';

export function isTag(value: unknown): value is string {
  return typeof value === 'string' && tagPattern.test(value);
}

/** Parses `22` or `8000-8080`. @throws InvalidValue */
export function parsePorts(text: string, field = 'ports'): PortRange {
  const [, from = '', to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (from === '' || first < 1 || last > 65_535 || first > last) {
    throw new InvalidValue(field, text, 'is no port or range of ports', 'write a port from 1 to 65535, or 8000-8080');
  }
  return { first, last };
}

/** Formats ports for {@link parsePorts}. */
export function formatPorts({ first, last }: PortRange): string {
  return first === last ? `${first}` : `${first}-${last}`;
}

/** Sorts ranges, and joins those that overlap or touch. */
export function mergePorts(ranges: readonly PortRange[]): PortRange[] {
  const merged: PortRange[] = [];
  for (const range of ranges.toSorted((one, other) => one.first - other.first)) {
    const last = merged.at(-1);
    if (last === undefined || range.first > last.last + 1) merged.push(range);
    else merged[merged.length - 1] = { first: last.first, last: Math.max(last.last, range.last) };
  }
  return merged;
}

/** Returns the ports of sorted ranges that are in none of the others, which are sorted too. */
export function subtractPorts(ranges: readonly PortRange[], others: readonly PortRange[]): PortRange[] {
  return ranges.flatMap((range) => {
    const left: PortRange[] = [];
    let { first } = range;
    for (const other of others) {
      if (other.last < first || other.first > range.last) continue;
      if (other.first > first) left.push({ first, last: other.first - 1 });
      first = other.last + 1;
    }
    return first > range.last ? left : [...left, { first, last: range.last }];
  });
}

/** Returns the ports that are in both lists, which are sorted. */
export function intersectPorts(ranges: readonly PortRange[], others: readonly PortRange[]): PortRange[] {
  return subtractPorts(ranges, subtractPorts(ranges, others));
}

/** A part of a route may be a single address. Errors quote the whole selector. */
function readPrefix(text: string, rest: string, field: string, kind: 'route' | 'cidr'): Prefix {
  try {
    return kind === 'cidr' ? parsePrefixOrAddress(rest, field) : parsePrefix(rest, field);
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    const { rule, remedy } = error;
    throw new InvalidValue(field, text, rule, remedy?.replace(/(?<= )(?=\d)/, `${kind}:`));
  }
}
