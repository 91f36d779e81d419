import { findPeersCutOff } from '../../core/health/compare-secrets.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import type { OptionChanges } from '../networks/option-changes.ts';
import { ownTag } from '../report-secret.ts';
import type { StateTools } from '../tools.ts';
import { selectOne } from './set-options.ts';

export interface SecretLosses {
  readonly interface: string;
  readonly peers: readonly string[];
  readonly isRemoval: boolean;
}

/** Null if the change cuts off no peer, as far as the last map shows. */
export async function findSecretLosses(
  tools: StateTools,
  network: string | undefined,
  { networkSecret }: Pick<OptionChanges, 'networkSecret'>,
): Promise<SecretLosses | null> {
  if (networkSecret === undefined) return null;
  const state = await selectOne(tools, network);
  if (!state.enabled) return null;
  const { map } = state.membership;
  const own = ownKeys(state);
  const others = map.peers.filter(({ publicKey }) => !own.includes(publicKey));
  const cutOff = findPeersCutOff(map, ownTag(state), ownTag({ networkSecret }), others);
  if (cutOff.length === 0) return null;
  return { interface: state.interface, peers: cutOff.map(({ name }) => name), isRemoval: networkSecret === null };
}
