import type { Actual, LinkDnsSettings } from '../host-state/actual.ts';
import { formatServer, type LinkDns } from '../names/split-dns.ts';
import { added, type ChangeValue, removed, updated } from './change.ts';
import type { Desired } from './desired.ts';
import type { Step } from './step.ts';

/**
 * Plans the DNS settings of the interface. Removes only settings that we made. A host whose
 * resolver has no settings for each interface has no step.
 */
export function planDns(
  { link, dns: wanted, ownsDns }: Pick<Desired, 'link' | 'dns' | 'ownsDns'>,
  { dns }: Actual,
): Step[] {
  if (!dns) return [];
  const own = dns.own;
  if (wanted === null) return own === null || !ownsDns ? [] : [reversal(link, own, 'no domain is behind a route')];
  if (own !== null && isAsWanted(own, wanted)) return [];
  const after = describe(settingsOf(wanted));
  const change =
    own === null
      ? added('dns', link, after, 'domains are behind a route')
      : updated('dns', link, describe(own), after, 'the settings of the interface differ');
  return [{ do: 'set-dns', link, dns: wanted, changes: [change] }];
}

/** Planned if the interface still has our settings. */
export function planDnsRemoval(link: string, { dns }: Actual, reason: string): Step[] {
  return dns?.own ? [reversal(link, dns.own, reason)] : [];
}

/** The settings that {@link planDns} establishes, as the resolver shows them. */
export function settingsOf({ servers, domains }: LinkDns): LinkDnsSettings {
  const routed = domains.map((domain) => `~${domain}`);
  return {
    servers: servers.map(formatServer),
    domains: routed,
    isDefaultRoute: false,
    dnssec: 'no',
    dnsOverTls: 'no',
  };
}

function isAsWanted(own: LinkDnsSettings, wanted: LinkDns): boolean {
  const { servers, domains, ...rest } = settingsOf(wanted);
  const isSame = (one: readonly string[], other: readonly string[]) => one.join() === other.join();
  return (
    isSame(own.servers, servers) &&
    isSame(own.domains.toSorted(), domains.toSorted()) &&
    own.isDefaultRoute === rest.isDefaultRoute &&
    own.dnssec === rest.dnssec &&
    own.dnsOverTls === rest.dnsOverTls
  );
}

function reversal(link: string, own: LinkDnsSettings, reason: string): Step {
  return { do: 'revert-dns', link, changes: [removed('dns', link, describe(own), reason)] };
}

function describe({ servers, domains, isDefaultRoute, dnssec, dnsOverTls }: LinkDnsSettings): ChangeValue {
  return {
    servers,
    domains,
    default_route: isDefaultRoute ? 'yes' : 'no',
    dnssec,
    dns_over_tls: dnsOverTls,
  };
}
