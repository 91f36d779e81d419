import type { Role } from '../../contract/auth.ts';
import { Forbidden } from '../errors.ts';

/** A user, by the session or the personal token of the request. */
export interface UserCaller {
  readonly kind: 'user';
  readonly userId: number;
  readonly email: string;
  readonly organizationId: number;
  readonly role: Role;
  readonly credential: { readonly kind: 'session' | 'token'; readonly id: number };
  /** Where the request came from. */
  readonly address: string;
  /** The callers of the operation: a change checks them again. */
  readonly access: Exclude<AccessRule, 'anyone'>;
}

/** A peer, by its own access token, which is valid in its own network only. */
export interface PeerCaller {
  readonly kind: 'peer';
  readonly peerId: number;
  readonly name: string;
  readonly networkId: number;
  readonly organizationId: number;
  /** A part of the hash of its token: after a restore another peer may have its id. */
  readonly tokenMark: number;
  /** When its token is void; null for never. */
  readonly expiresAt: string | null;
  /** Where the request came from. */
  readonly address: string;
  /** The callers of the operation: a change checks them again. */
  readonly access: Exclude<AccessRule, 'anyone'>;
}

export type Caller = UserCaller | PeerCaller;

/**
 * The callers of an operation: anyone, or users of these roles, and with `peer` also a peer for itself. A personal token is accepted
 * unless `sessionOnly` is set.
 */
export type AccessRule =
  | 'anyone'
  | { readonly roles: readonly Role[]; readonly peer: boolean; readonly sessionOnly?: boolean };

const everyRole: readonly Role[] = ['owner', 'admin', 'member', 'viewer'];
const editingRoles: readonly Role[] = ['owner', 'admin', 'member'];
const administeringRoles: readonly Role[] = ['owner', 'admin'];

export const readers = { roles: everyRole, peer: false } satisfies AccessRule;
export const readersAndPeer = { roles: everyRole, peer: true } satisfies AccessRule;
export const editors = { roles: editingRoles, peer: false } satisfies AccessRule;
export const editorsAndPeer = { roles: editingRoles, peer: true } satisfies AccessRule;
export const peerOnly = { roles: [], peer: true } satisfies AccessRule;
export const administrators = { roles: administeringRoles, peer: false } satisfies AccessRule;
export const administratorsInSession = { ...administrators, sessionOnly: true } satisfies AccessRule;
export const owners = { roles: ['owner'], peer: false } satisfies AccessRule;
export const readersInSession = { roles: everyRole, peer: false, sessionOnly: true } satisfies AccessRule;

/** @throws Forbidden for a caller without access to the operation */
export function checkAccess(caller: Caller, access: Exclude<AccessRule, 'anyone'>): void {
  if (caller.kind === 'peer') {
    if (!access.peer) throw new Forbidden('the token of a peer may read its own network and change or remove itself');
    return;
  }
  if (access.roles.length === 0) throw new Forbidden('only the peer itself may do this, with its own token');
  if (!access.roles.includes(caller.role)) {
    throw new Forbidden(`the role ${caller.role} may not do this; ask one of: ${access.roles.join(', ')}`);
  }
  if (access.sessionOnly && caller.credential.kind !== 'session') {
    throw new Forbidden('a personal token may not do this; log in with e-mail address and password');
  }
}
