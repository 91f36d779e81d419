import type { Check } from '../../core/explain/check.ts';
import {
  checkAnswer,
  checkDomain,
  checkNoAnswer,
  checkPeerName,
  findDnsServers,
  findQueryPath,
  type QueryPath,
} from '../../core/explain/check-name.ts';
import type { NetworkOnHost } from '../../core/explain/view.ts';
import type { Address } from '../../core/net/cidr.ts';
import type { Tools } from '../tools.ts';
import type { LookedUpName } from './find-address.ts';

/** How a name was looked up. */
interface CheckedLookup {
  readonly dns: QueryPath | null;
  /** The DNS server in a network that should have the name; null if the name has an address. */
  readonly server: Address | null;
  /** The checks before the packet is sent. */
  readonly before: readonly Check[];
  /** The checks after a query was sent to the servers. */
  readonly after: readonly Check[];
}

const none: CheckedLookup = { dns: null, server: null, before: [], after: [] };

/** Checks how this host looked up a name. Queries the DNS server of a name without an address. */
export async function checkLookup(
  { host }: Pick<Tools, 'host'>,
  lookedUp: LookedUpName | null,
  views: readonly NetworkOnHost[],
): Promise<CheckedLookup> {
  if (lookedUp === null) return none;
  const { name, answer, peer } = lookedUp;
  const dns = findQueryPath(name, views);
  if (peer !== null) {
    const view = views.find(({ desired }) => desired.link === peer.link);
    const domain = checkDomain(dns, view?.desired.hosts ? peer.network : null);
    return { ...none, dns, before: [domain, checkPeerName(name, peer, answer, view)] };
  }
  const domain = checkDomain(dns);
  if (answer.length > 0) return { ...none, dns, before: [domain, checkAnswer(answer)] };
  const servers = findDnsServers(dns);
  const [server = null] = servers;
  const isQueried = server !== null && dns.view !== null && dns.domain !== null;
  const failure = isQueried ? await host.queryDomain(servers, dns.domain, dns.view.address) : null;
  return { dns, server, before: [domain], after: [checkNoAnswer(name, dns, failure)] };
}
