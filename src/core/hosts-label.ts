import type { PeerId } from './model.ts';

/** Something that is to have a name in the hosts file. */
export interface Named {
  readonly id: PeerId;
  readonly name: string;
}

/** The most bytes of one label of a domain name (RFC 1035, 2.3.4). */
const longest = 63;

/** Of an id that is a word, no more than this is appended to a label. */
const longestId = 32;

/**
 * A label of a domain name for each, in their order. Of two that are alike the earlier one keeps its label, and the later one has
 * its id appended: whoever comes last changes nobody's label but its own.
 *
 * @param kind what one without a usable name is called, such as `peer`; its id follows
 */
export function chooseLabels(named: readonly Named[], kind: string): string[] {
  const taken = new Set<string>();
  return named.map(({ id, name }) => {
    const label = toLabel(name) || toLabel(`${kind}-${id}`);
    const number = cut(toLabel(String(id)), longestId) || 'other';
    let chosen = label;
    // Each round makes another label, so that there are no more rounds than labels taken.
    for (let round = 1; taken.has(chosen); round += 1) {
      chosen = append(label, round === 1 ? number : `${number}-${round}`);
    }
    taken.add(chosen);
    return chosen;
  });
}

/** What is left of a name as a label: lower case, a hyphen for all else, none at either end. Empty where nothing is left. */
function toLabel(name: string): string {
  return cut(name.toLowerCase().replace(/[^a-z0-9]+/g, '-'), longest);
}

function append(label: string, suffix: string): string {
  return `${cut(label, longest - suffix.length - 1)}-${suffix}`;
}

function cut(label: string, length: number): string {
  return label.replace(/^-/, '').slice(0, length).replace(/-$/, '');
}
