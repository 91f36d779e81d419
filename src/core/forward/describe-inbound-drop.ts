import type { InboundDrop } from './find-inbound-drop.ts';

/** A drop as a sentence for a person: what is dropped, by which rules, what follows, and what to type. */
export function describeInbound(drop: InboundDrop, link: string): string {
  return `${describeCause(drop)}: other hosts cannot start a session with this one; ${describeRemedy(drop, link)}`;
}

/** What is dropped, and by which rules. */
export function describeCause({ author, rejects, port, family, table, reason }: InboundDrop): string {
  const place = `nft table ${family} ${table}`;
  const by = author === null || author === 'iptables' ? place : author;
  const where = by === place ? reason : `${place}, ${reason}`;
  return `${by} ${rejects ? 'rejects' : 'drops'} UDP to port ${port} (${where})`;
}

/** What lets it in; `link` is the interface of the tunnel. */
export function describeRemedy({ author, port, command }: InboundDrop, link: string): string {
  if (command === null) return `accept UDP to port ${port} there`;
  const isAsked = author === 'ufw' || author === 'firewalld';
  return isAsked ? `"cpn set ${link} --open-firewall" or "${command}" lets it in` : `"${command}" lets it in`;
}
