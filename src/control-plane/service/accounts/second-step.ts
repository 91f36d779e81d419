import type { Assertion, LoginChallenge } from '../../../contract/second-factor.ts';
import type { Secret } from '../../../core/crypto/secret.ts';
import { widenAddress } from '../../domain/caller.ts';
import { findTotpStep, hashRecoveryCode } from '../../domain/one-time-codes.ts';
import {
  loadPasskeys,
  mintPasskeyChallenge,
  type Passkey,
  type PasskeySite,
  requestOptions,
  verifyAssertion,
} from '../../domain/passkeys.ts';
import { challengeMs, hashToken, mintToken, tokenPrefixes } from '../../domain/tokens.ts';
import { TooManyRequests, Unauthenticated } from '../../errors.ts';
import * as store from '../../store/accounts/second-factors.ts';
import { lockUser } from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';
import { transact } from '../../store/transact.ts';
import { type Author, record } from '../audit.ts';
import type { Context } from '../context.ts';
import { type OpenedSession, openLogin, type SecondProof } from './open-login.ts';

/** Failed attempts after which a challenge is void. */
const mostTries = 5;
/** Challenges of a user at once from one part of the addresses, and in all. */
const mostOfOrigin = 20;
const mostChallenges = 100;

/**
 * Codes that a user's apps refuse in an hour: of a million codes three are right, and a challenge
 * is new after each password. Passkeys and recovery codes cannot be guessed and have no such limit.
 */
const mostFailures = 10;
const failureMs = 3600 * 1000;

interface FirstStep {
  readonly userId: number;
  readonly device: string;
  readonly address: string;
  readonly factors: readonly store.StoredFactor[];
  /** Null where browsers offer no passkeys. */
  readonly site: PasskeySite | null;
}

/** The reply to the right password. The caller has locked the user. */
export async function challengeLogin(
  context: Context,
  transaction: Db,
  { userId, device, address, factors, site }: FirstStep,
): Promise<LoginChallenge> {
  const { random } = context;
  const token = mintToken(tokenPrefixes.challenge, random);
  const passkeys = factors.flatMap(({ data }) => ('rpId' in data ? [data] : []));
  const isUsable = site !== null && passkeys.some(({ rpId }) => rpId === site.rpId);
  const passkey = isUsable ? { ...site, value: mintPasskeyChallenge(random) } : null;
  const data = { kind: 'login', device, address, passkey } as const;
  const expires_at = await insertChallenge(context, transaction, { userId, sessionId: null, token, data });
  return {
    second_factor: {
      ...{ challenge: token.reveal(), expires_at, kinds: [...new Set(factors.map(({ kind }) => kind))] },
      recovery_codes_left: await store.countRecoveryCodes(transaction, userId),
      passkey: passkey && requestOptions(passkey, passkeys),
      passkey_hosts: [...new Set(passkeys.map(({ rpId }) => rpId))],
    },
  };
}

interface NewChallenge {
  readonly userId: number;
  readonly sessionId: number | null;
  readonly token: Secret;
  readonly data: store.ChallengeData;
}

/** Stores a challenge, and returns when it expires. The caller has locked the user. */
export async function insertChallenge(
  context: Context,
  transaction: Db,
  { userId, sessionId, token, data }: NewChallenge,
): Promise<string> {
  await makeRoom(context, transaction, userId, data);
  const expires_at = new Date(context.now().getTime() + challengeMs).toISOString();
  const row = { user_id: userId, session_id: sessionId, token_hash: hashToken(token), data, tries: 0, expires_at };
  await store.insertChallenge(transaction, row);
  return expires_at;
}

/**
 * Deletes the expired challenges of a user, and surplus ones where there are most: a thief of the
 * password must not void the login of the user. Records logins that had no second factor.
 */
async function makeRoom(context: Context, transaction: Db, userId: number, data: store.ChallengeData): Promise<void> {
  const now = context.now().toISOString();
  const stored = await store.listChallenges(transaction, userId);
  const open = stored.filter(({ expires_at }) => expires_at > now);
  const groups = Map.groupBy(open, (each) => originOf(each.data));
  const own = groups.get(originOf(data)) ?? [];
  const largest = [...groups.values()].reduce((most, each) => (each.length > most.length ? each : most), own);
  const full = own.length >= mostOfOrigin ? own : open.length >= mostChallenges ? largest : [];
  const gone = [...stored.filter(({ expires_at }) => expires_at <= now), ...full.slice(0, 1)];
  for (const challenge of gone) {
    await store.deleteChallenge(transaction, challenge.id);
    await recordUnanswered(context, transaction, challenge);
  }
}

function originOf(data: store.ChallengeData): string {
  if (data.kind !== 'login' || data.address === undefined) return '';
  return widenAddress(data.address) ?? data.address;
}

/** A wrong answer is in the audit log already. */
async function recordUnanswered(
  { readTime }: Context,
  transaction: Db,
  { user_id: id, email, organization_id: organizationId, data, tries, expires_at }: store.ListedChallenge,
): Promise<void> {
  if (data.kind !== 'login' || tries > 0) return;
  const actor = { kind: 'nobody', id: null, name: null } as const;
  const author = { organizationId, actor, address: data.address ?? null, readTime };
  const target = { kind: 'user', id, name: email } as const;
  const details = { second_factor: 'missing', until: expires_at };
  await record(transaction, author, { action: 'login.refused', target, details });
}

/** Finds a challenge of this page that is not used up, and locks its user. */
export async function lockChallenge(
  { now }: Context,
  transaction: Db,
  token: Secret,
): Promise<store.StoredChallenge | null> {
  const find = () => store.findChallenge(transaction, hashToken(token), now().toISOString());
  const found = await find();
  if (!found || !(await lockUser(transaction, found.organization_id, found.user_id))) return null;
  // A concurrent attempt may have used it.
  const locked = await find();
  return locked && locked.tries < mostTries ? locked : null;
}

/** What a page gives as the second factor. */
export type SecondFactorProof =
  | { readonly kind: 'totp'; readonly code: string }
  | { readonly kind: 'recovery_code'; readonly code: string }
  | { readonly kind: 'passkey'; readonly assertion: Assertion };

interface SecondStep {
  readonly challenge: Secret;
  readonly proof: SecondFactorProof;
  readonly address: string;
}

/** Opens the session of a page after the right password. @throws Unauthenticated */
export async function passSecondFactor(
  context: Context,
  { challenge: token, proof, address }: SecondStep,
): Promise<OpenedSession> {
  if (proof.kind === 'passkey') await loadPasskeys();
  const result = await transact(context.db, async (transaction) => {
    const challenge = await lockChallenge(context, transaction, token);
    if (challenge?.data.kind !== 'login') return 'void';
    const { user_id: id, email, organization_id: organizationId, data } = challenge;
    const { readTime } = context;
    const author: Author = { organizationId, actor: { kind: 'user', id, name: email }, address, readTime };
    if (!(await acceptProof(context, transaction, { challenge, login: data, proof, author }))) {
      await store.countTry(transaction, challenge.id);
      const anonymous = { ...author, actor: { kind: 'nobody', id: null, name: null } } as const;
      const target = { kind: 'user', id, name: email } as const;
      await record(transaction, anonymous, {
        ...{ action: 'login.refused', target },
        details: { second_factor: proof.kind },
      });
      return 'refused';
    }
    await store.deleteChallenge(transaction, challenge.id);
    const user = { id, email, organizationId };
    const method = `password+${proof.kind satisfies SecondProof}` as const;
    return openLogin(context, transaction, { user, name: data.device, address, isSplit: true, method });
  });
  // A refusal is committed with its count before it is thrown.
  if (result === 'refused') throw new Unauthenticated(refusals[proof.kind]);
  if (result === 'void') throw new Unauthenticated('this login has expired or failed too often; log in again');
  const { id: _, ...opened } = result;
  return opened;
}

const refusals: Readonly<Record<SecondProof, string>> = {
  totp: 'the code is wrong or was used before; wait for the next one',
  recovery_code: 'the recovery code is wrong or was used before; take another one',
  passkey: 'the passkey was not accepted; try again, or use another second factor',
};

interface Answer {
  readonly challenge: store.StoredChallenge;
  readonly login: Extract<store.ChallengeData, { kind: 'login' }>;
  readonly proof: SecondFactorProof;
  readonly author: Author;
}

async function acceptProof(
  context: Context,
  transaction: Db,
  { challenge: { user_id: userId }, login, proof, author }: Answer,
): Promise<boolean> {
  if (proof.kind === 'recovery_code') {
    if (!(await store.useRecoveryCode(transaction, userId, hashRecoveryCode(proof.code)))) return false;
    const left = await store.countRecoveryCodes(transaction, userId);
    const target = { kind: 'user', id: userId, name: author.actor.name } as const;
    await record(transaction, author, { action: 'factor.recovery_used', target, details: { left } });
    return true;
  }
  const factors = await store.listFactors(transaction, userId);
  if (proof.kind === 'totp') return acceptCode(context, transaction, factors, proof.code);
  const found = factors.find(({ data }) => 'rpId' in data && data.credentialId === proof.assertion.id);
  if (found === undefined || login.passkey === null) return false;
  const used = await verifyAssertion(login.passkey, found.data as Passkey, proof.assertion);
  if (used === null) return false;
  await store.updateFactor(transaction, found.id, used, context.now().toISOString());
  return true;
}

/** Compares a code with each app of the user, and counts a wrong one for all. */
async function acceptCode(
  { now }: Context,
  transaction: Db,
  factors: readonly store.StoredFactor[],
  code: string,
): Promise<boolean> {
  const at = now();
  const apps = factors.flatMap(({ id, data }) => ('secret' in data ? [{ id, data }] : []));
  const waits = apps.map(({ data: { failures = 0, failedAt } }) =>
    failedAt !== undefined && failures >= mostFailures ? Date.parse(failedAt) + failureMs - at.getTime() : 0,
  );
  const waitMs = Math.max(0, ...waits);
  if (waitMs > 0) {
    const seconds = Math.ceil(waitMs / 1000);
    throw new TooManyRequests('wrong codes for this user; use a passkey or a recovery code', seconds);
  }
  for (const { id, data } of apps) {
    const step = findTotpStep(data, code, at);
    if (step === null) continue;
    const { secret } = data;
    await store.updateFactor(transaction, id, { secret, lastStep: step }, at.toISOString());
    return true;
  }
  for (const { id, data } of apps) {
    const isLate = data.failedAt === undefined || Date.parse(data.failedAt) + failureMs <= at.getTime();
    const failures = isLate ? 1 : (data.failures ?? 0) + 1;
    await store.updateFactor(transaction, id, { ...data, failures, failedAt: at.toISOString() });
  }
  return false;
}
