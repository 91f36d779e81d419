import type {
  ComparedRange,
  FilterChain,
  FilterRule,
  FilterTable,
  Hook,
  PortRange,
  RuleCondition,
  RuleVerdict,
} from '../../../core/forward/foreign/chain.ts';
import { protocolNames, readAddressRange } from './rule-conditions.ts';
import { nonTerminalTargets } from './rule-statements.ts';

/** The priority of the chains of each filtering table (linux/netfilter_ipv4.h). */
const priorities: Readonly<Record<string, number>> = { raw: -300, mangle: -150, filter: 0, security: 50 };

const hooks: Readonly<Record<string, Hook>> = {
  PREROUTING: 'prerouting',
  FORWARD: 'forward',
  POSTROUTING: 'postrouting',
  INPUT: 'input',
};

/** True if iptables-legacy, whose rules nft does not show, has a table that filters. */
export function hasLegacyTables(names: string): boolean {
  return names.split('\n').some((name) => Object.hasOwn(priorities, name));
}

/**
 * Parses the output of `iptables-legacy-save` (iptables-save(8), iptables-extensions(8)) into the
 * filtering tables. An unsupported match becomes an unknown condition, and is never dropped.
 */
export function parseLegacyTables(text: string): FilterTable[] {
  const tables: FilterTable[] = [];
  let chains: Map<string, FilterChain & { readonly rules: FilterRule[] }> | null = null;
  let table = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('*')) {
      table = line.slice(1).trim();
      chains = Object.hasOwn(priorities, table) ? new Map() : null;
      if (chains !== null) tables.push({ family: 'ip', name: table, chains, isLegacy: true });
    }
    const [, name, policy] = /^:(\S+) (\S+)/.exec(line) ?? [];
    if (name !== undefined) {
      const hook = policy === '-' ? null : (hooks[name] ?? null);
      const priority = hook === null ? 0 : (priorities[table] ?? 0);
      chains?.set(name, { name, hook, priority, policy: policy === 'DROP' ? 'drop' : 'accept', rules: [] });
    }
    const [, chain = '', rest] = /^-A (\S+)(.*)$/.exec(line) ?? [];
    if (rest !== undefined) chains?.get(chain)?.rules.push(...readRule(rest.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? []));
  }
  return tables;
}

/** Empty for a rule that leaves the verdict to the next rule. */
function readRule(words: readonly string[]): FilterRule[] {
  const conditions: RuleCondition[] = [];
  let not = false;
  for (let at = 0; at < words.length; ) {
    const [option = '', ...rest] = words.slice(at);
    if (option === '!') {
      not = true;
      at += 1;
      continue;
    }
    const next = rest.findIndex((word) => word === '!' || word.startsWith('-'));
    const values = next === -1 ? rest : rest.slice(0, next);
    if (option === '-j' || option === '-g') {
      const [target = ''] = values;
      if (target === 'NOTRACK' || (target === 'CT' && words.includes('--notrack'))) {
        return [{ conditions, verdict: { does: 'none' }, effect: 'untracks' }];
      }
      const verdict = readTarget(target, option === '-g');
      return verdict === null ? [] : [{ conditions, verdict }];
    }
    conditions.push(...readOption(option, values, not));
    not = false;
    at += 1 + values.length;
  }
  return [];
}

function readTarget(target: string, isGoto: boolean): RuleVerdict | null {
  if (isGoto) return { does: 'goto', chain: target };
  for (const does of ['accept', 'drop', 'reject', 'return'] as const)
    if (target === does.toUpperCase()) return { does };
  if (nonTerminalTargets.has(target)) return null;
  // An extension or a user's chain; both may be capitals. A missing chain has an unknown verdict.
  return { does: 'jump', chain: target };
}

const unknown: RuleCondition = { on: 'unknown' };

function readOption(option: string, values: readonly string[], not: boolean): RuleCondition[] {
  const [value = ''] = values;
  const list = value.split(',');
  switch (option) {
    case '-i':
    case '-o':
      return [{ on: option === '-i' ? 'iif' : 'oif', not, names: [value.replace(/\+$/, '*')] }];
    case '-s':
    case '-d': {
      const range = readAddressRange(value);
      return [
        range === null
          ? unknown
          : { on: option === '-s' ? 'from' : 'to', not, ranges: [range] satisfies ComparedRange[] },
      ];
    }
    case '-p':
      return [{ on: 'protocol', not, names: [protocolNames[value] ?? value] }];
    case '-m':
      // The options of these matches follow. A match of another kind may have no options.
      return ['tcp', 'udp', 'multiport', 'conntrack', 'state', 'comment'].includes(value) ? [] : [unknown];
    case '--comment':
      return [];
    case '--ctstate':
    case '--state': {
      const states = list.map((state) => state.toLowerCase());
      return [states.every((state) => knownStates.has(state)) ? { on: 'state', not, states } : unknown];
    }
    case '--dport':
    case '--dports': {
      const ranges = list.map(readPorts);
      return [ranges.every((range) => range !== null) ? { on: 'port', not, ranges } : unknown];
    }
    default:
      return [unknown];
  }
}

const knownStates = new Set(['new', 'established', 'related', 'invalid', 'untracked']);

function readPorts(text: string): PortRange | null {
  const [, first, last = first] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? [];
  return first === undefined ? null : { first: Number(first), last: Number(last) };
}
