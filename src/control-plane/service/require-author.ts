import type { NetworkLimit, Role } from '../../contract/auth.ts';
import {
  administrators,
  awaitsApproval,
  type Caller,
  checkAccess,
  type PeerCaller,
  type UserCaller,
} from '../domain/caller.ts';
import { intersect } from '../domain/network-limit.ts';
import { boundSessions } from '../domain/session-limits.ts';
import { Forbidden, Unauthenticated } from '../errors.ts';
import { findValidToken } from '../store/accounts/personal-tokens.ts';
import { findSessionProof } from '../store/accounts/sessions.ts';
import { lockUser } from '../store/accounts/users.ts';
import { findPeerById, isWaiting } from '../store/peers/peers.ts';
import { readMode } from '../store/rules.ts';
import type { Db } from '../store/tables.ts';
import type { Author } from './audit.ts';
import type { Context } from './context.ts';
import { refuseUnlisted } from './suspension.ts';

export interface UserAuthor {
  readonly author: Author;
  readonly role: Role;
  /** The limit of the user, without that of its token. */
  readonly networks: NetworkLimit;
  /** When the user of the request's session proved its identity; null for a personal token. */
  readonly login: string | null;
}

/**
 * Checks the author again in the transaction of the change: the credential may have been revoked
 * or the role lowered since. Other changes by the user, and revocations, wait until it ends. A
 * transaction that locks a network or an organization does so before this call.
 * @throws Unauthenticated for a void credential, Forbidden without access or for a suspended peer,
 * NotFound for a network beyond the limit of the caller
 */
export async function requireAuthor(context: Context, db: Db, caller: Caller): Promise<Author> {
  if (caller.kind === 'user') return (await requireUser(context, db, caller)).author;
  await requirePeer(context, db, caller);
  return authorOf(context, caller, { kind: 'peer', id: caller.peerId, name: caller.name });
}

/** Like {@link requireAuthor}, for a user. */
export async function requireUser(context: Context, db: Db, caller: UserCaller): Promise<UserAuthor> {
  const { organizationId, userId, credential, email } = caller;
  const now = context.now();
  const user = await lockUser(db, organizationId, userId);
  const isSession = credential.kind === 'session';
  const bounds = boundSessions(context.sessionLimits, now);
  const login = isSession ? ((await findSessionProof(db, userId, credential.id, bounds)) ?? null) : null;
  const token = isSession ? null : await findValidToken(db, userId, credential.id, now.toISOString());
  const isValid = isSession ? login !== null : token !== undefined;
  if (!user || !isValid) throw new Unauthenticated(voidCredential);
  const { role, networks } = user;
  const ownLimit = token?.networks ?? null;
  const current = { role, networks: intersect(networks, ownLimit) };
  checkAccess({ ...caller, ...current, credential: { ...credential, isLimited: ownLimit !== null } }, caller.access);
  return { author: authorOf(context, caller, { kind: 'user', id: userId, name: email }), role, networks, login };
}

export const voidCredential = 'the bearer token is unknown or has expired';

/**
 * In a closed network, refuses members a change that gives a host what rules allow others: only
 * owners and admins decide who may reach what.
 * @param what the change, after `a member may not`
 */
export async function requireAdminIfClosed(
  context: Context,
  transaction: Db,
  caller: Caller,
  network: number,
  what: string,
): Promise<void> {
  if (caller.kind === 'peer' || (await readMode(transaction, network)) === 'open') return;
  const { role } = await requireUser(context, transaction, caller);
  if (administrators.roles.includes(role)) return;
  throw new Forbidden(`in a closed network, a ${role} may not ${what}; ask an owner or admin`);
}

/** Refuses members the change of a public key, which replaces the approved host. */
export async function requireAdminOfApproval(context: Context, transaction: Db, caller: Caller): Promise<void> {
  if (caller.kind === 'peer') return;
  const { role } = await requireUser(context, transaction, caller);
  if (administrators.roles.includes(role)) return;
  throw new Forbidden(
    `in a network with approval, a ${role} may not change the public key of a peer; ask an owner or admin`,
  );
}

async function requirePeer({ now }: Context, db: Db, caller: PeerCaller): Promise<void> {
  const peer = await findPeerById(db, caller.peerId);
  if (peer?.tokenMark !== caller.tokenMark) throw new Unauthenticated(voidCredential);
  refuseUnlisted(peer, now());
  if (isWaiting(peer) && caller.access.waiting !== true) throw awaitsApproval();
}

function authorOf({ readTime }: Context, { organizationId, address }: Caller, actor: Author['actor']): Author {
  return { organizationId, actor, address, readTime };
}
