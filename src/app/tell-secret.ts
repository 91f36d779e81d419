import { CpnError } from '../core/errors.ts';
import { tagOf } from '../core/network-secret.ts';
import { findOwnPeer } from '../core/own-peer.ts';
import type { Joined, State } from '../store/state.ts';
import { accessOf } from './access.ts';
import { withExtensions } from './described.ts';
import type { Tools } from './tools.ts';

/** Milliseconds. Nobody waits for it: what is not told now is told at a later pass. */
const deadline = 10_000;

/** The tag of the network secret that this host has; null for none. */
export function ownTag({ networkSecret }: Pick<State, 'networkSecret'>): string | null {
  return networkSecret && tagOf(networkSecret);
}

/** True where the newest map lists this host with another tag than that of its network secret. */
export function isMistold(state: Joined): boolean {
  const { map } = state.membership;
  const self = findOwnPeer(map, state);
  return self !== undefined && (self.secretTag ?? null) !== ownTag(state);
}

/**
 * Has the control plane list the tag of this host's network secret, where its newest map does not. Asks nothing where there is no
 * token to ask with.
 *
 * @returns what kept it from being so; `unknown` where the service knows no such thing, and null where it was told or knew
 */
export async function tellSecret(tools: Tools, state: Joined): Promise<CpnError | 'unknown' | null> {
  const access = accessOf(state);
  if (access === null || !isMistold(state)) return null;
  try {
    const { id } = state.membership.peer;
    const isKnown = await withExtensions(tools, state, { deadlineMs: deadline }, (service) =>
      service.announceSecret(access.network, id, access.token, ownTag(state)),
    );
    return isKnown ? null : 'unknown';
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return error;
  }
}
