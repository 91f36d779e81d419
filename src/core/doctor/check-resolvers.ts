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
