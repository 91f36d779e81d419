import type { FilterChain, FilterTable } from './chain.ts';

/** A program that makes tables of packet rules, known by the names in them. */
export type FirewallProgram = 'docker' | 'firewalld' | 'ufw' | 'iptables';

/** Who probably made a table, seen from the chain in it that drops. */
export function nameProgram({ family, name, chains }: FilterTable, culprit: FilterChain): FirewallProgram | null {
  if (name === 'firewalld') return 'firewalld';
  if (family !== 'ip' || name !== 'filter') return null;
  if (culprit.name.startsWith('ufw-')) return 'ufw';
  // It comes first in the chain, so that what it lets through never meets the others.
  if (chains.has('DOCKER-USER')) return 'docker';
  if (chains.has('ufw-user-forward')) return 'ufw';
  return chains.has('FORWARD') ? 'iptables' : null;
}

/** What to type so that packets of the tunnel are let through: this host's own table refuses what is not advertised. */
export function adviseRemedy(
  author: FirewallProgram | null,
  { family, name }: FilterTable,
  base: FilterChain,
  link: string,
): string {
  switch (author) {
    case 'docker':
      return `"iptables -I DOCKER-USER -i ${link} -j ACCEPT && iptables -I DOCKER-USER -o ${link} -j ACCEPT" lets them through`;
    case 'firewalld':
      return `"firewall-cmd --permanent --zone=trusted --add-interface=${link} && firewall-cmd --reload" lets them through`;
    case 'ufw':
      return `"ufw route allow in on ${link}" lets them through`;
    case 'iptables':
      return `"iptables -I FORWARD -i ${link} -j ACCEPT && iptables -I FORWARD -o ${link} -j ACCEPT" lets them through`;
    case null: {
      // A name that a shell would read otherwise is none to type.
      if (![name, base.name].every((each) => /^[a-zA-Z_][\w.-]*$/.test(each))) return `let ${link} through there`;
      const insert = (field: string) => `nft insert rule ${family} ${name} ${base.name} ${field} ${link} accept`;
      return `"${insert('iifname')} && ${insert('oifname')}" lets them through`;
    }
  }
}
