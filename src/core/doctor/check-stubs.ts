import { printable } from '../errors/index.ts';
import type { ResolverStub } from '../host-state/actual.ts';
import type { Address } from '../net/cidr.ts';
import type { MappedNetwork } from './check-network.ts';
import { type Finding, noteFinding, okFinding } from './finding.ts';

/**
 * Checks the local resolvers that forward queries: accepted routes leave out their servers only if
 * these are known.
 */
export function checkStubs({ desired, actual }: MappedNetwork): Finding[] {
  const outside = new Set(desired.keptOutside.map(({ address }) => address));
  return (actual.underlay.stubs ?? []).map((stub) => judge(stub, outside));
}

function judge(stub: ResolverStub, outside: ReadonlySet<Address>): Finding {
  const { address, isListening, stranger, program, isStated, stated, observed } = stub;
  if (!isListening)
    return noteFinding('dns', `the local resolver ${address}`, 'nothing listens there', 'see /etc/resolv.conf');
  if (stranger !== undefined) {
    const found = `the user ${stranger}, who is no system user, listens there: its servers are not kept outside the tunnel`;
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
  if (isStated) return okFinding('dns', checked, list === '' ? 'names no other server' : `queries ${list}`);
  const found = list === '' ? 'its servers are not known' : `queries ${list}, and perhaps others`;
  const remedy = 'if an accepted route covers one of its servers, refuse that route with "cpn set --refuse-route CIDR"';
  return noteFinding('dns', checked, found, remedy);
}
