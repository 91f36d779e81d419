import type { Secret } from '../core/crypto/secret.ts';
import { Refused } from '../core/errors/index.ts';
import type { Id } from '../core/map/model.ts';
import { hasOtherKey } from '../core/map/own-peer.ts';
import type { ServiceAddress } from '../core/net/service-address.ts';
import { type Problem, problem } from '../core/problems/problem.ts';
import type { Joined } from '../store/state/state.ts';
import type { Tools } from './tools.ts';

/** The credentials of a host at its control plane, and their network. */
export interface PeerAccess {
  readonly network: Id;
  readonly token: Secret;
}

/** Prefers the host's own token; null without a token, or if the service sent no network id. */
export function accessOf({ membership }: Joined): PeerAccess | null {
  const { map, accessToken, personalToken } = membership;
  const token = accessToken ?? personalToken;
  return token === null || map.id === null ? null : { network: map.id, token };
}

/** Control plane, network, peer and token of a membership in one string, which is never logged. */
export function identifyMembership(state: Joined): string {
  const { service, membership } = state;
  const access = accessOf(state);
  return JSON.stringify([service.url, membership.peer.id, access?.network ?? null, access?.token.reveal() ?? null]);
}

/** Keeps a personal token in the membership of a host that has no token of its own. */
export function withPersonalToken(state: Joined, personalToken: Secret | null): Joined {
  const { membership } = state;
  if (membership.accessToken !== null || personalToken === null) return state;
  return { ...state, membership: { ...membership, personalToken } };
}

/** The problem that the host cannot read its network's map; null if it can. */
export function findNoAccess(state: Joined): Problem | null {
  if (accessOf(state) !== null) return null;
  const { service, membership, interface: link } = state;
  const { id, name } = membership.map;
  return problem('no-access', { interface: link, service: service.url, network: name, has_id: id !== null });
}

/** The problem that the map lacks this host. */
export function describeUnlisted(state: Joined): Problem {
  const { map, peer } = state.membership;
  const facts = { interface: state.interface, service: state.service.url, network: map.name, peer: peer.id };
  return problem('peer-unlisted', { ...facts, has_other_key: hasOtherKey(map, state) });
}

/**
 * True if a 401 with a reason voids a peer's own token (peer removed or replaced), or if the
 * network was deleted. Another 401, or any 404, may come from a captive portal.
 */
export function isTokenVoid(error: unknown): boolean {
  if (!(error instanceof Refused)) return false;
  return (error.status === 401 && error.reasoned) || error.deleted !== null;
}

/**
 * Returns the address with the user whose program now listens there, for loopback without TLS: by
 * naming the address, the operator confirms that user. Warns if another user listened before, and
 * about a login user, whose program may have taken the port.
 *
 * @param before the recorded user of this address; undefined for none
 */
export async function confirmListener(
  tools: Pick<Tools, 'findListeningUser' | 'warn'>,
  service: ServiceAddress,
  before: number | undefined,
): Promise<ServiceAddress> {
  const found = await tools.findListeningUser(service, before);
  if (found === null) return before === undefined ? service : { ...service, listener: before };
  const { user, description, previousUser, isLoginUser } = found;
  const listens = `${description} listens at ${service.url}`;
  if (previousUser !== null)
    tools.warn(`${listens} now, and ${previousUser} did before; this command confirms the new one`);
  else if (before === undefined && isLoginUser) {
    tools.warn(`${listens}; check that the control plane runs as that user`);
  }
  return { ...service, listener: user };
}
