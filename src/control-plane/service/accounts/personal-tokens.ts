import type { CreatePersonalToken, PersonalToken } from '../../../contract/personal-token.ts';
import type { Secret } from '../../../core/crypto/secret.ts';
import type { UserCaller } from '../../domain/caller.ts';
import { formatLimit } from '../../domain/network-limit.ts';
import { hashToken, mintToken, tokenPrefixes } from '../../domain/tokens.ts';
import { InvalidRequest, NotFound, TooManyRequests } from '../../errors.ts';
import * as store from '../../store/accounts/personal-tokens.ts';
import { countActionsOfActor } from '../../store/audit.ts';
import type { Slice, StoredPage } from '../../store/page.ts';
import type { Db } from '../../store/tables.ts';
import { transact } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { requireAuthor, requireUser } from '../require-author.ts';
import { nameLimit, readLimit, showLimits } from './network-limits.ts';
import { proveIfGiven, requireProof } from './prove-password.ts';

const dayMs = 24 * 3600 * 1000;
const maxTokens = 100;
/** Tokens that a user may create per day (UTC), also revoked ones: each has two audit entries. */
const mostADay = 200;

export async function listTokens(
  { db }: Context,
  caller: UserCaller,
  slice: Slice,
): Promise<StoredPage<PersonalToken>> {
  return showLimits(db, caller, await store.listTokens(db, caller.userId, slice));
}

/**
 * Needs the password or a recent login: a stolen session must not create a token that outlives it.
 * Only the hash of the value is stored.
 * @throws Forbidden for a wrong password, InvalidRequest for a missing one
 */
export async function createToken(
  context: Context,
  caller: UserCaller,
  { name, expires_in_days: days, networks: asked = null, password }: CreatePersonalToken,
): Promise<{ token: PersonalToken; value: Secret }> {
  const proof = await proveIfGiven(context, caller, password);
  const value = mintToken(tokenPrefixes.personal, context.random);
  const at = context.now();
  const now = at.toISOString();
  return transact(context.db, async (transaction) => {
    // This locks the user, so that two concurrent requests cannot both take the last place.
    const { author, login, networks: limit } = await requireUser(context, transaction, caller);
    await requireProof(context, transaction, { caller, login, proof, field: 'password' });
    await limitMaking(transaction, caller, await context.readTime(transaction));
    const networks = await readLimit(transaction, caller, asked, limit);
    await store.deleteExpiredTokens(transaction, caller.userId, now);
    const most = { after: null, skip: 0, limit: maxTokens };
    if ((await store.listTokens(transaction, caller.userId, most)).entries.length === maxTokens) {
      throw new InvalidRequest({ body: [`is one too many: there are ${maxTokens} tokens already; revoke one first`] });
    }
    const token = await store.insertToken(transaction, {
      user_id: caller.userId,
      name,
      token_hash: hashToken(value),
      created_at: now,
      expires_at: days === undefined ? null : new Date(at.getTime() + days * dayMs).toISOString(),
      last_used_at: null,
      networks: formatLimit(networks),
    });
    const target = { kind: 'personal_token', id: token.id, name } as const;
    const named = await nameLimit(transaction, caller, networks);
    const details = { expires_at: token.expires_at, ...(named && { networks: named }) };
    await record(transaction, author, { action: 'token.create', target, details });
    return { token, value };
  });
}

async function limitMaking(db: Db, { userId }: UserCaller, now: Date): Promise<void> {
  const day = now.toISOString().slice(0, 'YYYY-MM-DD'.length);
  const made = await countActionsOfActor(db, { actor_kind: 'user', actor_id: userId }, day, 'token.create');
  if (made < mostADay) return;
  throw new TooManyRequests(
    `tokens made in a day, ${mostADay}`,
    Math.ceil((Date.parse(day) + dayMs - now.getTime()) / 1000),
  );
}

export async function revokeToken(context: Context, caller: UserCaller, id: number): Promise<void> {
  await transact(context.db, async (transaction) => {
    const author = await requireAuthor(context, transaction, caller);
    const token = await store.deleteToken(transaction, caller.userId, id);
    if (!token) throw new NotFound('personal token');
    const target = { kind: 'personal_token', id, name: token.name } as const;
    await record(transaction, author, { action: 'token.revoke', target });
  });
}
