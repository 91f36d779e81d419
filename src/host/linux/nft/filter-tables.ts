import type { FilterChain, FilterRule, FilterTable, Hook } from '../../../core/forward/foreign/chain.ts';
import { asList, type Entry, isEntry } from '../ip/json-entry.ts';
import { readObjects } from './own-table.ts';
import { readRuleStatements } from './rule-statements.ts';

export const rulesetArgs = ['--json', 'list', 'ruleset'];

/**
 * Parses `nft --json list ruleset` (libnftables-json(5)) into the tables that may filter forwarded or incoming IPv4 packets at any hook, without
 * dormant ones. An unsupported expression becomes an unknown condition, and is never left out.
 */
export function parseFilterTables(text: string): FilterTable[] {
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
      const statements = (rule: Entry): FilterRule[] => readRuleStatements(asList(rule.expr), setOf);
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

function entriesOf(objects: readonly Entry[], kind: string): Entry[] {
  return objects.flatMap((object) => (isEntry(object[kind]) ? [object[kind]] : []));
}

/** A name can contain any character but NUL. */
function keyOf({ family, table }: Entry, name: unknown): string {
  return [family, table, name].map(String).join('\0');
}

const hooks: readonly Hook[] = ['prerouting', 'forward', 'postrouting', 'input'];

function hookOf({ type, hook }: Entry): Hook | null {
  return type === 'filter' ? (hooks.find((each) => each === hook) ?? null) : null;
}

/** nft 1.0.6 prints the name of the table for any flag, which is then taken for `dormant`. */
function isDormant({ name, flags }: Entry): boolean {
  const words = [flags].flat();
  return words.includes('dormant') || words.includes(name);
}
