import type { Actual } from '../core/actual.ts';
import { findSecretTroubles, type SecretTrouble, type SecretView } from '../core/compare-secrets.ts';
import type { Peer } from '../core/model.ts';
import { ownKeys } from '../core/own-peer.ts';
import type { Joined } from '../store/state.ts';
import { questionOf } from './survey.ts';
import { ownTag } from './tell-secret.ts';
import type { Tools } from './tools.ts';

/** The side from which this host compares its network secret with those of its peers. */
export function viewSecrets(state: Joined, { device }: Pick<Actual, 'device'>): SecretView {
  return { map: state.membership.map, tag: ownTag(state), seen: device?.peers ?? [] };
}

/** Finds the peers with which no handshake comes about for want of one network secret. */
export function findTroubles(state: Joined, actual: Pick<Actual, 'device'>): SecretTrouble[] {
  return findSecretTroubles(viewSecrets(state, actual), othersOf(state));
}

function othersOf(state: Joined): Peer[] {
  const own = ownKeys(state);
  return state.membership.map.peers.filter(({ publicKey }) => !own.includes(publicKey));
}

/** As {@link findTroubles}, by a look at WireGuard's table, where there is anybody else. */
export async function lookForTroubles(tools: Tools, state: Joined): Promise<SecretTrouble[]> {
  if (othersOf(state).length === 0) return [];
  return findTroubles(state, await tools.host.observe({ ...questionOf(state), firewall: false, sysctls: [] }));
}
