import type { Id } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';
import type { Joined } from '../store/state.ts';

/** What this host may ask its control plane about, and with which token. */
export interface Access {
  readonly network: Id;
  readonly token: Secret;
}

/**
 * The host's own token where the service gave it one, else a person's; null where there is neither, or where the service never said
 * which network this is: then the host goes by what it last knew.
 */
export function accessOf({ membership }: Joined): Access | null {
  const { map, accessToken, personalToken } = membership;
  const token = accessToken ?? personalToken;
  return token === null || map.id === null ? null : { network: map.id, token };
}

/** The network with a person's token, where the host has none of its own and the person gives one. */
export function lend(state: Joined, personalToken: Secret | null): Joined {
  const { membership } = state;
  if (membership.accessToken !== null || personalToken === null) return state;
  return { ...state, membership: { ...membership, personalToken } };
}

/** Says why the map of a network cannot be read anew; null where it can. */
export function explainLocal(state: Joined): string | null {
  if (accessOf(state) !== null) return null;
  const { service, membership, interface: link } = state;
  const { map } = membership;
  const stays = `${link} goes by what it knew of network ${map.name} when it joined`;
  if (map.id === null) return `${service.url} did not say which network this host is in; ${stays}`;
  return `${service.url} gave this host no token to read its network with; ${stays}. With a personal token it follows changes: "cpn join" with the same key again, and --token-file`;
}
