import { InvalidValue } from '../../../core/errors/index.ts';
import type { AccessChain, AccessSet } from '../../../core/forward/access/classes.ts';
import type { AccessFilter } from '../../../core/forward/access/lookups.ts';
import { deniedCounters, deniedFor, deniedSet } from '../../../core/forward/access-filter.ts';
import { writeSets } from '../../../core/forward/deadline-rules.ts';
import { destinationSet, writeDestinationSet } from '../../../core/forward/direct-path-rules.ts';
import { tableOf } from '../../../core/forward/own-table.ts';
import {
  accessComment,
  accessComments,
  type Chain,
  chains,
  commentOf,
  elementsChain,
  type Firewall,
  type PacketRule,
} from '../../../core/forward/packet-rule.ts';
import { asList, isEntry, type JsonEntry } from '../ip/json-entry.ts';

/**
 * Renders the transaction for `nft -f -` (nft(8)) that replaces our table.
 *
 * @param now milliseconds since 1970 by the clock of the service; null closes every range that has
 *   a deadline
 */
export function renderFirewall({ link, rules, access }: Firewall, now: number | null = null): string {
  const sets = [...writeSets(link, rules, now), ...writeDestinationSet(rules), ...(access ? renderAccess(access) : [])];
  const bodies = hookedChains(rules).map((name) => {
    return renderChain(name, [chains[name], ...rules.filter(({ chain }) => chain === name).map(renderRule)]);
  });
  return `${renderRemoval(link)}table inet ${tableOf(link)} {\n${sets.join('')}${bodies.join('')}}\n`;
}

/** The chains with a hook that have rules. */
export function hookedChains(rules: Firewall['rules']): Chain[] {
  return (Object.keys(chains) as Chain[]).filter((name) => rules.some(({ chain }) => chain === name));
}

export function renderRule(rule: PacketRule): string {
  return `${rule.text} comment "${commentOf(rule)}"`;
}

export function renderAccessRule(text: string): string {
  return `${text} comment "${accessComment(text)}"`;
}

function renderAccess({ family, chains: own, classes, sets, identity }: AccessFilter): string[] {
  const address = `ipv${family}_addr`;
  return [
    ...Object.values(deniedCounters).map((name) => `  counter ${name} { }\n`),
    `  set ${deniedSet} { type ${address} . ${address} . inet_proto . inet_service; size 256; flags dynamic, timeout; timeout ${deniedFor}s; }\n`,
    ...renderLookups([...own, ...classes], sets),
    renderChain(elementsChain, [renderMark(identity)]),
  ];
}

/** Renders chains without a hook and the sets of their rules, each before what refers to it. */
export function renderLookups(unhooked: readonly AccessChain[], sets: readonly AccessSet[]): string[] {
  return [
    ...unhooked.map(({ name }) => renderChain(name, [])),
    ...sets.map(({ name, type, elements }) => {
      return `  ${kindOf(type)} ${name} { ${type} elements = { ${elements.join(', ')} } }\n`;
    }),
    ...unhooked.map(({ name, texts }) => renderChain(name, texts.map(renderAccessRule))),
  ];
}

export function kindOf(type: string): 'map' | 'set' {
  return type.includes(' : verdict') ? 'map' : 'set';
}

function renderChain(name: string, lines: readonly string[]): string {
  return `  chain ${name} {\n${lines.map((line) => `    ${line}\n`).join('')}  }\n`;
}

/** Writes the rule that identifies the elements. */
export function renderMark(identity: string): string {
  return accessComments({ chains: [], classes: [], identity })
    .map(({ comment }) => `return comment "${comment}"`)
    .join();
}

/** Rules that only an nft and a kernel can load that map prefixes. They are never loaded. */
export const mapSample = `table inet cpn_check {
  chain mapping {
    ${chains.mapping}
    dnat ip prefix to ip daddr map { 10.0.0.0/24 : 192.168.0.0/24 }
  }
}
`;

/** Removes our table. Adds it first: deleting a missing table is an error. */
export function renderRemoval(link: string): string {
  const table = tableOf(link);
  return `add table inet ${table}\ndelete table inet ${table}\n`;
}

export function listArgs(link: string): string[] {
  return ['--json', 'list', 'table', 'inet', tableOf(link)];
}

/**
 * Parses `nft --json list table` (libnftables-json(5)) into the sorted `chain comment` of each
 * rule, and settings that disable rules: a dormant table, a chain with a policy other than accept.
 */
export function parseRules(text: string): string[] {
  const objects = readObjects(text);
  const rules = objects
    .flatMap(({ rule }) => (isEntry(rule) ? [rule] : []))
    .map(({ chain, comment }) => `${String(chain)} ${typeof comment === 'string' ? comment : '(no comment)'}`);
  const policies = objects
    .flatMap(({ chain }) => (isEntry(chain) ? [chain] : []))
    .filter(({ policy }) => policy !== undefined && policy !== 'accept')
    .map(({ name, policy }) => `${String(name)} (policy ${String(policy)})`);
  // nft 1.0.6 prints a wrong value for flags.
  const flagged = objects.some(({ table }) => isEntry(table) && table.flags !== undefined);
  return [...rules, ...policies, ...(flagged ? ['(table with flags)'] : [])].sort();
}

/**
 * Parses the remaining seconds of each element, by `set element` with the first address of a range.
 * In a set with timeouts, an element without one has infinite seconds.
 */
export function parseTimeouts(text: string): Readonly<Record<string, number>> {
  const sets = readObjects(text).flatMap(({ set }) => (isEntry(set) ? [set] : []));
  return Object.fromEntries(
    sets
      .filter(({ name, flags }) => name !== deniedSet && name !== destinationSet && asList(flags).includes('timeout'))
      .flatMap(({ name, elem }) => asList(elem).map((each) => readTimeout(String(name), each))),
  );
}

function readTimeout(set: string, given: unknown): [string, number] {
  const { val, timeout, expires }: JsonEntry = isEntry(given) && isEntry(given.elem) ? given.elem : { val: given };
  // nft omits `expires` in the last second.
  const left = timeout === undefined ? Number.POSITIVE_INFINITY : Number(expires ?? 0);
  return [`${set} ${firstOf(val)}`, left];
}

function firstOf(value: unknown): string {
  if (!isEntry(value)) return String(value);
  const { prefix, range } = value;
  return isEntry(prefix) ? String(prefix.addr) : String(asList(range)[0]);
}

/** Parses `nft --json` into objects with one key, such as `chain`. @throws InvalidValue */
export function readObjects(text: string): JsonEntry[] {
  try {
    const { nftables } = JSON.parse(text);
    if (Array.isArray(nftables)) return nftables.filter(isEntry);
  } catch {}
  throw new InvalidValue('it', undefined, 'is not a ruleset in JSON');
}
