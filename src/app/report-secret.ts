import { tagOf } from '../core/crypto/network-secret.ts';
import { type CpnError, expectCpnError } from '../core/errors/index.ts';
import { findOwnPeer } from '../core/map/own-peer.ts';
import type { Joined, State } from '../store/state/state.ts';
import { accessOf } from './access.ts';
import { withExtensions } from './service-features.ts';
import type { ServiceTools } from './tools.ts';

/** Milliseconds. A later pass reports again. */
const deadline = 10_000;

export function ownTag({ networkSecret }: Pick<State, 'networkSecret'>): string | null {
  return networkSecret && tagOf(networkSecret);
}

/** True if the newest map has another tag than that of this host's network secret. */
export function isMisreported(state: Joined): boolean {
  const { map } = state.membership;
  const self = findOwnPeer(map, state);
  return self !== undefined && (self.secretTag ?? null) !== ownTag(state);
}

/**
 * Reports the tag of the network secret if the newest map lacks it, and this host has a token.
 *
 * @returns why it failed; `unknown` if the service has no such operation, and null if it lists the
 *   tag
 */
export async function reportSecret(tools: ServiceTools, state: Joined): Promise<CpnError | 'unknown' | null> {
  const access = accessOf(state);
  if (access === null || !isMisreported(state)) return null;
  try {
    const { id } = state.membership.peer;
    const isKnown = await withExtensions(tools, state, { deadlineMs: deadline }, (service) =>
      service.announceSecret(access.network, id, access.token, ownTag(state)),
    );
    return isKnown ? null : 'unknown';
  } catch (error) {
    return expectCpnError(error);
  }
}
