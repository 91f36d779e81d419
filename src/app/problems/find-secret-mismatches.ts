import {
  findSecretMismatches as compareAll,
  type SecretMismatch,
  type SecretView,
} from '../../core/health/compare-secrets.ts';
import type { Actual } from '../../core/host-state/actual.ts';
import type { Peer } from '../../core/map/model.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import type { Joined } from '../../store/state/state.ts';
import { ownTag } from '../report-secret.ts';
import type { Tools } from '../tools.ts';

/** The side from which this host compares its network secret with those of its peers. */
export function viewSecrets(state: Joined, { device }: Pick<Actual, 'device'>): SecretView {
  return { map: state.membership.map, tag: ownTag(state), observed: device?.peers ?? [] };
}

/** Finds the peers with which no handshake comes about for want of one network secret. */
export function findSecretMismatches(state: Joined, actual: Pick<Actual, 'device'>): SecretMismatch[] {
  return compareAll(viewSecrets(state, actual), othersOf(state));
}

function othersOf(state: Joined): Peer[] {
  const own = ownKeys(state);
  return state.membership.map.peers.filter(({ publicKey }) => !own.includes(publicKey));
}

/** As {@link findSecretMismatches}, by a look at WireGuard's table, where there is anybody else. */
export async function checkSecrets(tools: Pick<Tools, 'host'>, state: Joined): Promise<SecretMismatch[]> {
  if (othersOf(state).length === 0) return [];
  return findSecretMismatches(state, { device: await tools.host.device(state.interface) });
}
