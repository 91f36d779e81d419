import { printable } from '../../errors/index.ts';
import { addressAt, type Prefix } from '../../net/cidr.ts';
import type { ComparedRange, NamedSet, Unread } from './chain.ts';
import type { Bypass } from './find-bypasses.ts';
import type { ForwardDrop } from './find-drops.ts';
import type { InboundDrop } from './find-inbound-drop.ts';

/** The most prefixes in a message; a connector may have many routes. */
const mostNamed = 5;

export function describeDrop(drop: ForwardDrop): string {
  const { author, reason, paths, some } = drop;
  const by = author === null ? '' : `, probably made by ${author}`;
  const whole = describePaths(paths);
  const which = some.length === 0 ? whole : `to some of ${whole.replace(/^to /, '')} (${listRanges(some)})`;
  return `packets ${which} do not get through ${nameTable(drop)}${by} (${reason})`;
}

export function nameTable({ family, table, isLegacy }: Pick<ForwardDrop, 'family' | 'table' | 'isLegacy'>): string {
  return isLegacy ? `table ${table} of iptables-legacy` : `nft table ${family} ${table}`;
}

export function describeBypass(bypass: Bypass): string {
  const where = `${nameTable(bypass)} (chain ${bypass.chain})`;
  return bypass.effect === 'untracks'
    ? `${where} may leave packets of the tunnel untracked: such a connection is refused, also if a rule allows it`
    : `${where} puts connections of the tunnel into a flowtable: they go on after their rule has gone`;
}

function listRanges(ranges: readonly ComparedRange[]): string {
  const texts = ranges.map(({ first, last }) =>
    first === last ? addressAt(first) : `${addressAt(first)}-${addressAt(last)}`,
  );
  const all = [...new Set(texts)];
  const more = all.length - mostNamed;
  return `${all.slice(0, mostNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function describePaths(paths: ForwardDrop['paths']): string {
  const out = paths.filter(({ state, from, to }) => state === 'new' && from !== to).map(({ to }) => to);
  const back = paths.filter(({ state, from, to }) => state === 'established' && from !== to).map(({ from }) => from);
  const between = paths.some(({ from, to }) => from === to);
  if (out.length > 0 && list(out) === list(back) && !between) return `to and from ${list(out)}`;
  const parts = [
    ...(out.length > 0 ? [`to ${list(out)}`] : []),
    ...(back.length > 0 ? [`back from ${list(back)}`] : []),
    ...(between ? ['from one peer to another'] : []),
  ];
  return parts.join(' and ');
}

function list(prefixes: readonly Prefix[]): string {
  const all = [...new Set(prefixes)];
  const more = all.length - mostNamed;
  return `${all.slice(0, mostNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Describes rules that could not be read, and the command that shows them; null without any. */
export function describeUnread(rules: readonly Unread[]): { readonly found: string; readonly remedy: string } | null {
  const [set, ...others] = rules.filter((each): each is NamedSet => each.kind !== 'legacy');
  if (set !== undefined) {
    const name = printable(`${set.kind} ${set.family} ${set.table} ${set.name}`);
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    return {
      found: `whether rules with the nft ${name}${more} drop packets is unknown: it is too large to read here`,
      remedy: `see whether it has their addresses: nft list ${name}`,
    };
  }
  if (rules.length === 0) return null;
  const found =
    'nft shows none that drops packets; the rules of iptables-legacy, which it does not show, cannot be read';
  return { found, remedy: 'see what they drop: iptables-legacy -S' };
}

export function describeInbound(drop: InboundDrop): string {
  return `${describeCause(drop)}: other hosts cannot start a session with this one`;
}

export function describeCause(drop: InboundDrop): string {
  const { author, rejects, port, reason } = drop;
  const place = nameTable(drop);
  const by = author === null || author === 'iptables' ? place : author;
  const where = by === place ? reason : `${place}, ${reason}`;
  return `${by} ${rejects ? 'rejects' : 'drops'} UDP to port ${port} (${where})`;
}

/** Describes what accepts the packets. `link` is the interface of the tunnel. */
export function describeRemedy({ author, port, command }: InboundDrop, link: string): string {
  if (command === null) return `accept UDP to port ${port} there`;
  const isAsked = author === 'ufw' || author === 'firewalld';
  return isAsked ? `"cpn set ${link} --open-firewall" or "${command}" lets it in` : `"${command}" lets it in`;
}
