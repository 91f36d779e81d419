import { InvalidValue } from '../errors/index.ts';
import type { Selector } from '../map/access-rules.ts';
import { formatSelector, parseSelector } from './selector.ts';

/** Parses a selector of a map, which names a peer by its id: `peer:17`. @throws InvalidValue */
export function parseMapSelector(text: string): Selector {
  const selector = parseSelector(text);
  if (selector.kind !== 'peer') return selector;
  if (selector.name.length > 128) throw new InvalidValue('selector', text, 'has a longer id than any peer');
  return { kind: 'peer', id: readId(selector.name) };
}

/** Formats a selector for {@link parseMapSelector}. */
export function formatMapSelector(selector: Selector): string {
  return selector.kind === 'peer' ? `peer:${selector.id}` : formatSelector(selector);
}

/** Our ids are integers. */
function readId(text: string): number | string {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : text;
}
