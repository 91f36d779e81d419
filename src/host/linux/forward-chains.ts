import type { FilterChain, FilterRule, FilterTable } from '../../core/forward/chain.ts';
import { readObjects } from './nft.ts';
import { readRuleStatements } from './rule-statements.ts';
import { type Entry, isEntry, listOf } from './shown-entry.ts';

/** The arguments that show the tables of everybody. */
export const rulesetArgs = ['--json', 'list', 'ruleset'];

/**
 * Parses `nft --json list ruleset` (libnftables-json(5)) into the tables that have a say in what is forwarded over IPv4. A table that
 * is dormant has none. What cannot be read of a rule is told as unknown, never left out.
 */
export function parseForwardTables(text: string): FilterTable[] {
  const objects = readObjects(text);
  const sets = new Map<string, readonly unknown[]>();
  for (const set of [...entriesOf(objects, 'set'), ...entriesOf(objects, 'map')]) {
    if (Array.isArray(set.elem)) sets.set(keyOf(set, set.name), set.elem);
  }
  const rules = Map.groupBy(entriesOf(objects, 'rule'), (rule) => keyOf(rule, rule.chain));
  const chains = Map.groupBy(entriesOf(objects, 'chain'), (chain) => keyOf(chain, ''));
  return entriesOf(objects, 'table').flatMap((table): FilterTable[] => {
    const { family, name } = table;
    if ((family !== 'ip' && family !== 'inet') || typeof name !== 'string' || isDormant(table)) return [];
    const setOf = (wanted: string) => sets.get(keyOf({ family, table: name }, wanted)) ?? null;
    const own = chains.get(keyOf({ family, table: name }, '')) ?? [];
    const read = own.map((chain): [string, FilterChain] => {
      const listed = rules.get(keyOf(chain, chain.name)) ?? [];
      const statements = (rule: Entry): FilterRule[] => readRuleStatements(listOf(rule.expr), setOf);
      return [
        String(chain.name),
        { name: String(chain.name), policy: policyOf(chain), rules: listed.flatMap(statements) },
      ];
    });
    return [{ family, name, chains: new Map(read) }];
  });
}

function entriesOf(objects: readonly Entry[], kind: string): Entry[] {
  return objects.flatMap((object) => (isEntry(object[kind]) ? [object[kind]] : []));
}

/** Names may hold anything but a NUL. */
function keyOf({ family, table }: Entry, name: unknown): string {
  return [family, table, name].map(String).join('\0');
}

function policyOf({ type, hook, policy }: Entry): FilterChain['policy'] {
  if (type !== 'filter' || hook !== 'forward') return null;
  return policy === 'drop' ? 'drop' : 'accept';
}

/** What nft 1.0.6 prints for flags is the table's own name: there, a flag of any kind is taken for this one. */
function isDormant({ name, flags }: Entry): boolean {
  const words = [flags].flat();
  return words.includes('dormant') || words.includes(name);
}
