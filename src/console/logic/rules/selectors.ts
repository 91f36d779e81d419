import type { Network } from '../../../contract/network.ts';
import type { AccessRule } from '../../../contract/rules.ts';
import { foldText } from '../peers/peer-text.ts';

const collator = new Intl.Collator('en', { numeric: true });

/** The selectors of a network: all, its tags, its routes, its peers, and those in its rules. */
export function listSelectors({ peers, routes }: Network, rules: readonly AccessRule[]): readonly string[] {
  const used = rules.flatMap(({ from, to }) => [...from, ...to]).filter((selector) => !selector.startsWith('gone:'));
  const tags = peers.flatMap(({ tags = [] }) => tags.map((tag) => `tag:${tag}`));
  const names = peers.map(({ name }) => `peer:${name}`).sort(collator.compare);
  const kinds = [...new Set([...tags, ...used.filter((selector) => selector.startsWith('tag:'))])].sort();
  return [...new Set(['any', ...kinds, ...routes.map((route) => `route:${route}`), ...names, ...used])];
}

/** A browser shows the options of a field in one list, which is slow past a few hundred. */
const mostSuggested = 50;

/** The selectors that contain a text, without those that are chosen. */
export function suggestSelectors(
  selectors: readonly string[],
  text: string,
  chosen: readonly string[] = [],
): readonly string[] {
  const wanted = foldText(text.trim());
  const found: string[] = [];
  for (const selector of selectors) {
    if (found.length === mostSuggested) break;
    if (!chosen.includes(selector) && foldText(selector).includes(wanted)) found.push(selector);
  }
  return found;
}

/** Adds a typed selector. Blanks around it, and a second one of the same text, are dropped. */
export function addSelector(chosen: readonly string[], typed: string): readonly string[] {
  const selector = typed.trim();
  return selector === '' || chosen.includes(selector) ? chosen : [...chosen, selector];
}
