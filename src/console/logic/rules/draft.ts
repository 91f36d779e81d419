import type { AccessRule, NetworkRules, RuleProtocol, RuleTest, SetRules } from '../../../contract/rules.ts';

/** The part of the rules that a user edits. */
export type RulesDraft = Pick<NetworkRules, 'mode' | 'rules' | 'tests' | 'require_enforcement'>;

/** Copies the part that a user edits. */
export function toDraft({ mode, rules, tests, require_enforcement }: NetworkRules): RulesDraft {
  return { mode, rules, tests, require_enforcement };
}

/** The body of a request. `seconds` is null for rules that need no confirmation. */
export function toSetRules(draft: RulesDraft, seconds: number | null = null): SetRules {
  return { ...draft, ...(seconds !== null && { confirm_within_seconds: seconds }) };
}

/** True if the draft has the rules that it was made from. */
export function isUnchanged(draft: RulesDraft, rules: NetworkRules): boolean {
  return JSON.stringify(draft) === JSON.stringify(toDraft(rules));
}

/** Replaces the item at a position, or appends it if there is none. */
export function setItem<Item>(items: readonly Item[], at: number, item: Item): Item[] {
  return at >= items.length ? [...items, item] : items.with(at, item);
}

/** Moves an item up (-1) or down (1). At the end of the list it stays. */
export function moveItem<Item>(items: readonly Item[], at: number, by: -1 | 1): Item[] {
  const [item, other] = [items[at], items[at + by]];
  if (item === undefined || other === undefined) return [...items];
  return items.with(at, other).with(at + by, item);
}

/** True for the protocols that have ports. */
export const hasPorts = (protocol: RuleProtocol) => protocol === 'tcp' || protocol === 'udp';

/** The input that is not valid, by field, in the form of a 422. */
export type FieldProblems = Readonly<Record<string, readonly string[]>>;

/** Checks a rule before it enters the draft. The control plane checks the rest. */
export function checkRule(rule: AccessRule, others: readonly AccessRule[]): FieldProblems {
  return {
    ...(rule.name.trim() === '' && { name: ['must not be empty'] }),
    ...(others.some(({ name }) => name === rule.name) && { name: ['is the name of another rule'] }),
    ...(rule.from.length === 0 && { from: ['must have a selector, or any'] }),
    ...(rule.to.length === 0 && { to: ['must have a selector, or any'] }),
  };
}

/** Reads a test from the text of its fields. */
export function readTest(
  { from, to, protocol, expect }: Omit<RuleTest, 'port'>,
  port: string,
): { readonly test: RuleTest } | { readonly problems: FieldProblems } {
  const hasPort = hasPorts(protocol) && port.trim() !== '';
  const number = readPort(port);
  const problems = {
    ...(from.trim() === '' && { from: ['must be a selector'] }),
    ...(to.trim() === '' && { to: ['must be a selector'] }),
    ...(hasPort && number === null && { port: ['must be from 1 to 65535'] }),
  };
  if (Object.keys(problems).length > 0) return { problems };
  return {
    test: { from: from.trim(), to: to.trim(), protocol, ...(hasPort && number !== null && { port: number }), expect },
  };
}

/** The port as a number; null if there is none. */
export function readPort(text: string): number | null {
  const port = Number(text);
  return /^\s*\d+\s*$/.test(text) && port > 0 && port < 65_536 ? port : null;
}

/** The time to confirm rules, in seconds; null if it is not valid. */
export function readSeconds(text: string): number | null {
  const seconds = Number(text);
  return /^\s*\d+\s*$/.test(text) && seconds >= 10 && seconds <= 3600 ? seconds : null;
}
