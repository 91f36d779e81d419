import { checkDomains, findUsedServers, type ServerOfDomain } from '../../core/doctor/check-domains.ts';
import { checkResolvedMode } from '../../core/doctor/check-resolvers.ts';
import type { Finding } from '../../core/doctor/finding.ts';
import { CpnError } from '../../core/errors/index.ts';
import { routeDnsOf } from '../../core/names/route-dns.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import type { HostCheck, NetworkCheck } from './examination.ts';

/** The check of the resolver that has the domains of networks. */
export const resolvedCheck: HostCheck = {
  subject: 'dns',
  async examine({ inspector }, { networks }) {
    const mode = await inspector.resolvedMode?.();
    if (!mode) return [];
    const hasDomains = networks.some(({ state, evaluation }) => {
      if (!state.enabled || evaluation instanceof CpnError) return false;
      return evaluation.desired.dns !== null && evaluation.actual.dns?.program === 'systemd-resolved';
    });
    return [checkResolvedMode(mode, hasDomains)];
  },
};

/** The check of the domains behind the routes of a network. */
export const domainCheck: NetworkCheck = { subject: 'dns', examine: examineDomains };

/** Bounds the queries of a doctor. */
const mostQueries = 16;

async function examineDomains(
  { host, store }: Pick<Tools, 'host' | 'store'>,
  { state, desired, actual }: Evaluation,
): Promise<Finding[]> {
  if (!state.enabled) return [];
  const { map, text } = state.membership;
  const source = desired.config.address.address;
  const query = async ({ server, domain }: ServerOfDomain) => {
    return { server, domain, failure: await host.queryDomain([server], domain, source) };
  };
  const [{ states }, queried] = await Promise.all([
    store.list(),
    Promise.all(findUsedServers(desired.domains).slice(0, mostQueries).map(query)),
  ]);
  return checkDomains({
    ...{ network: map.name, desired, actual, entries: routeDnsOf(map, text) },
    networks: states.filter(isJoined).map((each) => ({
      network: each.membership.map.name,
      link: each.interface,
      domains: routeDnsOf(each.membership.map, each.membership.text).flatMap(({ domains }) => domains),
    })),
    queried,
  });
}
