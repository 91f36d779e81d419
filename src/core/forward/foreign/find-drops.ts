import { printable } from '../../errors/index.ts';
import { tableOf } from '../own-table.ts';
import {
  type ComparedRange,
  evaluateRule,
  type FilterChain,
  type FilterRule,
  type FilterTable,
  findUnread,
  isAboutPath,
  isDropping,
  matchSome,
  type NamedSet,
  pathAt,
} from './chain.ts';
import type { ForwardPath, PacketPath } from './path.ts';
import { adviseRemedy, type FirewallProgram, isDocker, isDockerChain, nameProgram } from './remedy.ts';

/** A table of another program that certainly drops packets that the connector must forward. */
export interface ForwardDrop {
  readonly family: FilterTable['family'];
  /** The table, and its chain at the hook. Both are safe to print, as is the reason. */
  readonly table: string;
  readonly chain: string;
  readonly isLegacy?: true;
  readonly reason: string;
  /** Set if Docker accepts packets to published ports of containers. */
  readonly letsPublished?: true;
  /** The program that probably created the table; null if unknown. */
  readonly author: FirewallProgram | null;
  readonly remedy: string;
  readonly paths: readonly ForwardPath[];
  /** The addresses to which it closes them; empty if these are all. */
  readonly some: readonly ComparedRange[];
}

/**
 * Finds drops of forwarded packets, at any hook. Packets must pass each chain, so ours cannot
 * override another. A rule that may match a path proves nothing. Exception: it accepts some packets
 * and names the tunnel or an end of the path, so an operator decided on the rest.
 *
 * @param onUnread receives each set without which the verdict for a path is unknown; such a path is
 *   not reported as dropped
 */
export function findForwardDrops(
  tables: readonly FilterTable[],
  link: string,
  paths: readonly ForwardPath[],
  onUnread: OnUnread = () => {},
): ForwardDrop[] {
  const hasDocker = tables.some(isDocker);
  return tables
    .filter(({ family, name }) => family !== 'inet' || !name.startsWith(tableOf('')))
    .flatMap((table) =>
      [...table.chains.values()]
        .filter(({ hook }) => hook !== null && hook !== 'input')
        .flatMap((chain) => findInChain(table, chain, { link, paths, hasDocker, onUnread })),
    );
}

export type OnUnread = (set: NamedSet) => void;

interface DropSearch {
  readonly onUnread: OnUnread;
  readonly link: string;
  readonly paths: readonly ForwardPath[];
  /** True if Docker has tables here. It then closes its networks in other tables too. */
  readonly hasDocker: boolean;
}

function findInChain(table: FilterTable, base: FilterChain, question: DropSearch): ForwardDrop[] {
  const { link, paths, hasDocker, onUnread } = question;
  const closed = new Map<string, ForwardDrop & { readonly paths: ForwardPath[]; readonly some: ComparedRange[] }>();
  for (const path of paths) {
    const traversal = new PathTraversal(table, link, pathAt(base, path), onUnread);
    const end = traversal.through(base);
    if (traversal.mayLet) continue;
    const isDropped = end.is === 'dropped' || (end.is === 'passed' && base.policy === 'drop');
    const { some } = traversal;
    if (!isDropped && some.ranges.length === 0) continue;
    const culprit = end.is === 'dropped' ? end.by : isDropped ? null : some.by;
    const rejects = end.is === 'dropped' && end.rejects;
    const name = `${culprit?.name ?? ''} ${rejects} ${isDropped}`;
    const known = closed.get(name);
    const ranges = isDropped ? [] : some.ranges;
    if (known) {
      known.paths.push(path);
      known.some.push(...ranges);
      continue;
    }
    const author = nameProgram(table, culprit ?? base, hasDocker && traversal.isOfBridge);
    const letsPublished = culprit !== null && isDockerChain(table, culprit);
    closed.set(name, {
      family: table.family,
      table: printable(table.name),
      chain: printable(base.name),
      ...(table.isLegacy && { isLegacy: true }),
      reason:
        culprit === null
          ? `policy drop of chain ${printable(base.name)}`
          : `chain ${printable(culprit.name)} ${rejects ? 'rejects' : 'drops'} them${letsPublished ? publishedPass : ''}`,
      ...(letsPublished && { letsPublished }),
      author,
      remedy: '',
      paths: [path],
      some: [...ranges],
    });
  }
  return [...closed.values()].map((drop) => ({
    ...drop,
    remedy: adviseRemedy(drop.author, { table, base, link, paths: drop.paths }),
  }));
}

const publishedPass = ', but for published ports';

/** `let` for accepted packets, and for an unknown result. */
type PathEnd =
  | { readonly is: 'let' | 'passed' }
  | { readonly is: 'dropped'; readonly by: FilterChain; readonly rejects: boolean };

/** The kernel's limit for nested chains (NFT_JUMP_STACK_SIZE in net/netfilter/nf_tables.h). */
const deepest = 16;

/** Follows one path through one table. Evaluates each chain once, however many rules lead to it. */
class PathTraversal {
  readonly #table: FilterTable;
  readonly #link: string;
  readonly #path: PacketPath;
  readonly #ends = new Map<string, PathEnd>();
  /** Addresses that certainly no packet reaches, and the chain that drops these packets. */
  readonly some: { ranges: ComparedRange[]; by: FilterChain | null } = { ranges: [], by: null };
  /** True if packets were dropped for arriving by another interface than their network's. */
  isOfBridge = false;
  /** True if a rule with a set that was not read may accept the packets. */
  mayLet = false;
  readonly #onUnread: OnUnread;

  constructor(table: FilterTable, link: string, path: PacketPath, onUnread: OnUnread) {
    this.#onUnread = onUnread;
    this.#table = table;
    this.#link = link;
    this.#path = path;
  }

  through(chain: FilterChain, depth = 0): PathEnd {
    const known = this.#ends.get(chain.name);
    if (known) return known;
    if (depth > deepest) return { is: 'let' };
    // The kernel has no cycles of chains. If the output shows one, it ends here.
    this.#ends.set(chain.name, { is: 'let' });
    const end = this.#follow(chain, depth);
    this.#ends.set(chain.name, end);
    return end;
  }

  #follow(chain: FilterChain, depth: number): PathEnd {
    for (const rule of chain.rules) {
      const { verdict } = rule;
      const answer = evaluateRule(rule, this.#path);
      if (answer === 'no' || verdict.does === 'none') continue;
      if (answer === 'maybe') {
        const unread = findUnread(rule, this.#path);
        unread.forEach(this.#onUnread);
        if (unread.length > 0 && !isDropping(verdict)) this.mayLet = true;
        // Docker's own accept rules are for the ports that containers publish.
        const opens = (verdict.does === 'accept' || 'chain' in verdict) && !isDockerChain(this.#table, chain);
        if (opens && isAboutPath(rule, this.#path, this.#link)) return { is: 'let' };
        this.#noteSome(rule, chain);
        continue;
      }
      if (!('chain' in verdict)) {
        if (verdict.does === 'return') return { is: 'passed' };
        if (verdict.does !== 'drop' && verdict.does !== 'reject') return { is: 'let' };
        this.isOfBridge = rule.conditions.some((condition) => condition.on === 'iif' && condition.not);
        return { is: 'dropped', by: chain, rejects: verdict.does === 'reject' };
      }
      const next = this.#table.chains.get(verdict.chain);
      const end: PathEnd = next ? this.through(next, depth + 1) : { is: 'let' };
      if (end.is !== 'passed' || verdict.does === 'goto') return end;
    }
    return { is: 'passed' };
  }
  #noteSome(rule: FilterRule, chain: FilterChain): void {
    const ranges = isDropping(rule.verdict) ? matchSome(rule, this.#path) : null;
    if (ranges === null) return;
    this.some.ranges.push(...ranges);
    this.some.by ??= chain;
    this.isOfBridge = true;
  }
}
