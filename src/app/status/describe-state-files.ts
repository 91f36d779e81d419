import { collectSecrets, Secret } from '../../core/crypto/secret.ts';
import { CpnError } from '../../core/errors/index.ts';
import type { State } from '../../store/state/state.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/** The state without secrets, and the secrets that the output must not have elsewhere. */
export interface DescribedStates {
  /** By interface. A secret is replaced by a note that there is one. */
  readonly states: ReadonlyMap<string, object>;
  readonly secrets: ReadonlySet<string>;
  /** The addresses of the networks' peers, some of them where they are many. */
  readonly peers: readonly string[];
}

/** Of one network. */
const mostPeers = 32;

/**
 * Reads everything that is kept of this host's networks. Returns its secrets too, so that callers
 * can redact them, with the keys of the live interfaces.
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

/** Secrets of the state that are plain texts: with them another host could enrol as this one. */
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
