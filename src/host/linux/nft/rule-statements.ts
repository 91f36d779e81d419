import type { FilterRule, RuleCondition, RuleEffect, RuleVerdict } from '../../../core/forward/foreign/chain.ts';
import { asList, isEntry, type JsonEntry } from '../ip/json-entry.ts';
import { isUnread, readCondition, readMatch, readUnread, type SetOf } from './rule-conditions.ts';

/** The maximum number of alternatives. Beyond it, a rule gets an unknown condition. */
const maxAlternatives = 4096;

/**
 * Parses the statements of a rule (libnftables-json(5)) into rules without alternatives. A verdict
 * map gives one rule per element.
 */
export function readRuleStatements(statements: readonly unknown[], setOf: SetOf): FilterRule[] {
  let alternatives: readonly (readonly RuleCondition[])[] = [[]];
  const withEffect: FilterRule[] = [];
  for (const statement of statements.filter(isEntry)) {
    const effect = readEffect(statement);
    if (effect) withEffect.push(...alternatives.map((conditions) => ({ conditions, verdict: noVerdict, effect })));
    const verdict = readVerdict(statement);
    if (verdict) return [...withEffect, ...alternatives.map((conditions) => ({ conditions, verdict }))];
    if (isEntry(statement.vmap)) {
      return [...withEffect, ...combine(alternatives, readVerdictMap(statement.vmap, setOf))];
    }
    const more = readConditions(statement, setOf);
    alternatives =
      alternatives.length * more.length > maxAlternatives
        ? [[{ on: 'unknown' }]]
        : alternatives.flatMap((conditions) => more.map((each) => [...conditions, ...each]));
  }
  return withEffect;
}

const noVerdict: RuleVerdict = { does: 'none' };

/** nft shows no options of the target CT of iptables, which mostly is `--notrack`. */
function readEffect(statement: JsonEntry): RuleEffect | null {
  if ('flow' in statement) return 'offloads';
  const { xt } = statement;
  const isTarget = isEntry(xt) && xt.type === 'target' && (xt.name === 'CT' || xt.name === 'NOTRACK');
  return 'notrack' in statement || isTarget ? 'untracks' : null;
}

function combine(alternatives: readonly (readonly RuleCondition[])[], rules: readonly FilterRule[]): FilterRule[] {
  if (alternatives.length * rules.length > maxAlternatives) return [unreadableRule];
  return alternatives.flatMap((before) =>
    rules.map(({ conditions, verdict }) => ({ conditions: [...before, ...conditions], verdict })),
  );
}

function readVerdict(statement: JsonEntry): RuleVerdict | null {
  for (const does of ['accept', 'drop', 'reject', 'return'] as const) if (does in statement) return { does };
  if ('queue' in statement) return { does: 'unknown' };
  if ('continue' in statement) return { does: 'none' };
  for (const does of ['jump', 'goto'] as const) {
    const to = statement[does];
    if (isEntry(to) && typeof to.target === 'string') return { does, chain: to.target };
  }
  const { xt } = statement;
  if (!isEntry(xt) || xt.type !== 'target' || nonTerminalTargets.has(String(xt.name))) return null;
  return { does: xt.name === 'REJECT' ? 'reject' : 'unknown' };
}

/** Targets of iptables that continue with the next rule (iptables-extensions(8)). */
export const nonTerminalTargets = new Set(
  'LOG NFLOG TRACE MARK CONNMARK CT NOTRACK TCPMSS CLASSIFY DSCP TOS TTL SET AUDIT CHECKSUM SECMARK CONNSECMARK LED RATEEST TEE'.split(
    ' ',
  ),
);

/** Statements without a condition. */
const nonMatching = new Set(['counter', 'log', 'mangle', 'notrack', 'last', 'comment', 'ct helper', 'ct timeout']);

/** Returns alternatives. All conditions of one list must hold. */
function readConditions(statement: JsonEntry, setOf: SetOf): (readonly RuleCondition[])[] {
  if (isEntry(statement.match)) return readMatch(statement.match, setOf);
  if (isEntry(statement.xt)) return [readExtension(statement.xt)];
  return [Object.keys(statement).every((name) => nonMatching.has(name)) ? [] : [{ on: 'unknown' }]];
}

/** A condition of an iptables extension. nft prints at most its name. */
function readExtension({ type, name }: JsonEntry): RuleCondition[] {
  if (type === 'target' || type === 'watcher' || name === 'comment') return [];
  return [{ on: type === 'match' && (name === 'conntrack' || name === 'state') ? 'some state' : 'unknown' }];
}

/** May match any packet, with any verdict. */
const unreadableRule: FilterRule = { conditions: [{ on: 'unknown' }], verdict: { does: 'unknown' } };

function readVerdictMap({ key, data }: JsonEntry, setOf: SetOf): FilterRule[] {
  const elements = typeof data === 'string' ? setOf(data.replace(/^@/, '')) : isEntry(data) ? asList(data.set) : [];
  if (elements === null) return [unreadableRule];
  if (isUnread(elements)) return [{ conditions: readUnread(key, elements, false), verdict: { does: 'unknown' } }];
  return elements.map((element): FilterRule => {
    const [value, verdict] = asList(element);
    const read = isEntry(verdict) ? readVerdict(verdict) : null;
    const conditions = readCondition(key, value, setOf);
    return read && conditions ? { conditions, verdict: read } : unreadableRule;
  });
}
