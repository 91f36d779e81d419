import type { AccessRule, RulesMode, RuleTest } from '../../../contract/rules.ts';

/** The rules of a network. Where they are stored, selectors name peers by id, as in `peer:17`. */
export interface RuleSet {
  readonly mode: RulesMode;
  readonly rules: readonly AccessRule[];
  readonly tests: readonly RuleTest[];
  readonly require_enforcement: boolean;
}

/** Every selector of these rules and their tests. */
export function listSelectors(...sets: readonly (RuleSet | null)[]): Set<string> {
  const selectors = sets.flatMap((set) => [
    ...(set?.rules ?? []).flatMap(({ from, to }) => [...from, ...to]),
    ...(set?.tests ?? []).flatMap(({ from, to }) => [from, to]),
  ]);
  return new Set(selectors);
}
