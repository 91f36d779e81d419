import { InvalidValue } from '../../../core/errors/index.ts';
import type { AccessChain, AccessSet } from '../../../core/forward/access/classes.ts';
import type { AccessFilter } from '../../../core/forward/access/lookups.ts';
import { tableOf } from '../../../core/forward/own-table.ts';
import { type Chain, elementsChain, type Firewall } from '../../../core/forward/packet-rule.ts';
import { hookedChains, kindOf, renderAccessRule, renderLookups, renderMark, renderRule } from './own-table.ts';

/**
 * Renders the transactions that change the table of a closed network from `loaded` to `firewall`,
 * for `nft -f -` (nft(8)). A packet that is on its way during a transaction has the rules from
 * before it, and perhaps elements from after it. So the first transaction adds, the second one
 * changes, and the last one deletes: every element that a packet needs is there.
 */
export function renderChange({ link, rules, access }: Firewall, loaded: Firewall): readonly string[] {
  if (access === undefined || loaded.access === undefined) throw new InvalidValue('packet rules', link, 'have no sets');
  const table = `inet ${tableOf(link)}`;
  const chains = compare(chainsOf(loaded.access), chainsOf(access));
  const sets = compare(loaded.access.sets, access.sets);
  const elements = sets.kept.map(([old, wanted]) => compareElements(old, wanted));
  const write = (verb: 'add' | 'delete', field: 'removals' | 'additions' | 'early') =>
    elements.flatMap(({ name, [field]: each }) =>
      each.length === 0 ? [] : [`${verb} element ${table} ${name} { ${each.join(', ')} }`],
    );
  const refill = (name: string, texts: readonly string[]) => [
    `flush chain ${table} ${name}`,
    ...texts.map((text) => `add rule ${table} ${name} ${text}`),
  ];
  const created =
    chains.added.length + sets.added.length === 0
      ? []
      : [`table ${table} {\n${renderLookups(chains.added, sets.added).join('')}}`];
  const changed = [
    ...write('delete', 'removals'),
    ...write('add', 'additions'),
    ...chains.kept
      .filter(([old, wanted]) => old.texts.join('\n') !== wanted.texts.join('\n'))
      .flatMap(([, { name, texts }]) => refill(name, texts.map(renderAccessRule))),
    ...changedHooks(loaded, { rules }).flatMap(([name, texts]) => refill(name, texts)),
    ...refill(elementsChain, [renderMark(access.identity)]),
  ];
  const removed = [
    ...chains.removed.map(({ name }) => `flush chain ${table} ${name}`),
    ...sets.removed.map(({ name, type }) => `delete ${kindOf(type)} ${table} ${name}`),
    ...chains.removed.map(({ name }) => `delete chain ${table} ${name}`),
  ];
  const early = write('add', 'early');
  const needsOrder = created.length > 0 || elements.some(({ removals }) => removals.length > 0);
  const parts = needsOrder ? [[...created, ...early], changed, removed] : [[...early, ...changed], removed];
  return parts.filter((lines) => lines.length > 0).map((lines) => `${lines.join('\n')}\n`);
}

/** The rules of each chain with a hook that differ. Both tables have the same chains. */
function changedHooks(loaded: Pick<Firewall, 'rules'>, wanted: Pick<Firewall, 'rules'>): [Chain, string[]][] {
  const write = ({ rules }: Pick<Firewall, 'rules'>) =>
    hookedChains(rules).map((chain): [Chain, string[]] => {
      return [chain, rules.filter((rule) => rule.chain === chain).map(renderRule)];
    });
  const before = new Map(write(loaded));
  return write(wanted).filter(([chain, texts]) => before.get(chain)?.join('\n') !== texts.join('\n'));
}

function chainsOf({ chains, classes }: AccessFilter): AccessChain[] {
  return [...chains, ...classes];
}

function compare<Item extends { readonly name: string }>(loaded: readonly Item[], wanted: readonly Item[]) {
  const before = new Map(loaded.map((each) => [each.name, each]));
  const names = new Set(wanted.map(({ name }) => name));
  return {
    added: wanted.filter(({ name }) => !before.has(name)),
    kept: wanted.flatMap((each): [Item, Item][] => {
      const old = before.get(each.name);
      return old === undefined ? [] : [[old, each]];
    }),
    removed: loaded.filter(({ name }) => !names.has(name)),
  };
}

/** Elements whose key is new come early. */
function compareElements(loaded: AccessSet, { name, elements }: AccessSet) {
  const [old, wanted] = [new Set(loaded.elements), new Set(elements)];
  // An element of a map is deleted by its key.
  const keyOf = (element: string) => element.replace(/ : .*/, '');
  const removals = loaded.elements.filter((each) => !wanted.has(each)).map(keyOf);
  const added = elements.filter((each) => !old.has(each));
  const replaced = new Set(removals);
  const isLate = (each: string) => replaced.has(keyOf(each));
  return { name, removals, additions: added.filter(isLate), early: added.filter((each) => !isLate(each)) };
}
