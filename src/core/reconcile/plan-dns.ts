import type { Actual, FileResolver, LinkDnsSettings } from '../host-state/actual.ts';
import { nameDropIn, readerOfFile, renderDropIns, settingsIn } from '../names/drop-in.ts';
import { type DomainServers, formatServer } from '../names/split-dns.ts';
import { added, type Change, type ChangeValue, removed, updated } from './change.ts';
import type { Desired } from './desired.ts';
import type { DnsFiles, SetDns, Step } from './step.ts';

type WantedDns = Pick<Desired, 'link' | 'dns' | 'ownsDns' | 'keepsDnsFiles'>;

const none = 'no domain is behind a route';

/**
 * Plans the DNS settings of the interface, or our files for another resolver. Removes only what we
 * made. A host whose resolver has no servers for single domains has no step.
 */
export function planDns(wanted: WantedDns, { dns: resolver, dnsFiles = {} }: Actual): Step[] {
  if (!resolver) return [];
  if (resolver.program === 'systemd-resolved') {
    return [...removeFiles(wanted.link, dnsFiles, 'another program resolves'), ...planSettings(wanted, resolver.own)];
  }
  return planFiles(wanted, resolver, dnsFiles);
}

/** The steps that take back settings which a host may still have. */
export function planDnsRemoval(link: string, { dns, dnsFiles = {} }: Actual, reason: string): Step[] {
  const files = removeFiles(link, dnsFiles, reason);
  if (!dns) return files;
  if (dns.program === 'systemd-resolved') return dns.own ? [...files, reversal(link, dns.own, reason)] : files;
  return files.length > 0 ? files : [reloading(link, dns)];
}

function planSettings({ link, dns: wanted, ownsDns }: WantedDns, own: LinkDnsSettings | null): Step[] {
  if (wanted === null) return own === null || !ownsDns ? [] : [reversal(link, own, none)];
  if (own !== null && isAsWanted(own, wanted)) return [];
  const after = describe(settingsOf(wanted));
  const change =
    own === null
      ? added('dns', link, after, 'domains are behind a route')
      : updated('dns', link, describe(own), after, 'the settings of the interface differ');
  return [{ do: 'set-dns', link, dns: wanted, changes: [change] }];
}

type Texts = Readonly<Record<string, string>>;

function planFiles({ link, dns, ownsDns, keepsDnsFiles }: WantedDns, resolver: FileResolver, present: Texts): Step[] {
  const isOfOther = (path: string) => readerOfFile(path) !== resolver.program;
  const others = Object.fromEntries(Object.entries(present).filter(([path]) => isOfOther(path)));
  const removals = removeFiles(link, others, 'another program resolves');
  if (keepsDnsFiles) return removals;
  if (dns === null) {
    const isOwed = ownsDns && Object.keys(present).length === 0;
    if (isOwed) return resolver.unstartable === undefined ? [reloading(link, resolver)] : [];
    return removeFiles(link, present, none);
  }
  const wanted = renderDropIns(resolver, link, dns);
  const changed = Object.entries(wanted).filter(([path, text]) => present[path] !== text);
  const stale = Object.keys(present).filter((path) => !(path in wanted) && !isOfOther(path));
  const changes = [
    ...changed.map(([path, text]) => compareFiles(path, present[path], text)),
    ...stale.map((path) => removed('dns', path, settingsIn(present[path] ?? ''), 'the resolver does not need it')),
  ];
  if (changes.length === 0 || resolver.trouble !== null) return removals;
  const texts = { ...Object.fromEntries(changed), ...withoutTexts(stale) };
  return [...removals, { do: 'set-dns', link, dns, files: { program: resolver.program, texts }, changes }];
}

/** The program has not read the removal of our file: its other settings were broken. */
function reloading(link: string, resolver: FileResolver): Step {
  const path = `${resolver.folder}/${nameDropIn(link)}`;
  const changes = [removed('dns', path, [], `${resolver.program} still uses it`)];
  return { do: 'revert-dns', link, files: { program: resolver.program, texts: withoutTexts([path]) }, changes };
}

function compareFiles(path: string, before: string | undefined, text: string): Change {
  const after = settingsIn(text);
  return before === undefined
    ? added('dns', path, after, 'domains are behind a route')
    : updated('dns', path, settingsIn(before), after, 'the settings differ');
}

/** A step for each program that reads one of the files. */
function removeFiles(link: string, present: Texts, reason: string): Step[] {
  const paths = Map.groupBy(Object.keys(present), readerOfFile);
  return [...paths].map(([program, own]) => ({
    ...{ do: 'revert-dns', link, files: { program, texts: withoutTexts(own) } },
    changes: own.map((path) => removed('dns', path, settingsIn(present[path] ?? ''), reason)),
  }));
}

function withoutTexts(paths: readonly string[]): DnsFiles['texts'] {
  return Object.fromEntries(paths.map((path) => [path, null]));
}

/** The step that removes what a step sets. */
export function revertOf({ link, files }: SetDns): Step {
  const removal = files && { files: { ...files, texts: withoutTexts(Object.keys(files.texts)) } };
  return { do: 'revert-dns', link, ...removal, changes: [] };
}

/** The settings that {@link planDns} establishes, as systemd-resolved shows them. */
export function settingsOf({ servers, domains }: DomainServers): LinkDnsSettings {
  const routed = domains.map((domain) => `~${domain}`);
  return {
    servers: servers.map(formatServer),
    domains: routed,
    isDefaultRoute: false,
    dnssec: 'no',
    dnsOverTls: 'no',
  };
}

function isAsWanted(own: LinkDnsSettings, wanted: DomainServers): boolean {
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
