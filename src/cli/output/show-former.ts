import type { FormerMembership } from '../../store/former-networks.ts';

/** The networks that were left while their control planes were out of reach, as scripts rely on it; no field where there are none. */
export function formerToJson(memberships: readonly FormerMembership[]) {
  if (memberships.length === 0) return {};
  const former = memberships.map(({ interface: link, network, peer, service, leftAt }) => ({
    interface: link,
    network,
    peer,
    service: service.url,
    left_at: leftAt,
  }));
  return { former };
}
