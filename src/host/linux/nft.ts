import { InvalidValue } from '../../core/errors.ts';
import { type Chain, chains, packetRules, tableOf } from '../../core/firewall.ts';
import type { Firewall } from '../../core/step.ts';
import { type Entry, isEntry } from './shown-entry.ts';

/**
 * Writes the transaction for `nft -f -` that puts our table in place of what is there (nft(8)). It is added first
 * because only a table that exists can be deleted.
 */
export function renderFirewall(firewall: Firewall): string {
  const rules = packetRules(firewall);
  const names = (Object.keys(chains) as Chain[]).filter((name) => rules.some(({ chain }) => chain === name));
  const bodies = names.map((name) => {
    const lines = rules.filter(({ chain }) => chain === name);
    return `  chain ${name} {\n    ${chains[name]}\n${lines.map(({ text, comment }) => `    ${text} comment "${comment}"\n`).join('')}  }\n`;
  });
  return `${renderRemoval(firewall.link)}table inet ${tableOf(firewall.link)} {\n${bodies.join('')}}\n`;
}

/** Writes the transaction that removes our table, and is no error where there is none. */
export function renderRemoval(link: string): string {
  const table = tableOf(link);
  return `add table inet ${table}\ndelete table inet ${table}\n`;
}

/** The arguments that show our table. */
export function listArgs(link: string): string[] {
  return ['--json', 'list', 'table', 'inet', tableOf(link)];
}

/**
 * Parses `nft --json list table` (libnftables-json(5)) into each rule's `chain comment`, sorted. What keeps rules that are
 * right from their work is listed like a rule: a table that is dormant, and a chain that drops what no rule takes.
 */
export function parseRules(text: string): string[] {
  const objects = readObjects(text);
  const rules = objects
    .flatMap(({ rule }) => (isEntry(rule) ? [rule] : []))
    .map(({ chain, comment }) => `${String(chain)} ${typeof comment === 'string' ? comment : '(no comment)'}`);
  const policies = objects
    .flatMap(({ chain }) => (isEntry(chain) ? [chain] : []))
    .filter(({ policy }) => policy !== undefined && policy !== 'accept')
    .map(({ name, policy }) => `${String(name)} (policy ${String(policy)})`);
  // What nft 1.0.6 names as the flags is something else.
  const flagged = objects.some(({ table }) => isEntry(table) && table.flags !== undefined);
  return [...rules, ...policies, ...(flagged ? ['(table with flags)'] : [])].sort();
}

/** Reads what `nft --json` lists: objects with one name each, as `chain` or `rule`. */
export function readObjects(text: string): Entry[] {
  try {
    const { nftables } = JSON.parse(text);
    if (Array.isArray(nftables)) return nftables.filter(isEntry);
  } catch {}
  throw new InvalidValue('the output of nft', undefined, 'is not a ruleset in JSON');
}
