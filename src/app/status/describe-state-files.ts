import { collectSecrets, Secret } from '../../core/crypto/secret.ts';
import { CpnError } from '../../core/errors/index.ts';
import type { State } from '../../store/state/state.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/** The states without secrets, and the secrets to redact elsewhere. */
export interface DescribedStates {
  /** By interface. A note replaces each secret. */
  readonly states: ReadonlyMap<string, object>;
  readonly secrets: ReadonlySet<string>;
  /** Addresses of peers, limited per network. */
  readonly peers: readonly string[];
}

/** Per network. */
const mostPeers = 32;

/**
 * Describes everything that is kept of this host's networks. Returns its secrets and the live
 * interfaces' keys, so that callers can redact them.
 */
export async function describeStateFiles(tools: Tools): Promise<DescribedStates> {
  const { states, unreadable } = await tools.store.list();
  const secrets = new Set<string>();
  for (const state of states) {
    collectSecrets([hideStrings(state), await lookAt(tools, state)], secrets);
  }
  const readable = states.map((state): [string, object] => [state.interface, hideStrings(state)]);
  const failed = unreadable.map(({ interface: link, error }): [string, object] => [
    link,
    { unreadable: error.message },
  ]);
  const peers = states.filter(isJoined).flatMap(({ membership: { map, peer } }) =>
    map.peers
      .map(({ address }) => address)
      .filter((address) => address !== peer.address)
      .slice(0, mostPeers),
  );
  return { states: new Map([...readable, ...failed]), secrets, peers };
}

/** These strings would let another host enrol as this one. */
function hideStrings({ enrollment, ...state }: State) {
  const { idempotencyKey, tokenHash, ...intent } = enrollment;
  return {
    ...state,
    enrollment: { ...intent, idempotencyKey: new Secret(idempotencyKey), tokenHash: new Secret(tokenHash) },
  };
}

async function lookAt(tools: Tools, state: State): Promise<unknown> {
  if (!isJoined(state)) return null;
  try {
    return await evaluateNetwork(tools, state);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return null;
  }
}
