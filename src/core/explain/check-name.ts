import { peerDomain } from '../names/hosts-block.ts';
import { type DnsFailure, type DomainReport, describeFailure, findRemedy, isBelow } from '../names/split-dns.ts';
import { describeTaken, serveRemedy } from '../names/usable-resolver.ts';
import { namesPort } from '../names/zone.ts';
import { type Address, type Prefix, tryParseAddress } from '../net/cidr.ts';
import { type Check, inconclusive, passes, stops } from './check.ts';
import type { NetworkOnHost } from './view.ts';

/** Where the resolver of this host sends the queries for a name. */
export interface QueryPath {
  /** The domain of an interface or of the resolver that has the name; null if none has it. */
  readonly domain: string | null;
  /** Null for the resolver's own settings, and without a domain. */
  readonly link: string | null;
  /** The DNS servers, those in a route of a network if it has the domain. Empty if unknown. */
  readonly servers: readonly string[];
  /** The network whose interface has the domain. */
  readonly view: NetworkOnHost | null;
  /** The route that the domain is behind; null for names of peers and reverse zones. */
  readonly route: Prefix | null;
  /** True if the daemon of this host is a server of the interface. It forwards other queries. */
  readonly isDaemon: boolean;
  /** True if the resolver is systemd-resolved. */
  readonly isResolved: boolean;
  /** The domains with this name that networks have, and this host does not use. */
  readonly refused: readonly { readonly report: DomainReport; readonly network: string }[];
}

/**
 * Finds the interface whose domain matches a name: the longest domain wins
 * (systemd-resolved.service(8)). An interface that is down, or has no servers, has no names.
 *
 * @param views in order of precedence
 */
export function findQueryPath(name: string, views: readonly NetworkOnHost[]): QueryPath {
  const ofViews = views.flatMap((view) => {
    const { own } = view.actual.dns ?? {};
    if (!own || own.servers.length === 0 || view.actual.link?.up !== true) return [];
    return own.domains.map((text) => ({ domain: text.replace(/^~/, ''), link: view.desired.link, view }));
  });
  const links = new Set<string | null>(views.map(({ desired }) => desired.link));
  const ofOthers = views
    .flatMap(({ actual }) => actual.dns?.others ?? [])
    .filter(({ link }) => !links.has(link))
    .map((each) => ({ ...each, view: null }));
  const matching = [...ofViews, ...ofOthers].filter(({ domain }) => domain === '.' || isBelow(name, domain));
  const [best] = matching.toSorted((one, other) => other.domain.length - one.domain.length);
  const refused = views.flatMap(({ map, desired }) =>
    desired.domains
      .filter(({ domain, state }) => state !== 'used' && isBelow(name, domain))
      .map((report) => ({ report, network: map.name })),
  );
  const isResolved = views.some(({ actual }) => actual.dns?.program === 'systemd-resolved');
  if (best === undefined) {
    const known = [...new Set(views.flatMap(({ actual }) => actual.underlay.resolvers))];
    const outside = known.filter((each) => !isLoopback(each));
    const servers = outside.length > 0 ? outside : known;
    return { domain: null, link: null, servers, view: null, route: null, isDaemon: false, isResolved, refused };
  }
  const { domain, link, view } = best;
  const report = view?.desired.domains.find((each) => each.state === 'used' && each.domain === domain) ?? null;
  const set = (view?.actual.dns?.own?.servers ?? []).map(readServer);
  const servers = report?.servers ?? set.flatMap((address) => address ?? []);
  const isDaemon = findDaemon(view) !== null;
  return { domain, link, servers, view, route: report?.route ?? null, isDaemon, isResolved, refused };
}

function isLoopback(address: Address): boolean {
  return /^127\.|^::1$/.test(address);
}

/** The address of the daemon, if it is a server of the network's domains. */
function findDaemon(view: NetworkOnHost | null): Address | null {
  const found = view?.actual.dns?.own?.servers.find((each) => each.endsWith(`:${namesPort}`));
  return found === undefined ? null : readServer(found);
}

/** An address with a port or a name for TLS, as in LinkDnsSettings. */
function readServer(text: string): Address | null {
  const [socket = ''] = text.split('#');
  return tryParseAddress(socket) ?? tryParseAddress(socket.replace(/:\d+$/, ''));
}

/**
 * States which servers receive the queries for a name.
 *
 * @param hosts the network that has the name in the hosts file, which comes first; null for none
 */
export function checkDomain(path: QueryPath, hosts: string | null = null): Check {
  if (hosts !== null) return passes('domain', `the name of a peer of network ${hosts}, in /etc/hosts`);
  const { domain, link, view, route, refused } = path;
  const servers = listServers(path);
  if (view !== null) {
    const where = route === null ? '' : `, behind ${route}`;
    const { program } = view.actual.dns ?? {};
    const sender = path.isResolved || program === undefined ? link : program;
    return passes('domain', `in ${domain}${where} of network ${view.map.name}: ${sender} sends queries to ${servers}`);
  }
  if (domain !== null) {
    const owner = link === null ? 'the settings of the resolver' : `the interface ${link}`;
    return passes('domain', `in ${domain} of ${owner}, which cpn did not set`);
  }
  const none = refused.length === 0 ? 'in no domain of a network: ' : '';
  const outside = `queries go to ${servers}, as without cpn`;
  return passes('domain', [...refused.map(describeRefused), `${none}${outside}`].join('; '));
}

function listServers({ servers, view, isDaemon, route }: QueryPath): string {
  const list = servers.length === 0 ? 'the resolver of this host' : servers.join(', ');
  if (!isDaemon) return list;
  const daemon = `the daemon of this host at ${findDaemon(view)}`;
  if (view?.actual.dns?.isServing !== true) return `${daemon}, which ${describeUnserved(view).why}`;
  return route === null ? daemon : `${daemon}, which forwards them to ${list}`;
}

function describeRefused({ report, network }: QueryPath['refused'][number]): string {
  return `${report.domain} of network ${network} is ${report.state}: ${report.reason}`;
}

/** The DNS servers in a network that receive the queries for the name, in order. */
export function findDnsServers({ view, route, isDaemon, servers }: QueryPath): readonly Address[] {
  if (view === null || (isDaemon && route === null)) return [];
  return servers.flatMap((server) => tryParseAddress(server) ?? []);
}

/** States what a name resolves to. */
export function checkAnswer([first, ...more]: readonly Address[]): Check {
  const rest = more.length === 0 ? '' : `, and to ${more.join(', ')}`;
  return passes('name', `resolves to ${first}${rest}`);
}

/**
 * States why a name has no address.
 *
 * @param failure what the servers of {@link findDnsServers} did with a query for the domain; null
 *   after an answer, and without such servers
 */
export function checkNoAnswer(name: string, path: QueryPath, failure: DnsFailure | null): Check {
  const { domain, link, view, refused } = path;
  const servers = findDnsServers(path);
  if (path.isDaemon && view?.actual.dns?.isServing !== true) {
    const { why, remedy } = describeUnserved(view);
    return stops('name', `has no address: the daemon of this host, which has its domain, ${why}`, remedy);
  }
  const held = view === null ? undefined : refused.find(({ report }) => report.domain === domain);
  if (held !== undefined) return stops('name', 'has no address', describeRefused(held));
  if (isBelow(name, peerDomain)) {
    return stops('name', 'is the name of no peer', '"cpn status" lists the peers of each network');
  }
  const list = servers.join(', ');
  if (failure === 'silent') {
    const remedy = `check that a DNS server runs at ${list}, and answers queries from the network`;
    return stops('name', `has no address: ${list} ${describeFailure(failure, servers)}`, remedy);
  }
  if (failure !== null && domain !== null) {
    const found = `has no address: ${list} ${describeFailure(failure, servers)} for ${domain}`;
    return stops('name', found, findRemedy(failure, domain, list));
  }
  if (servers.length > 0) {
    const found = `has no address on this host, though ${servers.length === 1 ? list : `one of ${list}`} answers queries`;
    return stops('name', found, showReply(name, path.isResolved));
  }
  if (domain !== null) {
    return stops('name', `has no address in ${domain} of ${link ?? 'the resolver'}`, showReply(name, path.isResolved));
  }
  const found = `has no address: ${listServers(path)} gave none`;
  const [first] = refused;
  if (first !== undefined) return stops('name', found, describeRefused(first));
  const command = 'cpn network update NETWORK --route-dns ROUTE=SERVER,DOMAIN';
  return stops('name', found, `check the spelling; "${command}" adds a domain that a LAN behind a route resolves`);
}

/** The name of a peer, and what the resolver of this host gives for it. */
export interface NamedPeer {
  readonly peer: string;
  readonly network: string;
  readonly link: string;
  readonly address: Address;
}

/**
 * Compares what the resolver gives for the name of a peer with the network's map.
 *
 * @param view the network of the peer; absent if it could not be evaluated
 */
export function checkPeerName(
  name: string,
  { peer, network, link, address }: NamedPeer,
  answer: readonly Address[],
  view: NetworkOnHost | undefined,
): Check {
  const own = `the name of ${peer} in network ${network}`;
  if (answer.includes(address)) return passes('name', `${own}, resolves to ${address}`);
  if (answer.length > 0) {
    const remedy = 'check /etc/hosts and the DNS settings of this host for the name';
    return stops('name', `${own}, resolves to ${answer.join(', ')} on this host, and not to ${address}`, remedy);
  }
  const detail = `${own}, ${address}; it does not resolve on this host`;
  if (view?.actual.dns?.isServing)
    return inconclusive('name', detail, showReply(name, view.actual.dns.program === 'systemd-resolved'));
  const isServable = view !== undefined && view.desired.served !== null;
  const hosts = `cpn set ${link} --hosts adds the names of peers to /etc/hosts`;
  return inconclusive('name', detail, isServable ? describeServer(view) : hosts);
}

function describeServer(view: NetworkOnHost): string {
  const { why, remedy } = describeUnserved(view);
  return view.actual.dns?.taken === undefined ? `the daemon serves it: ${remedy}` : `the daemon ${why}; ${remedy}`;
}

function describeUnserved(view: NetworkOnHost | null): { readonly why: string; readonly remedy: string } {
  const { taken } = view?.actual.dns ?? {};
  if (taken === undefined) return { why: 'does not serve names', remedy: serveRemedy };
  const { text, remedy } = describeTaken(taken);
  return { why: `does not serve names: ${text}`, remedy };
}

function showReply(name: string, isResolved: boolean): string {
  if (!isResolved) return `"getent ahosts ${name}" shows the reply`;
  const bypass = '"cpn doctor" reports an /etc/resolv.conf that bypasses systemd-resolved';
  return `"resolvectl query ${name}" shows the reply; ${bypass}`;
}
