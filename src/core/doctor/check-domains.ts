import { printable } from '../errors/index.ts';
import type { NetworkMap, RouteDns } from '../map/model.ts';
import { type DnsFailure, type DomainReport, describeFailure, describeOther, findRemedy } from '../names/split-dns.ts';
import { type Address, tryParseAddress } from '../net/cidr.ts';
import type { MappedNetwork } from './check-network.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** The domains behind the routes of a network, and what this host observed of them. */
export interface ExaminedDomains extends Pick<MappedNetwork, 'desired' | 'actual'> {
  readonly network: NetworkMap['name'];
  readonly entries: readonly RouteDns[];
  /** The networks of this host, with the domains behind their routes. */
  readonly networks: readonly ClaimedDomains[];
  /** What the DNS servers in use did with a query for their domain. */
  readonly queried: readonly QueriedServer[];
}

export interface ServerOfDomain {
  readonly server: Address;
  readonly domain: string;
}

interface QueriedServer extends ServerOfDomain {
  /** Null after an answer. */
  readonly failure: DnsFailure | null;
}

interface ClaimedDomains {
  readonly network: string;
  readonly link: string;
  readonly domains: readonly string[];
}

/** The DNS servers behind routes that this host uses, with each of their domains. */
export function findUsedServers(domains: readonly DomainReport[]): readonly ServerOfDomain[] {
  const used = domains.filter(({ state, route }) => state === 'used' && route !== null);
  return used.flatMap(({ domain, servers }) =>
    servers.flatMap((text) => {
      const server = tryParseAddress(text);
      return server === null ? [] : [{ server, domain }];
    }),
  );
}

/** Checks the domains behind routes, and their servers. */
export function checkDomains(examined: ExaminedDomains): Finding[] {
  return [
    ...examined.desired.domains.map((report) => checkDomain(report, examined)),
    ...checkServers(examined),
    ...checkOutsideServers(examined),
  ];
}

function checkDomain({ domain, route, servers, state, reason }: DomainReport, examined: ExaminedDomains): Finding {
  const { network, desired, actual, networks } = examined;
  const place = route === null ? '' : ` behind ${route}`;
  const checked = `the domain ${domain}${place} of network ${printable(network)}`;
  if (reason === null) return okFinding('dns', checked, `${desired.link} sends its queries to ${servers.join(', ')}`);
  // A network refuses a domain only for another one that was joined first.
  const owner = networks.find(
    ({ link, domains }) => domains.includes(domain) && reason === describeOther(domain, [{ domain, link }]),
  );
  if (owner === undefined) {
    const hasStub = (actual.underlay.stubs ?? []).length > 0;
    const remedy = actual.dns === null && !hasStub ? 'apt install systemd-resolved' : null;
    const found =
      state === 'waiting' ? 'waits to be resolved through the tunnel' : 'is not resolved through the tunnel';
    return noteFinding('dns', checked, `${found}: ${reason}`, remedy);
  }
  const found = `is that of network ${printable(owner.network)} on ${owner.link}, which has it too and was joined first`;
  const remedy = `cpn set ${owner.link} --no-dns, for ${desired.link} to resolve it`;
  return noteFinding('dns', checked, found, remedy);
}

function checkServers({ desired, queried }: ExaminedDomains): Finding[] {
  return queried.map(({ server, domain, failure }) => {
    const checked = `the DNS server ${server} of ${domain} on ${desired.link}`;
    if (failure === null) return okFinding('dns', checked, 'answers');
    const found = describeFailure(failure, [server]);
    return problemFinding('dns', checked, found, findRemedy(failure, domain, server));
  });
}

/** Servers that this host reaches outside the tunnel receive no queries for a domain. */
function checkOutsideServers({ desired, entries }: ExaminedDomains): Finding[] {
  const found = entries.flatMap(({ route, servers }) => servers.map((address) => ({ address, route })));
  return found.flatMap(({ address, route }) => {
    const kept = desired.keptOutside.find((each) => each.address === address);
    if (kept === undefined) return [];
    const checked = `the DNS server ${address} of domains behind ${route}`;
    const remedy = `cpn set ${desired.link} --allow-route ${route}, if it is behind the connector of that route`;
    return [noteFinding('dns', checked, `receives no queries: it stays outside the tunnel, ${kept.what}`, remedy)];
  });
}
