import type { Condition, FilterRule, Verdict } from '../../core/forward/chain.ts';
import { readCondition, readMatch, type SetOf } from './rule-conditions.ts';
import { type Entry, isEntry, listOf } from './shown-entry.ts';

/** More ways to fulfil one rule are not looked at one by one. */
const mostWays = 4096;

/**
 * Reads the statements of a rule (libnftables-json(5)) into rules of which each has one way to be fulfilled: a map of verdicts
 * has one for each element.
 */
export function readRuleStatements(statements: readonly unknown[], setOf: SetOf): FilterRule[] {
  let ways: readonly (readonly Condition[])[] = [[]];
  for (const statement of statements.filter(isEntry)) {
    const verdict = readVerdict(statement);
    if (verdict) return ways.map((conditions) => ({ conditions, verdict }));
    if (isEntry(statement.vmap)) return combine(ways, readVerdictMap(statement.vmap, setOf));
    const more = readConditions(statement, setOf);
    ways =
      ways.length * more.length > mostWays
        ? [[{ on: 'unknown' }]]
        : ways.flatMap((way) => more.map((each) => [...way, ...each]));
  }
  return [];
}

function combine(ways: readonly (readonly Condition[])[], rules: readonly FilterRule[]): FilterRule[] {
  if (ways.length * rules.length > mostWays) return [];
  return ways.flatMap((way) =>
    rules.map(({ conditions, verdict }) => ({ conditions: [...way, ...conditions], verdict })),
  );
}

function readVerdict(statement: Entry): Verdict | null {
  for (const does of ['accept', 'drop', 'reject', 'return'] as const) if (does in statement) return { does };
  if ('queue' in statement) return { does: 'unknown' };
  if ('continue' in statement) return { does: 'none' };
  for (const does of ['jump', 'goto'] as const) {
    const to = statement[does];
    if (isEntry(to) && typeof to.target === 'string') return { does, chain: to.target };
  }
  const { xt } = statement;
  if (!isEntry(xt) || xt.type !== 'target' || passing.has(String(xt.name))) return null;
  return { does: xt.name === 'REJECT' ? 'reject' : 'unknown' };
}

/** Targets of iptables after which the next rule comes (iptables-extensions(8)). */
const passing = new Set(
  'LOG NFLOG TRACE MARK CONNMARK CT NOTRACK TCPMSS CLASSIFY DSCP TOS TTL SET AUDIT CHECKSUM SECMARK CONNSECMARK LED RATEEST TEE'.split(
    ' ',
  ),
);

/** Statements that ask nothing of a packet. */
const asksNothing = new Set(['counter', 'log', 'mangle', 'notrack', 'last', 'comment', 'ct helper', 'ct timeout']);

/** All of one of these lists must hold. */
function readConditions(statement: Entry, setOf: SetOf): (readonly Condition[])[] {
  if (isEntry(statement.match)) return readMatch(statement.match, setOf);
  if (isEntry(statement.xt)) return [readXt(statement.xt)];
  return [Object.keys(statement).every((name) => asksNothing.has(name)) ? [] : [{ on: 'unknown' }]];
}

/** What iptables asks by an extension: nft names it, if at all, without saying more. */
function readXt({ type, name }: Entry): Condition[] {
  if (type === 'target' || type === 'watcher' || name === 'comment') return [];
  return [{ on: type === 'match' && (name === 'conntrack' || name === 'state') ? 'some state' : 'unknown' }];
}

/** An element that cannot be read is left out: it may be for any packet. */
function readVerdictMap({ key, data }: Entry, setOf: SetOf): FilterRule[] {
  const elements = typeof data === 'string' ? setOf(data.replace(/^@/, '')) : isEntry(data) ? listOf(data.set) : [];
  return (elements ?? []).flatMap((element): FilterRule[] => {
    const [value, verdict] = listOf(element);
    const read = isEntry(verdict) ? readVerdict(verdict) : null;
    const conditions = readCondition(key, value, setOf);
    return read && conditions ? [{ conditions, verdict: read }] : [];
  });
}
