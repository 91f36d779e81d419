import type { Profile } from '../../contract/auth.ts';
import type { Secret } from '../../core/secret.ts';
import type { Caller, UserCaller } from '../caller.ts';
import { Unauthenticated } from '../errors.ts';
import { verifyPassword } from '../passwords.ts';
import { findPeerCaller } from '../store/peers.ts';
import { deleteExpiredSessions, deleteSession, findSessionCaller, insertSession } from '../store/sessions.ts';
import { findUser, findUserByEmail } from '../store/users.ts';
import { hashToken, mintToken, tokenPrefixes } from '../tokens.ts';
import type { Context } from './context.ts';

const sessionLifetimeMs = 7 * 24 * 3600 * 1000;

/** Opens a session. A wrong password and an unknown address are refused alike, after the same work. */
export async function login(
  { db, now, random }: Context,
  { email, password, device }: { email: string; password: Secret; device: string },
): Promise<{ token: Secret; expiresAt: string }> {
  const user = await findUserByEmail(db, email.toLowerCase());
  const known = await verifyPassword(password, user?.password_hash ?? null);
  if (!user || !known) throw new Unauthenticated('e-mail address or password is wrong');
  const token = mintToken(tokenPrefixes.session, random);
  const at = now();
  const expiresAt = new Date(at.getTime() + sessionLifetimeMs).toISOString();
  await deleteExpiredSessions(db, at.toISOString());
  await insertSession(db, {
    user_id: user.id,
    name: device,
    token_hash: hashToken(token),
    created_at: at.toISOString(),
    expires_at: expiresAt,
  });
  return { token, expiresAt };
}

/** Who speaks, by a bearer token; refuses a token that is unknown or past its end. */
export async function identify({ db, now }: Context, token: Secret): Promise<Caller> {
  const hash = hashToken(token);
  const caller = token.reveal().startsWith(tokenPrefixes.peer)
    ? await findPeerCaller(db, hash)
    : await findSessionCaller(db, hash, now().toISOString());
  if (!caller) throw new Unauthenticated('the bearer token is unknown or has expired');
  return caller;
}

export async function logout({ db }: Context, caller: UserCaller): Promise<void> {
  await deleteSession(db, caller.sessionId);
}

export async function readProfile({ db }: Context, caller: UserCaller): Promise<Profile> {
  const user = await findUser(db, caller.organizationId, caller.userId);
  if (!user) throw new Unauthenticated('the user is no more');
  return { ...user, organization: { ...user.organization } };
}
