import { InvalidValue } from '../errors/index.ts';
import type { Prefix } from '../net/cidr.ts';
import { formatEndpoint, parseEndpoint, parseHost } from '../net/endpoint.ts';
import type { PrefixMap } from './prefix-maps.ts';

/** Until an operator accepts a new key, `report` uses and reports it; `strict` uses the old key. */
export type PinRule = (typeof pinRules)[number];

export const pinRules = ['report', 'strict'] as const;

/** An option's values and default. A number or period without a default is null if not named. */
export type OptionRule =
  | { readonly kind: 'switch'; readonly byDefault: boolean }
  | { readonly kind: 'choice'; readonly words: readonly [string, ...string[]]; readonly byDefault: string }
  /** A period is in seconds. */
  | { readonly kind: 'number' | 'period'; readonly min: number; readonly max: number }
  | { readonly kind: 'prefixes' | 'probes' | 'maps' };

/**
 * A host's options in a network. With `cli/parse/host-options.ts`, which has their flags, this
 * table defines the options of `join`, `set` and `export`, their defaults, and the state file.
 */
export const optionRules = {
  listenPort: { kind: 'number', min: 1, max: 65_535 },
  mtu: { kind: 'number', min: 576, max: 9000 },
  acceptRoutes: { kind: 'switch', byDefault: true },
  masquerade: { kind: 'switch', byDefault: true },
  /** Prefixes that the guard must accept. */
  allowRoutes: { kind: 'prefixes' },
  /** Hosts behind a connector's routes, by which it determines whether its LAN works. */
  probes: { kind: 'probes' },
  /** Routes of a connector that stand for prefixes of its LANs with other addresses. */
  maps: { kind: 'maps' },
  /** True if the hosts file names the peers. */
  hosts: { kind: 'switch', byDefault: false },
  /** What happens to a peer whose public key changed without a signed proof. */
  pin: { kind: 'choice', words: pinRules, byDefault: 'report' },
  /** Seconds after which the daemon creates a new key pair; null for never. The minimum is high
   * because a rotation interrupts the tunnel briefly. */
  rotateEvery: { kind: 'period', min: 3_600, max: 3_650 * 86_400 },
  /** True if the resolver of this host has the names of peers, and of domains behind routes. */
  dns: { kind: 'switch', byDefault: true },
  /** True if ufw and firewalld, while they are active, must accept UDP to the listen port. */
  openFirewall: { kind: 'switch', byDefault: false },
  /** True if a full tunnel also takes what other routes, such as those of DHCP, lead elsewhere. */
  strictTunnel: { kind: 'switch', byDefault: false },
  /** True if a host with a full tunnel sends IPv6 outside. Otherwise it rejects IPv6. */
  allowIpv6Outside: { kind: 'switch', byDefault: false },
  /** True if peers that try for a direct path receive the addresses of this host's links. */
  localCandidates: { kind: 'switch', byDefault: true },
  /** True if this host tries for direct paths. Otherwise its peers learn no endpoint of it. */
  directPaths: { kind: 'switch', byDefault: true },
} as const satisfies Readonly<Record<string, OptionRule>>;

type OptionValue<Rule extends OptionRule> = Rule extends { kind: 'switch' }
  ? boolean
  : Rule extends { kind: 'choice'; words: readonly (infer Word)[] }
    ? Word
    : Rule extends { kind: 'prefixes' }
      ? readonly Prefix[]
      : Rule extends { kind: 'probes' }
        ? readonly ProbeTarget[]
        : Rule extends { kind: 'maps' }
          ? readonly PrefixMap[]
          : number | null;

export type Options = { readonly [Name in keyof typeof optionRules]: OptionValue<(typeof optionRules)[Name]> };

/** The value of an option that is not named. */
export function defaultOf(rule: OptionRule): Options[keyof Options] {
  if (rule.kind === 'switch') return rule.byDefault;
  if (rule.kind === 'choice') return rule.byDefault as PinRule;
  return rule.kind === 'number' || rule.kind === 'period' ? null : [];
}

/** The options of a host that names none. */
export const defaultOptions = Object.fromEntries(
  Object.entries(optionRules).map(([name, rule]) => [name, defaultOf(rule)]),
) as Options;

/** True if this host resolves the names of peers. */
export function resolvesNames({ dns, hosts }: Pick<Options, 'dns' | 'hosts'>): boolean {
  return dns || hosts;
}

/** A host behind a connector that answers while its LAN works, at a TCP port or to ICMP echoes. */
export interface ProbeTarget {
  /** A DNS name or an address. */
  readonly host: string;
  readonly port: number | null;
}

/** The most processes and connections that a round may start at once. */
export const mostProbes = 16;

/** Parses `HOST:PORT` or `HOST`; an IPv6 address with a port is in brackets. */
export function parseProbeTarget(text: string, field = 'probe'): ProbeTarget {
  try {
    return { host: parseHost(text, field), port: null };
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    return parseEndpoint(text, field);
  }
}

/** Formats a target for {@link parseProbeTarget}. */
export function formatProbeTarget({ host, port }: ProbeTarget): string {
  return port === null ? host : formatEndpoint({ host, port });
}
