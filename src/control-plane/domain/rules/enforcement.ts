import type { Enforcement } from '../../../contract/rules.ts';
import type { RuledPeer } from './endpoints.ts';

/** What applies the rules to connections that go to each peer. */
export function listEnforcement(peers: readonly RuledPeer[]): Enforcement[] {
  const connectors = peers.filter(({ isConnector }) => isConnector);
  const isEnforcedOnTheWay = connectors.length > 0 && connectors.every(({ enforcesRules }) => enforcesRules);
  return peers.map((peer) => ({ peer: { id: peer.id, name: peer.name }, by: enforcedBy(peer, isEnforcedOnTheWay) }));
}

/** All packets to a peer with a profile pass a connector. */
function enforcedBy({ enforcesRules, profile }: RuledPeer, isEnforcedOnTheWay: boolean): Enforcement['by'] {
  if (enforcesRules) return 'destination';
  return profile !== null && isEnforcedOnTheWay ? 'connector' : 'nothing';
}
