import { printable } from '../errors/index.ts';
import { evaluateRule, type FilterChain, type FilterTable, isAboutPath } from './chain.ts';
import { tableOf } from './nft-rules.ts';
import type { ForwardPath } from './path.ts';
import { adviseRemedy, type FirewallProgram, nameProgram } from './remedy.ts';

/** A table of another program that surely drops packets which a connector is there to forward. */
export interface ForwardDrop {
  readonly family: FilterTable['family'];
  /** The table, and its chain at the hook; fit to be printed, like the reason. */
  readonly table: string;
  readonly chain: string;
  readonly reason: string;
  /** The program that probably made the table; null where it is unknown. */
  readonly author: FirewallProgram | null;
  /** What a person can do about it. */
  readonly remedy: string;
  /** The ways that it closes. */
  readonly paths: readonly ForwardPath[];
}

/**
 * Finds who drops packets on their ways through this host. A packet must be let through by each table, so that ours cannot make
 * up for another. Of a rule of which it cannot be said whether it is for a path's packets, nothing is concluded, except that
 * one which lets some of them through, and names the tunnel or an end of the path, shows that an operator decided on the rest.
 *
 * @param link the interface of the tunnel
 */
export function findForwardDrops(
  tables: readonly FilterTable[],
  link: string,
  paths: readonly ForwardPath[],
): ForwardDrop[] {
  return tables
    .filter(({ family, name }) => family !== 'inet' || !name.startsWith(tableOf('')))
    .flatMap((table) => [...table.chains.values()].flatMap((chain) => findInChain(table, chain, link, paths)));
}

function findInChain(
  table: FilterTable,
  base: FilterChain,
  link: string,
  paths: readonly ForwardPath[],
): ForwardDrop[] {
  if (base.hook !== 'forward') return [];
  const closed = new Map<string, { culprit: FilterChain | null; rejects: boolean; paths: ForwardPath[] }>();
  for (const path of paths) {
    const end = new Traversal(table, link, path).through(base);
    if (end.is === 'let' || (end.is === 'passed' && base.policy === 'accept')) continue;
    const culprit = end.is === 'dropped' ? end.by : null;
    const rejects = end.is === 'dropped' && end.rejects;
    const name = `${culprit?.name ?? ''} ${rejects}`;
    const known = closed.get(name) ?? { culprit, rejects, paths: [] };
    known.paths.push(path);
    closed.set(name, known);
  }
  return [...closed.values()].map(({ culprit, rejects, paths: ways }) => {
    const author = nameProgram(table, culprit ?? base);
    const does = rejects ? 'rejects' : 'drops';
    return {
      family: table.family,
      table: printable(table.name),
      chain: printable(base.name),
      reason:
        culprit === null
          ? `policy drop of chain ${printable(base.name)}`
          : `chain ${printable(culprit.name)} ${does} them`,
      author,
      remedy: adviseRemedy(author, table, base, link),
      paths: ways,
    };
  });
}

/** `let` for what is let through, and where the result is unknown. */
type End =
  | { readonly is: 'let' | 'passed' }
  | { readonly is: 'dropped'; readonly by: FilterChain; readonly rejects: boolean };

/** As deep as the kernel lets chains lead to chains (NFT_JUMP_STACK_SIZE in net/netfilter/nf_tables.h). */
const deepest = 16;

/** The way of one path's packets through one table; each chain is looked at once, however many rules lead to it. */
class Traversal {
  readonly #table: FilterTable;
  readonly #link: string;
  readonly #path: ForwardPath;
  readonly #ends = new Map<string, End>();

  constructor(table: FilterTable, link: string, path: ForwardPath) {
    this.#table = table;
    this.#link = link;
    this.#path = path;
  }

  through(chain: FilterChain, depth = 0): End {
    const known = this.#ends.get(chain.name);
    if (known) return known;
    if (depth > deepest) return { is: 'let' };
    // The kernel knows no rings; should we be shown one, it ends here.
    this.#ends.set(chain.name, { is: 'let' });
    const end = this.#follow(chain, depth);
    this.#ends.set(chain.name, end);
    return end;
  }

  #follow(chain: FilterChain, depth: number): End {
    for (const rule of chain.rules) {
      const { verdict } = rule;
      const answer = evaluateRule(rule, this.#path);
      if (answer === 'no' || verdict.does === 'none') continue;
      if (answer === 'maybe') {
        const opens = verdict.does === 'accept' || 'chain' in verdict;
        if (opens && isAboutPath(rule, this.#path, this.#link)) return { is: 'let' };
        continue;
      }
      if (!('chain' in verdict)) {
        if (verdict.does === 'return') return { is: 'passed' };
        if (verdict.does !== 'drop' && verdict.does !== 'reject') return { is: 'let' };
        return { is: 'dropped', by: chain, rejects: verdict.does === 'reject' };
      }
      const next = this.#table.chains.get(verdict.chain);
      const end: End = next ? this.through(next, depth + 1) : { is: 'let' };
      if (end.is !== 'passed' || verdict.does === 'goto') return end;
    }
    return { is: 'passed' };
  }
}
