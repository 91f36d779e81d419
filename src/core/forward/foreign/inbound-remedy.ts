import type { FilterChain, FilterTable } from './chain.ts';
import { endPanicMode, type FirewallProgram, iptablesOf, isPanicking, panicMode } from './remedy.ts';

interface DropPlace {
  readonly table: FilterTable;
  /** The chain at the hook. */
  readonly base: FilterChain;
  /** The chain whose rule or policy dropped them. */
  readonly culprit: FilterChain;
}

/** The likely creator of a table, by the chain that drops. Docker filters no incoming packets. */
export function nameInboundProgram(table: FilterTable, culprit: FilterChain): FirewallProgram | null {
  const { family, name, chains } = table;
  if (isPanicking(table)) return panicMode;
  if (name === 'firewalld') return 'firewalld';
  if (family !== 'ip') return null;
  if ((name === 'raw' || name === 'mangle') && chains.has('PREROUTING')) return 'iptables';
  if (name !== 'filter') return null;
  if (culprit.name.startsWith('ufw-') || chains.has('ufw-user-input')) return 'ufw';
  return chains.has('INPUT') ? 'iptables' : null;
}

/** Returns the command that accepts UDP to a port; null if a name in it is unsafe to type. */
export function adviseAdmission(
  author: FirewallProgram | null,
  { table, base, culprit }: DropPlace,
  port: number,
): string | null {
  switch (author) {
    case 'ufw':
      return `ufw allow ${port}/udp`;
    case 'firewalld': {
      // firewalld names chains by zone, such as `filter_IN_public`.
      const zone = /^filter_IN_([a-zA-Z0-9-]+)(?:_[a-z]+)?$/.exec(culprit.name)?.[1];
      const add = `${zone ? `--zone=${zone} ` : ''}--add-port=${port}/udp`;
      return `firewall-cmd ${add} && firewall-cmd --permanent ${add}`;
    }
    case panicMode:
      return endPanicMode;
    case 'iptables':
      if (base.hook === 'prerouting') {
        return `${iptablesOf(table)} -t ${table.name} -I ${base.name} -p udp --dport ${port} -j ACCEPT`;
      }
      return `${iptablesOf(table)} -I INPUT -p udp --dport ${port} -j ACCEPT`;
    default: {
      const isPlain = [table.name, base.name].every((name) => /^[a-zA-Z_][\w.-]*$/.test(name));
      return isPlain ? `nft insert rule ${table.family} ${table.name} ${base.name} udp dport ${port} accept` : null;
    }
  }
}
