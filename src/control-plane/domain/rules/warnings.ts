import { mostWarnings } from '../../../contract/rules.ts';
import { quote } from '../../../core/errors/index.ts';
import { findExcess } from './elements.ts';
import type { RuledPeer } from './endpoints.ts';
import type { RuleSet } from './rule-set.ts';

/**
 * Describes what is probably a mistake. A tag without a peer is allowed: one may enrol later. Rules
 * that were saved exceed the limit of elements once more peers get a tag.
 */
export function listWarnings(set: RuleSet, peers: readonly RuledPeer[]): string[] {
  const excess = findExcess(set.rules, peers);
  const known = new Set(peers.flatMap(({ tags }) => tags));
  const unknown = [...placesOfTags(set)].filter(([tag]) => !known.has(tag));
  return [
    ...(excess === null ? [] : [`the rule ${excess.problem}`]),
    ...unknown.map(([tag, [first, ...others]]) => {
      const more = others.length === 0 ? '' : ` and ${others.length} more`;
      return `no peer has the tag ${tag} (${first}${more})`;
    }),
  ].slice(0, mostWarnings);
}

/** The rules and tests that name each tag. */
function placesOfTags({ rules, tests }: RuleSet): Map<string, Set<string>> {
  const places = new Map<string, Set<string>>();
  const note = (selectors: readonly string[], place: string) => {
    for (const selector of selectors) {
      if (!selector.startsWith('tag:')) continue;
      const tag = selector.slice('tag:'.length);
      places.set(tag, (places.get(tag) ?? new Set()).add(place));
    }
  };
  for (const { name, from, to } of rules) note([...from, ...to], `rule ${quote(name)}`);
  for (const [at, { from, to }] of tests.entries()) note([from, to], `test ${at + 1}`);
  return places;
}
