import type { FilterChain, FilterRule, FilterTable, Hook, NamedSet } from '../../../core/forward/foreign/chain.ts';
import { asList, isEntry, type JsonEntry } from '../ip/json-entry.ts';
import { readObjects } from './own-table.ts';
import type { SetOf } from './rule-conditions.ts';
import { readRuleStatements } from './rule-statements.ts';

/** Omits elements of named sets, often 100,000 or more. Anonymous sets are part of a rule. */
export const rulesetArgs = ['--json', '--terse', 'list', 'ruleset'];

export function setArgs({ kind, family, table, name }: NamedSet): string[] {
  return ['--json', 'list', kind, family, table, name];
}

/**
 * Parses `nft --json --terse list ruleset` (libnftables-json(5)) into the tables that may filter
 * forwarded or incoming IPv4 packets at any hook. Leaves out dormant tables. An unsupported
 * expression becomes an unknown condition, and is never dropped.
 *
 * @param listedSets the output of `nft` for {@link setArgs}
 */
export function parseFilterTables(text: string, listedSets: readonly string[] = []): FilterTable[] {
  const objects = readObjects(text);
  const sets = readSets(objects, listedSets.flatMap(readObjects));
  const rules = Map.groupBy(entriesOf(objects, 'rule'), (rule) => keyOf(rule, rule.chain));
  const chains = Map.groupBy(entriesOf(objects, 'chain'), (chain) => keyOf(chain, ''));
  return entriesOf(objects, 'table').flatMap((table): FilterTable[] => {
    const { family, name } = table;
    if ((family !== 'ip' && family !== 'inet') || typeof name !== 'string' || isDormant(table)) return [];
    const setOf: SetOf = (wanted) => sets.get(keyOf({ family, table: name }, wanted)) ?? null;
    const own = chains.get(keyOf({ family, table: name }, '')) ?? [];
    const read = own.map((chain): [string, FilterChain] => {
      const listed = rules.get(keyOf(chain, chain.name)) ?? [];
      const statements = (rule: JsonEntry): FilterRule[] => readRuleStatements(asList(rule.expr), setOf);
      return [
        String(chain.name),
        {
          name: String(chain.name),
          hook: hookOf(chain),
          priority: typeof chain.prio === 'number' ? chain.prio : 0,
          policy: chain.policy === 'drop' ? 'drop' : 'accept',
          rules: listed.flatMap(statements),
        },
      ];
    });
    return [{ family, name, chains: new Map(read) }];
  });
}

/** The sets of a listing, by {@link keyOf}. The sets in `listed` have all their elements. */
function readSets(objects: readonly JsonEntry[], listed: readonly JsonEntry[]): Map<string, ReturnType<SetOf>> {
  const sets = new Map<string, ReturnType<SetOf>>();
  for (const kind of ['set', 'map'] as const) {
    for (const set of entriesOf(objects, kind)) {
      const { family, table, name, elem, flags } = set;
      if ((family !== 'ip' && family !== 'inet') || typeof table !== 'string' || typeof name !== 'string') continue;
      const unread = { set: { kind, family, table, name } as const, hasRanges: [flags].flat().includes('interval') };
      sets.set(keyOf(set, name), Array.isArray(elem) ? elem : unread);
    }
    // nft omits `elem` for an empty set.
    for (const set of entriesOf(listed, kind)) sets.set(keyOf(set, set.name), asList(set.elem));
  }
  return sets;
}

function entriesOf(objects: readonly JsonEntry[], kind: string): JsonEntry[] {
  return objects.flatMap((object) => (isEntry(object[kind]) ? [object[kind]] : []));
}

/** Joins with NUL, the only character that a name cannot contain. */
function keyOf({ family, table }: JsonEntry, name: unknown): string {
  return [family, table, name].map(String).join('\0');
}

const hooks: readonly Hook[] = ['prerouting', 'forward', 'postrouting', 'input'];

function hookOf({ type, hook }: JsonEntry): Hook | null {
  return type === 'filter' ? (hooks.find((each) => each === hook) ?? null) : null;
}

/** nft 1.0.6 prints the table's name in place of any flag. It is treated as `dormant`. */
function isDormant({ name, flags }: JsonEntry): boolean {
  const words = [flags].flat();
  return words.includes('dormant') || words.includes(name);
}
