import { printable } from '../../errors/index.ts';
import { type Prefix, restorePrefix } from '../../net/cidr.ts';
import { tableOf } from '../own-table.ts';
import { evaluateRule, type FilterRule, type FilterTable, type RuleEffect } from './chain.ts';

/** Another program's chain whose rules take packets away from the filter of a closed network. */
export interface Bypass extends Pick<FilterTable, 'family' | 'isLegacy'> {
  /** Safe to print, as is the chain. */
  readonly table: string;
  readonly chain: string;
  readonly effect: RuleEffect;
}

const anywhere = restorePrefix('0.0.0.0/0');

/**
 * Finds rules of other programs that may match packets of a tunnel, and leave them untracked or
 * forward them by a flowtable. `inside` has the prefixes to and from which the tunnel carries
 * packets. Names each effect of a table once.
 */
export function findBypasses(tables: readonly FilterTable[], link: string, inside: readonly Prefix[]): Bypass[] {
  const mayMatch = ({ conditions }: FilterRule) => {
    const rule: FilterRule = { conditions, verdict: { does: 'none' } };
    const through = [
      { iif: link, oif: null },
      { iif: null, oif: link },
    ];
    return through.some((links) => {
      const may = (from: Prefix, to: Prefix) => evaluateRule(rule, { ...links, from, to, state: 'new' }) !== 'no';
      return inside.some((prefix) => may(prefix, anywhere)) && inside.some((prefix) => may(anywhere, prefix));
    });
  };
  return tables
    .filter(({ family, name }) => family !== 'inet' || !name.startsWith(tableOf('')))
    .flatMap(({ family, name, chains, isLegacy }) =>
      (['untracks', 'offloads'] as const).flatMap((effect): Bypass[] => {
        const found = [...chains.values()].find(({ rules }) =>
          rules.some((rule) => rule.effect === effect && mayMatch(rule)),
        );
        if (found === undefined) return [];
        const names = { table: printable(name), chain: printable(found.name) };
        return [{ family, ...names, ...(isLegacy && { isLegacy }), effect }];
      }),
    );
}
