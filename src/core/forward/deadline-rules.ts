import type { NetworkMap, Peer } from '../map/model.ts';
import { type Address, type Family, familyOf } from '../net/cidr.ts';
import { probedPort } from '../rules/evaluate.ts';
import { type ExpiringRange, findExpiringRanges, type TunnelPeer } from './expiring-ranges.ts';
import { protocolOf } from './nft-words.ts';
import { type PacketRule, writeRange } from './packet-rule.ts';

/**
 * A connector's reply to a probe. `closed`: its map is out of date, so it serves nothing. Linux
 * reports that rule's ICMP error, "protocol unreachable", as ENOPROTOOPT, which has no other cause.
 */
export type ConnectorAnswer = 'open' | 'closed' | 'silent';

/** The ranges of peers that expire, and the ranges among them that have not expired yet. */
const rangeSets = {
  4: { expiring: 'expiring', unexpired: 'unexpired' },
  6: { expiring: 'expiring6', unexpired: 'unexpired6' },
} as const satisfies Record<Family, object>;

/** The tunnel, while the map is valid. */
const valid = 'valid';

/** nft and the kernel limit timeouts. A longer timeout is as good as none. */
const longestSeconds = 3650 * 86_400;

/** The interface match and the address of the peer, for packets out of the tunnel and into it. */
const directions = [
  { inward: true, name: 'iifname', end: 'saddr' },
  { inward: false, name: 'oifname', end: 'daddr' },
] as const;

/**
 * Refuses packets from expired peers to or through this host, and packets to them; empty if no peer
 * expires. The kernel removes the set element that keeps a rule open, so the rule closes at its
 * deadline even without a daemon. `tunnel` has WireGuard's peers.
 */
export function expiryRules(
  link: string,
  { peers }: NetworkMap,
  self: Peer,
  tunnel: readonly TunnelPeer[],
): readonly PacketRule[] {
  const expiring = peers.filter(({ id, expiresAt }) => id !== self.id && expiresAt !== undefined);
  if (expiring.length === 0) return [];
  return refuseExpired(link, findExpiringRanges(tunnel, expiring));
}

/** Refuses both directions of these ranges, each from its instant on. */
export function refuseExpired(link: string, ranges: readonly ExpiringRange[]): PacketRule[] {
  const byFamily = Map.groupBy(ranges, ({ first }) => familyOf(first));
  return [...byFamily].flatMap(([family, ofFamily]) => {
    const { expiring, unexpired } = rangeSets[family];
    return directions.map(({ inward, name, end }): PacketRule => {
      const field = `${family === 4 ? 'ip' : 'ip6'} ${end}`;
      const text = `${name} "${link}" ${field} @${expiring} ${field} != @${unexpired} drop`;
      const chain = inward ? 'arriving' : 'forward';
      return { name: 'refuse-expired', chain, text, deadline: { ranges: ofFamily } };
    });
  });
}

/**
 * Once the map is out of date, these rules refuse forwarding from and into the tunnel. They also
 * refuse probes to the own address `at`, with an error that only this rule sends, so that another
 * connector takes over. Empty if the map stays valid.
 */
export function ageRules(link: string, until: number | null, at: Address): readonly PacketRule[] {
  if (until === null) return [];
  const deadline = { until };
  const answer = familyOf(at) === 4 ? 'icmp type prot-unreachable' : 'icmpv6 type addr-unreachable';
  const probe = `${protocolOf(at)} daddr ${at} tcp dport ${probedPort}`;
  return [
    ...directions.map(({ name }): PacketRule => {
      const text = `${name} "${link}" ${name} != @${valid} drop`;
      return { name: 'refuse-outdated', chain: 'forward', text, deadline };
    }),
    {
      name: 'refuse-probes',
      chain: 'probed',
      text: `iifname "${link}" iifname != @${valid} ${probe} reject with ${answer}`,
      deadline,
    },
  ];
}

/**
 * Writes these rules' sets, whose elements keep open what has not ended. `now` is milliseconds
 * since 1970 by the service's clock; null closes everything.
 */
export function writeSets(link: string, rules: readonly PacketRule[], now: number | null): string[] {
  const withTimeout = (element: string, at: number) => {
    const seconds = now === null ? 0 : Math.min(Math.ceil((at - now) / 1000), longestSeconds);
    return seconds > 0 ? [`${element} timeout ${formatSeconds(seconds)}`] : [];
  };
  const sets = rules.flatMap(({ deadline }) => {
    if (deadline === undefined) return [];
    if ('until' in deadline) {
      return [writeSet(valid, 'ifname', 'timeout', withTimeout(`"${link}"`, deadline.until))];
    }
    const { ranges } = deadline;
    const { family, expiring, unexpired } = setsOf(ranges);
    const open = ranges.flatMap((range) => withTimeout(writeRange(range), range.at));
    return [
      writeSet(expiring, `ipv${family}_addr`, 'interval', ranges.map(writeRange)),
      writeSet(unexpired, `ipv${family}_addr`, 'interval, timeout', open),
    ];
  });
  // The rules of both directions use the same sets.
  return [...new Set(sets)];
}

/** Returns the timeout in seconds of each element now, by `set element`; 0 once ended. */
export function timeoutsOf(link: string, rules: readonly PacketRule[], now: number): ReadonlyMap<string, number> {
  const left = (at: number) => Math.max(0, Math.min((at - now) / 1000, longestSeconds));
  return new Map(
    rules.flatMap(({ deadline }): [string, number][] => {
      if (deadline === undefined) return [];
      if ('until' in deadline) return [[`${valid} ${link}`, left(deadline.until)]];
      const { unexpired } = setsOf(deadline.ranges);
      return deadline.ranges.map(({ first, at }) => [`${unexpired} ${first}`, left(at)]);
    }),
  );
}

/** The ranges of a rule are all of one family. */
function setsOf(ranges: readonly ExpiringRange[]) {
  const family: Family = ranges[0] === undefined ? 4 : familyOf(ranges[0].first);
  return { family, ...rangeSets[family] };
}

function writeSet(name: string, type: string, flags: string, elements: readonly string[]): string {
  const content = elements.length === 0 ? '' : `elements = { ${elements.join(', ')} } `;
  return `  set ${name} { type ${type}; flags ${flags}; ${content}}\n`;
}

/** Separates days: nft reads at most eight digits of a unit. */
function formatSeconds(seconds: number): string {
  const days = Math.floor(seconds / 86_400);
  const rest = seconds % 86_400;
  return `${days > 0 ? `${days}d` : ''}${rest > 0 || days === 0 ? `${rest}s` : ''}`;
}
