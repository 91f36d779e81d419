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
} from './chain.ts';
import { pathAt } from './hook-path.ts';
import type { ForwardPath, PacketPath } from './path.ts';
import { adviseRemedy, type FirewallProgram, isDocker, isDockerChain, nameProgram } from './remedy.ts';

/** A table of another program that surely drops packets which a connector is there to forward. */
export interface ForwardDrop {
  readonly family: FilterTable['family'];
  /** The table, and its chain at the hook; fit to be printed, like the reason. */
  readonly table: string;
  readonly chain: string;
  readonly isLegacy?: true;
  readonly reason: string;
  /** Docker lets through what is for published ports of containers. */
  readonly letsPublished?: true;
  /** The program that probably made the table; null where it is unknown. */
  readonly author: FirewallProgram | null;
  /** What a person can do about it. */
  readonly remedy: string;
  /** The ways that it closes. */
  readonly paths: readonly ForwardPath[];
  /** The addresses to which it closes them, where those are not all. */
  readonly some: readonly ComparedRange[];
}

/**
 * Finds who drops packets on their ways through this host, at any hook. A packet must be let through by each chain at a hook, so that
 * ours cannot make up for another. Of a rule of which it cannot be said whether it is for a path's packets, nothing is concluded, except
 * that one which lets some of them through, and names the tunnel or an end of the path, shows that an operator decided on the rest.
 *
 * @param link the interface of the tunnel
 * @param onUnread receives each set without which the verdict for a path is not known; such a path is not reported as dropped
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

/** Receives a set that was not read. */
export type OnUnread = (set: NamedSet) => void;

interface DropSearch {
  readonly onUnread: OnUnread;
  readonly link: string;
  readonly paths: readonly ForwardPath[];
  /** Docker has tables here: it closes its networks in others too. */
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

/** `let` for what is let through, and where the result is unknown. */
type PathEnd =
  | { readonly is: 'let' | 'passed' }
  | { readonly is: 'dropped'; readonly by: FilterChain; readonly rejects: boolean };

/** As deep as the kernel lets chains lead to chains (NFT_JUMP_STACK_SIZE in net/netfilter/nf_tables.h). */
const deepest = 16;

/** The way of one path's packets through one table; each chain is looked at once, however many rules lead to it. */
class PathTraversal {
  readonly #table: FilterTable;
  readonly #link: string;
  readonly #path: PacketPath;
  readonly #ends = new Map<string, PathEnd>();
  /** Addresses of the path to which surely no packet goes on, and the chain that drops those. */
  readonly some: { ranges: ComparedRange[]; by: FilterChain | null } = { ranges: [], by: null };
  /** The packets were dropped because they came in by another interface than that of the network they are for. */
  isOfBridge = false;
  /** A rule with a set that was not read may let the packets through. */
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
    // The kernel knows no rings; should we be shown one, it ends here.
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
        // What docker accepts itself are the ports that containers publish.
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
