import type { NetworkMap, Peer } from '../map/model.ts';

/** What applies rules to connections that go to a peer. */
export type EnforcedBy = 'destination' | 'connector' | 'nothing';

/**
 * Returns a function that finds what applies rules to connections to a peer: its own host, or the
 * connectors for a peer that is reached through connectors alone.
 */
export function enforcementIn({ peers }: Pick<NetworkMap, 'peers'>): (peer: Peer) => EnforcedBy {
  const connectors = peers.filter(({ type }) => type === 'connector');
  const onTheWay = connectors.length > 0 && connectors.every(({ enforcesRules }) => enforcesRules);
  return ({ enforcesRules, via }) => (enforcesRules ? 'destination' : via && onTheWay ? 'connector' : 'nothing');
}
