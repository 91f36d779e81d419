import { printable } from '../../errors/index.ts';
import { tableOf } from '../own-table.ts';
import {
  evaluateRule,
  type FilterChain,
  type FilterRule,
  type FilterTable,
  findUnread,
  pathAt,
  type RuleMatch,
} from './chain.ts';
import type { OnUnread } from './find-drops.ts';
import type { InboundPath } from './inbound-path.ts';
import { adviseAdmission, nameInboundProgram } from './inbound-remedy.ts';
import type { FirewallProgram } from './remedy.ts';

/** Rules of another program that certainly drop the first packet of an incoming session. */
export interface InboundDrop {
  /** The UDP port at which WireGuard listens. */
  readonly port: number;
  readonly family: FilterTable['family'];
  /** The table, safe to print, as is the reason. */
  readonly table: string;
  readonly isLegacy?: true;
  readonly reason: string;
  readonly rejects: boolean;
  /** The program that probably created the table; null if its names do not show it. */
  readonly author: FirewallProgram | null;
  /** The command that accepts these packets; null if no command can be given. */
  readonly command: string | null;
}

/**
 * Finds rules that close all paths to the listen port. A rule that may accept packets keeps a path
 * open. `onUnread` receives each set without which the verdict for a path is unknown.
 */
export function findInboundDrop(
  tables: readonly FilterTable[],
  paths: readonly InboundPath[],
  onUnread: OnUnread = () => {},
): InboundDrop | null {
  const foreign = tables.filter(({ family, name }) => family !== 'inet' || !name.startsWith(tableOf('')));
  const drops = paths.map((path) => findOnPath(foreign, path, onUnread));
  const [first = null] = drops;
  return drops.includes(null) ? null : first;
}

function findOnPath(tables: readonly FilterTable[], path: InboundPath, onUnread: OnUnread): InboundDrop | null {
  for (const table of tables) {
    for (const base of table.chains.values()) {
      if (base.hook !== 'input' && base.hook !== 'prerouting') continue;
      const ends = new InboundTraversal(table, pathAt(base, path), onUnread).through(base);
      if (ends.mayAccept || (ends.mayPass && base.policy === 'accept')) continue;
      return describe(table, base, ends, path);
    }
  }
  return null;
}

function describe(
  table: FilterTable,
  base: FilterChain,
  { mayPass, drops }: ChainEnds,
  { port }: InboundPath,
): InboundDrop {
  const last = drops.at(-1);
  const culprit = mayPass || last === undefined ? null : last;
  const chain = culprit?.chain ?? base;
  const author = nameInboundProgram(table, chain);
  return {
    port,
    family: table.family,
    table: printable(table.name),
    ...(table.isLegacy && { isLegacy: true }),
    reason: culprit === null ? `policy drop of chain ${printable(base.name)}` : `chain ${printable(chain.name)}`,
    rejects: culprit?.rejects ?? false,
    author,
    command: adviseAdmission(author, { table, base, culprit: chain }, port),
  };
}

/** All possible outcomes for the packets in a chain. */
interface ChainEnds {
  /** Also true for an unknown outcome. */
  readonly mayAccept: boolean;
  /** True if they may reach the end of the chain, or a rule that returns. */
  readonly mayPass: boolean;
  /** The chains whose rules may drop them, in the order of the rules. */
  readonly drops: readonly { readonly chain: FilterChain; readonly rejects: boolean }[];
}

const unknown: ChainEnds = { mayAccept: true, mayPass: true, drops: [] };

/** The kernel's limit for nested chains (NFT_JUMP_STACK_SIZE in net/netfilter/nf_tables.h). */
const deepest = 16;

/** Follows the packets of one path through one table, by each rule that may match them. */
class InboundTraversal {
  readonly #table: FilterTable;
  readonly #path: InboundPath;
  readonly #ends = new Map<string, ChainEnds>();
  readonly #onUnread: OnUnread;

  constructor(table: FilterTable, path: InboundPath, onUnread: OnUnread) {
    this.#onUnread = onUnread;
    this.#table = table;
    this.#path = path;
  }

  through(chain: FilterChain, depth = 0): ChainEnds {
    const known = this.#ends.get(chain.name);
    if (known) return known;
    // The kernel accepts no cycles of chains. If the output shows one, it ends here.
    this.#ends.set(chain.name, unknown);
    const ends = depth > deepest ? unknown : this.#follow(chain, depth);
    this.#ends.set(chain.name, ends);
    return ends;
  }

  #follow(chain: FilterChain, depth: number): ChainEnds {
    let mayAccept = false;
    let mayReturn = false;
    const drops: ChainEnds['drops'][number][] = [];
    for (const rule of chain.rules) {
      const answer = evaluateInbound(rule, this.#path);
      if (answer === 'no') continue;
      findUnread(rule, this.#path).forEach(this.#onUnread);
      const ends = this.#endsOf(rule, chain, depth);
      mayAccept ||= ends.mayAccept;
      drops.push(...ends.drops);
      const { does } = rule.verdict;
      const leaves = does === 'return' || does === 'goto';
      if (leaves && ends.mayPass) mayReturn = true;
      if (answer === 'yes' && (leaves || !ends.mayPass)) return { mayAccept, mayPass: mayReturn, drops };
    }
    return { mayAccept, mayPass: true, drops };
  }

  #endsOf({ verdict }: FilterRule, chain: FilterChain, depth: number): ChainEnds {
    switch (verdict.does) {
      case 'accept':
        return { mayAccept: true, mayPass: false, drops: [] };
      case 'drop':
      case 'reject':
        return { mayAccept: false, mayPass: false, drops: [{ chain, rejects: verdict.does === 'reject' }] };
      case 'return':
      case 'none':
        return { mayAccept: false, mayPass: true, drops: [] };
      case 'unknown':
        return unknown;
      case 'jump':
      case 'goto': {
        const next = this.#table.chains.get(verdict.chain);
        return next ? this.through(next, depth + 1) : unknown;
      }
    }
  }
}

/** nft hides iptables' states: a rule that accepts by state counts only for known connections. */
function evaluateInbound(rule: FilterRule, path: InboundPath): RuleMatch {
  const { conditions, verdict } = rule;
  const isForKnown = conditions.length > 0 && conditions.every(({ on }) => on === 'some state');
  return verdict.does === 'accept' && isForKnown ? 'no' : evaluateRule(rule, path);
}
