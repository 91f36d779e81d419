import { printable } from '../errors/index.ts';
import type { ResolverStub } from '../host-state/actual.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import type { MappedNetwork } from './check-network.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** Checks local forwarding resolvers: accepted routes leave out only servers that are known. */
export function checkStubs({ desired, actual }: MappedNetwork): Finding[] {
  const outside = new Set(desired.keptOutside.map(({ address }) => address));
  return (actual.underlay.stubs ?? []).map((stub) => judge(stub, outside));
}

function judge(stub: ResolverStub, outside: ReadonlySet<Address>): Finding {
  const { address, isListening, stranger, program, isStated, stated, observed } = stub;
  if (!isListening)
    return noteFinding('dns', `the local resolver ${address}`, 'nothing listens there', 'see /etc/resolv.conf');
  if (stranger !== undefined) {
    const found = `user ${stranger}, not a system user, listens there: its servers are not kept outside the tunnel`;
    return noteFinding(
      'dns',
      `the local resolver ${address}`,
      found,
      'run it as root or as a system user (below 1000)',
    );
  }
  const checked = `the local resolver ${address} (${program === null ? 'its program cannot be seen' : printable(program)})`;
  const servers = [...new Set([...stated, ...observed])];
  const list = servers.map((each) => (outside.has(each) ? `${each} (kept outside the tunnel)` : each)).join(', ');
  if (isStated) return okFinding('dns', checked, list === '' ? 'queries no other server' : `queries ${list}`);
  const found = list === '' ? 'its servers are unknown' : `queries ${list}, and perhaps others`;
  const remedy = 'if an accepted route covers one of its servers, refuse that route with "cpn set --refuse-route CIDR"';
  return noteFinding('dns', checked, found, remedy);
}

/** A resolver in an accepted route that is kept outside the tunnel. */
export interface KeptResolver {
  readonly address: Address;
  readonly route: Prefix;
  readonly answers: boolean;
}

/** Checks whether these resolvers answer outside. A resolver behind a connector does not. */
export function checkKeptResolvers(link: string, resolvers: readonly KeptResolver[]): Finding[] {
  return resolvers.map(({ address, route, answers }) => {
    const checked = `the resolver ${address}, which stays outside the tunnel`;
    if (answers) return okFinding('dns', checked, 'answers');
    const remedy = `cpn set ${link} --allow-route ${route}, if the resolver is behind the connector of that route`;
    return problemFinding('dns', checked, 'does not answer there', remedy);
  });
}

/** How programs of a host with systemd-resolved resolve names. */
export interface ResolvedMode {
  /** `ResolvConfMode` of org.freedesktop.resolve1(5); null in versions without it. */
  readonly mode: string | null;
  /** True if systemd-resolved listens at the addresses of its stub. */
  readonly hasStub: boolean;
  /** The servers in resolv.conf(5). */
  readonly nameservers: readonly Address[];
  /** The sources of `hosts` in nsswitch.conf(5). */
  readonly sources: readonly string[];
}

/** The addresses of the stub (systemd-resolved.service(8)). */
const stubs: readonly string[] = ['127.0.0.53', '127.0.0.54'];

/** Checks whether programs resolve names by systemd-resolved, which has the domains of networks. */
export function checkResolvedMode({ mode, hasStub, nameservers, sources }: ResolvedMode, hasDomains: boolean): Finding {
  const checked = '/etc/resolv.conf of a host with systemd-resolved';
  const suffix = mode === null ? '' : ` (resolv.conf mode ${mode})`;
  if (nameservers.some((each) => stubs.includes(each))) return okFinding('dns', checked, `names its stub${suffix}`);
  const others = nameservers.length === 0 ? 'names no server' : `names ${nameservers.join(', ')}`;
  if (sources.includes('resolve')) {
    const found = `${others}${suffix}; programs of the C library use systemd-resolved by nsswitch.conf, and no others`;
    return okFinding('dns', checked, found);
  }
  const found = `${others}${suffix}, and nsswitch.conf has no "resolve": programs bypass systemd-resolved`;
  if (!hasDomains) return okFinding('dns', checked, found);
  const nss = 'apt install libnss-resolve';
  const remedy = hasStub ? `ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf, or ${nss}` : nss;
  return noteFinding('dns', checked, `${found}, and so do not resolve domains of a network`, remedy);
}
