import type { Actual, LinkDnsSettings } from '../host-state/actual.ts';
import { dnsPort, formatServer, type LinkDns } from '../names/split-dns.ts';
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
  if (own !== null && isAsWanted(own, wanted) && usesFirst(own, wanted)) return [];
  const after = describe(settingsOf(wanted));
  const change =
    own === null
      ? added('dns', link, after, 'domains are behind a route')
      : updated(
          'dns',
          link,
          describe(own),
          after,
          isAsWanted(own, wanted) ? otherServer : 'the settings of the interface differ',
        );
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
    current: null,
    domains: routed,
    isDefaultRoute: false,
    dnssec: 'no',
    dnsOverTls: 'no',
  };
}

function isAsWanted(own: LinkDnsSettings, wanted: LinkDns): boolean {
  const { servers, domains, current: _, ...rest } = settingsOf(wanted);
  const isSame = (one: readonly string[], other: readonly string[]) => one.join() === other.join();
  return (
    isSame(own.servers, servers) &&
    isSame(own.domains.toSorted(), domains.toSorted()) &&
    own.isDefaultRoute === rest.isDefaultRoute &&
    own.dnssec === rest.dnssec &&
    own.dnsOverTls === rest.dnsOverTls
  );
}

const otherServer = 'the resolver uses another server than the daemon';

/** False if the daemon is the first server, but the resolver stays with another one. */
function usesFirst({ current }: LinkDnsSettings, { servers: [first] }: LinkDns): boolean {
  return current === null || first === undefined || first.port === dnsPort || current === formatServer(first);
}

function reversal(link: string, own: LinkDnsSettings, reason: string): Step {
  return { do: 'revert-dns', link, changes: [removed('dns', link, describe(own), reason)] };
}

function describe({ servers, current, domains, isDefaultRoute, dnssec, dnsOverTls }: LinkDnsSettings): ChangeValue {
  return {
    servers,
    in_use: current,
    domains,
    default_route: isDefaultRoute ? 'yes' : 'no',
    dnssec,
    dns_over_tls: dnsOverTls,
  };
}
