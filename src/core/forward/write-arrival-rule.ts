import { hostPrefix } from '../net/cidr.ts';
import type { ArrivalRule } from './arrival-rules.ts';
import type { FirewallRule } from './firewall-rule.ts';
import { protocolOf, writeEnds, writeLinks, writeOne } from './nft-words.ts';

const chainsOf = {
  'refuse-source-routes': 'arriving',
  'accept-session': 'arriving',
  'refuse-neighbours': 'arriving',
  'refuse-outside-lan': 'arriving',
  'refuse-other-destinations': 'arriving',
  'refuse-other-addresses': 'arriving',
  'refuse-other-addresses-untracked': 'arriving',
  'refuse-redirected': 'redirected',
  'refuse-family': 'arriving',
  'refuse-family-begun': 'arriving',
  'refuse-family-untracked': 'arriving',
} as const satisfies Record<ArrivalRule['rule'], string>;

export function isArrivalRule(rule: FirewallRule): rule is ArrivalRule {
  return rule.rule in chainsOf;
}

export function arrivalChainOf({ rule }: ArrivalRule): 'arriving' | 'redirected' {
  return chainsOf[rule];
}

/**
 * Writes a rule in nft's words. A packet that conntrack does not follow has no direction, and would pass a rule that names one: such a
 * rule has a second one for these packets.
 */
export function writeArrivalRule(link: string, rule: ArrivalRule): string {
  const outOf = `iifname "${link}"`;
  switch (rule.rule) {
    case 'refuse-source-routes':
      return `ip option ${rule.option} exists drop`;
    case 'accept-session':
      return `${writeEnds({ from: [hostPrefix(rule.address)], to: [hostPrefix(rule.local)] })} tcp flags & (fin|syn|rst|ack) != syn accept`;
    case 'refuse-neighbours':
      return `${protocolOf(rule.at)} daddr ${rule.at} iifname != ${writeLinks(rule.except)} drop`;
    case 'refuse-outside-lan':
      return `iifname ${writeLinks(rule.by)} ${protocolOf(rule.at)} daddr ${rule.at} ${writeOne('saddr', rule.from, '!= ')} drop`;
    case 'refuse-other-destinations':
      return `${outOf} ${writeOne('daddr', rule.except, '!= ')} drop`;
    case 'refuse-other-addresses':
      return `${outOf} ${begun} ${writeOthers(rule)} drop`;
    case 'refuse-other-addresses-untracked':
      return `${outOf} ${untracked} ${writeOthers(rule)} drop`;
    case 'refuse-redirected': {
      const within = rule.within.length === 0 ? '' : ` ct original ${writeOne('daddr', rule.within)}`;
      return `${outOf} ${begun} ct status dnat ct original ${writeOne('daddr', rule.except, '!= ')}${within} drop`;
    }
    case 'refuse-family':
      return `${outOf} ${writeOne('daddr', [rule.except], '!= ')} drop`;
    case 'refuse-family-begun':
      return `${outOf} ${begun} ${writeOne('daddr', [rule.except], '!= ')} drop`;
    case 'refuse-family-untracked':
      return `${outOf} ${untracked} ${writeOne('daddr', [rule.except], '!= ')} drop`;
  }
}

const begun = 'ct direction original';
const untracked = 'ct state { invalid, untracked }';

function writeOthers({ except, own }: Extract<ArrivalRule, { readonly own: unknown }>): string {
  const others = own === null ? 'fib daddr type local' : writeOne('daddr', own.map(hostPrefix));
  return `${writeOne('daddr', except, '!= ')} ${others}`;
}
