import { InvalidValue } from '../../../core/errors/index.ts';
import { deniedCounters, deniedFor, deniedSet } from '../../../core/forward/access-filter.ts';
import type { AccessFilter } from '../../../core/forward/access-lookups.ts';
import { writeSets } from '../../../core/forward/deadline-rules.ts';
import { tableOf } from '../../../core/forward/own-table.ts';
import {
  accessComment,
  accessComments,
  type Chain,
  chains,
  commentOf,
  elementsChain,
  type Firewall,
} from '../../../core/forward/packet-rule.ts';
import { asList, isEntry, type JsonEntry } from '../ip/json-entry.ts';

/**
 * Renders the transaction for `nft -f -` (nft(8)) that replaces our table.
 *
 * @param now milliseconds since 1970 by the clock of the service; null closes every range that has
 *   a deadline
 */
export function renderFirewall({ link, rules, access }: Firewall, now: number | null = null): string {
  const sets = [...writeSets(link, rules, now), ...(access ? renderAccess(access) : [])];
  const names = (Object.keys(chains) as Chain[]).filter((name) => rules.some(({ chain }) => chain === name));
  const bodies = names.map((name) => {
    const lines = rules.filter(({ chain }) => chain === name);
    return `  chain ${name} {\n    ${chains[name]}\n${lines.map((rule) => `    ${rule.text} comment "${commentOf(rule)}"\n`).join('')}  }\n`;
  });
  return `${renderRemoval(link)}table inet ${tableOf(link)} {\n${sets.join('')}${bodies.join('')}}\n`;
}

/** Renders chains and sets, which come before the rules that refer to them. */
function renderAccess({ family, chains: own, classes, sets, identity }: AccessFilter): string[] {
  const address = `ipv${family}_addr`;
  const unhooked = [...own, ...classes];
  const render = (name: string, lines: readonly string[]) =>
    `  chain ${name} {\n${lines.map((line) => `    ${line}\n`).join('')}  }\n`;
  return [
    ...Object.values(deniedCounters).map((name) => `  counter ${name} { }\n`),
    `  set ${deniedSet} { type ${address} . ${address} . inet_proto . inet_service; size 256; flags dynamic, timeout; timeout ${deniedFor}s; }\n`,
    ...unhooked.map(({ name }) => render(name, [])),
    ...sets.map(({ name, type, elements }) => {
      const kind = type.includes(' : verdict') ? 'map' : 'set';
      return `  ${kind} ${name} { ${type} elements = { ${elements.join(', ')} } }\n`;
    }),
    ...unhooked.map(({ name, texts }) => render(name, texts.map(withComment))),
    render(elementsChain, [markOf(identity)]),
  ];
}

const withComment = (text: string) => `${text} comment "${accessComment(text)}"`;

/** Writes the rule that identifies the elements. */
function markOf(identity: string): string {
  return accessComments({ chains: [], classes: [], identity })
    .map(({ comment }) => `return comment "${comment}"`)
    .join();
}

/**
 * Renders the transactions that change only elements and classes of a closed network, from `loaded`
 * to `firewall`. New classes have a transaction of their own: a packet that is on its way during
 * the second one finds their rules.
 */
export function renderElements({ link, access }: Firewall, loaded: Firewall): readonly string[] {
  if (access === undefined || loaded.access === undefined) throw new InvalidValue('packet rules', link, 'have no sets');
  const table = `inet ${tableOf(link)}`;
  const isIn = (list: AccessFilter['classes']) => {
    const names = new Set(list.map(({ name }) => name));
    return ({ name }: { name: string }) => names.has(name);
  };
  const [isOld, isWanted] = [isIn(loaded.access.classes), isIn(access.classes)];
  const created = access.classes
    .filter((each) => !isOld(each))
    .flatMap(({ name, texts }) => [
      `add chain ${table} ${name}`,
      ...texts.map((text) => `add rule ${table} ${name} ${withComment(text)}`),
    ]);
  const removed = loaded.access.classes
    .filter((each) => !isWanted(each))
    .flatMap(({ name }) => [`flush chain ${table} ${name}`, `delete chain ${table} ${name}`]);
  const before = new Map(loaded.access.sets.map(({ name, elements }) => [name, elements]));
  const change = (verb: 'add' | 'delete', name: string, elements: readonly string[]) =>
    elements.length === 0 ? [] : [`${verb} element ${table} ${name} { ${elements.join(', ')} }`];
  const changes = access.sets.map(({ name, elements }) => {
    const [old, wanted] = [new Set(before.get(name)), new Set(elements)];
    // An element of a map is deleted by its key.
    const gone = [...old].filter((each) => !wanted.has(each)).map((each) => each.replace(/ : .*/, ''));
    return {
      removals: change('delete', name, gone),
      additions: change(
        'add',
        name,
        elements.filter((each) => !old.has(each)),
      ),
    };
  });
  const elements = [
    ...changes.flatMap(({ removals }) => removals),
    ...changes.flatMap(({ additions }) => additions),
    ...removed,
    `flush chain ${table} ${elementsChain}`,
    `add rule ${table} ${elementsChain} ${markOf(access.identity)}`,
  ];
  return [created, elements].filter((lines) => lines.length > 0).map((lines) => `${lines.join('\n')}\n`);
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
      .filter(({ name, flags }) => name !== deniedSet && asList(flags).includes('timeout'))
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
