import type { SetRules } from '../../../src/contract/rules.ts';
import { roles, sites } from './tags.ts';

/** Rules that select peers by tags, and which of their ports differs for each number. */
export function taggedRules(count: number, number: number): SetRules {
  const rules = Array.from({ length: count }, (_, place): SetRules['rules'][number] => ({
    name: `rule ${place}`,
    from: [`tag:${roles[place % roles.length]}`, `tag:${sites[place % sites.length]}`],
    to: [`tag:${roles[(7 * place + 1) % roles.length]}`],
    protocol: 'tcp',
    ports: ['443', `${8000 + place}`, ...(place === 0 ? [`${10_000 + number}`] : [])],
  }));
  return { mode: 'closed', rules, tests: [], require_enforcement: false };
}

/** Rules that name so many peers of a network one by one on each side. */
export function namedRules(count: number, peers: number, selectors: number, number: number): SetRules {
  const nameOf = (place: number) => `peer:edge-${1 + (place % peers)}`;
  const rules = Array.from({ length: count }, (_, place): SetRules['rules'][number] => ({
    name: `rule ${place}`,
    from: Array.from({ length: selectors }, (_, at) => nameOf(17 * place + at)),
    to: Array.from({ length: selectors }, (_, at) => nameOf(31 * place + 7 * at)),
    protocol: 'tcp',
    ports: [`${place === 0 ? 10_000 + number : 443}`],
  }));
  return { mode: 'closed', rules, tests: [], require_enforcement: false };
}
