import { outsideMark, wholeMarkBits } from '../host-state/marks.ts';
import type { Address } from '../net/cidr.ts';
import type { FirewallRule } from './firewall-rule.ts';
import type { ReturnPathRule } from './return-path-rules.ts';

const chainsOf = {
  'restore-arriving': 'returning',
  'mark-outside': 'returning',
  'mark-redirected': 'returning',
  'restore-sent': 'answering',
} as const satisfies Record<ReturnPathRule['rule'], string>;

export function isReturnPathRule(rule: FirewallRule): rule is ReturnPathRule {
  return rule.rule in chainsOf;
}

export function returnPathChainOf({ rule }: ReturnPathRule): 'returning' | 'answering' {
  return chainsOf[rule];
}

const bit = `0x${outsideMark.toString(16)}`;
const setsMark = `meta mark set meta mark | ${bit}`;

/** Marks of programs that compare the whole mark stay as they are. */
const isFree = (mark: 'ct mark' | 'meta mark') => `${mark} & 0x${wholeMarkBits.toString(16)} == 0x0`;

/** Writes a rule in nft's words. A connection that began before the table was there is marked by its next packet from outside. */
export function writeReturnPathRule(link: string, rule: ReturnPathRule): string {
  switch (rule.rule) {
    case 'restore-arriving':
      return restores;
    case 'restore-sent':
      // The kernel looks up the route of each packet again whose mark changes: only of those that would enter the tunnel.
      return `oifname "${link}" ${restores}`;
    case 'mark-outside':
      return `${writeBegun(link, rule.except)} fib daddr type local ${marksConnection}`;
    case 'mark-redirected': {
      const to = rule.range === null ? `fib daddr oifname != "${link}"` : `ip daddr ${rule.range}`;
      return `${writeBegun(link, rule.except)} ct status dnat ${to} ${marksConnection}`;
    }
  }
}

const restores = `ct mark & ${bit} == ${bit} ${isFree('meta mark')} ${setsMark} accept`;
const marksConnection = `${isFree('ct mark')} ${isFree('meta mark')} ct mark set ct mark | ${bit} ${setsMark} accept`;

/** A packet of the side that began the connection, which came in from outside. */
function writeBegun(link: string, except: Address): string {
  return `meta nfproto ipv4 iifname != { "lo", "${link}" } ct direction original ct original ip daddr != ${except}`;
}
