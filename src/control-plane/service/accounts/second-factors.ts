import type {
  AddedFactor,
  AddFactor,
  BeginFactor,
  FactorChallenge,
  FactorsRemoved,
  RecoveryCodes,
  SecondFactor,
  SecondFactors,
} from '../../../contract/second-factor.ts';
import { Secret } from '../../../core/crypto/secret.ts';
import type { UserCaller } from '../../domain/caller.ts';
import {
  findTotpStep,
  hashRecoveryCode,
  mintRecoveryCodes,
  mintTotpSecret,
  toTotpUri,
} from '../../domain/one-time-codes.ts';
import {
  creationOptions,
  loadPasskeys,
  mintPasskeyChallenge,
  type PasskeySite,
  verifyAttestation,
} from '../../domain/passkeys.ts';
import { mintToken, tokenPrefixes } from '../../domain/tokens.ts';
import { Forbidden, InvalidRequest, NotFound } from '../../errors.ts';
import * as store from '../../store/accounts/second-factors.ts';
import { endOtherSessions } from '../../store/accounts/sessions.ts';
import { lockOrganization, lockUser } from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';
import { transact } from '../../store/transact.ts';
import { type Author, record } from '../audit.ts';
import type { Context } from '../context.ts';
import { requireUser } from '../require-author.ts';
import { proveIfGiven, requireFreshLogin, requireProof } from './prove-password.ts';
import { insertChallenge, lockChallenge } from './second-step.ts';

const mostFactors = 10;

/** The site of the page, as `http/passkey-site.ts` reads it. */
interface Site {
  readonly hostName: string;
  readonly passkeys: PasskeySite | null;
  readonly problem: string | null;
}

export async function readSecondFactors(
  { db }: Context,
  { userId }: UserCaller,
  { problem }: Site,
): Promise<SecondFactors> {
  const factors = await store.listFactors(db, userId);
  return {
    factors: factors.map(toContract),
    recovery_codes_left: await store.countRecoveryCodes(db, userId),
    passkey_problem: problem,
  };
}

function toContract({ data: _, ...factor }: store.StoredFactor): SecondFactor {
  return factor;
}

/** Mints the secret of an app or the challenge for a passkey. Needs the proof of a new token. */
export async function beginFactor(
  context: Context,
  caller: UserCaller,
  { kind, password }: BeginFactor,
  site: Site,
): Promise<FactorChallenge> {
  const { random } = context;
  const { userId, email, credential } = caller;
  const { passkeys } = site;
  if (kind === 'passkey' && passkeys === null)
    throw new InvalidRequest({ kind: [`is not possible here: ${site.problem}`] });
  const proof = await proveIfGiven(context, caller, password);
  if (kind === 'passkey') await loadPasskeys();
  return transact(context.db, async (transaction) => {
    const { login } = await requireUser(context, transaction, caller);
    await requireProof(context, transaction, { caller, login, proof, field: 'password' });
    const factors = await store.listFactors(transaction, userId);
    if (factors.length >= mostFactors) throw tooMany();
    const token = mintToken(tokenPrefixes.challenge, random);
    const insert = (data: store.ChallengeData) =>
      insertChallenge(context, transaction, { userId, sessionId: credential.id, token, data });
    const challenge = token.reveal();
    if (kind === 'passkey' && passkeys !== null) {
      const passkey = { ...passkeys, value: mintPasskeyChallenge(random) };
      const others = factors.flatMap(({ data }) => ('rpId' in data ? [data] : []));
      const options = await creationOptions(passkey, { user: { id: userId, email }, others });
      return { challenge, expires_at: await insert({ kind: 'passkey', passkey }), passkey: { ...options } };
    }
    const secret = mintTotpSecret(random);
    const uri = toTotpUri(secret, { issuer: issuerOf(site), email });
    return { challenge, expires_at: await insert({ kind: 'totp', secret }), secret, uri };
  });
}

/** An app shows the issuer, which may contain no colon. */
function issuerOf({ hostName }: Site): string {
  return hostName === '' || hostName.includes(':') ? 'cpn' : `cpn ${hostName}`;
}

function tooMany(): InvalidRequest {
  return new InvalidRequest({ kind: [`is one too many: there are ${mostFactors} second factors; remove one first`] });
}

/**
 * Adds a factor that the page proved. The first one makes recovery codes, and ends the other
 * sessions: they were opened with a password alone.
 */
export async function addFactor(context: Context, caller: UserCaller, fields: AddFactor): Promise<AddedFactor> {
  const { userId, credential } = caller;
  const { name } = fields;
  if (fields.passkey !== undefined) await loadPasskeys();
  const added = await transact(context.db, async (transaction) => {
    const { author } = await requireUser(context, transaction, caller);
    const challenge = await lockChallenge(context, transaction, new Secret(fields.challenge));
    const isOwn = challenge?.user_id === userId && challenge.session_id === credential.id;
    if (!challenge || !isOwn || challenge.data.kind === 'login') {
      throw new InvalidRequest({ challenge: ['has expired, or failed too often; begin again'] });
    }
    const before = await store.listFactors(transaction, userId);
    if (before.length >= mostFactors) throw tooMany();
    const data = await proveFactor(context, challenge.data, fields);
    if (data === null) {
      await store.countTry(transaction, challenge.id);
      return null;
    }
    await store.deleteChallenge(transaction, challenge.id);
    const { kind } = challenge.data;
    const row = { kind, name, created_at: context.now().toISOString(), last_used_at: null };
    const id = await store.insertFactor(transaction, { user_id: userId, ...row, data });
    const isFirst = before.length === 0;
    const sessions_ended = isFirst ? await endOtherSessions(transaction, userId, credential.id) : 0;
    const target = { kind: 'second_factor', id, name } as const;
    await record(transaction, author, { action: 'factor.add', target, details: { kind, sessions_ended } });
    const codes = isFirst ? await replaceCodes(context, transaction, caller, author) : null;
    return { factor: { id, ...row }, sessions_ended, ...(codes && { recovery_codes: codes }) };
  });
  // The failed attempt is committed before the refusal.
  if (added === null) {
    throw new Forbidden(
      fields.passkey === undefined
        ? 'the code is wrong; check the clock of the phone, and give the present code'
        : 'the passkey was not accepted; begin again',
    );
  }
  return added;
}

/** The data of the new factor; null if it is not proved. */
async function proveFactor(
  { now }: Context,
  challenge: Exclude<store.ChallengeData, { kind: 'login' }>,
  { code, passkey }: AddFactor,
): Promise<store.FactorData | null> {
  if (challenge.kind === 'passkey') {
    if (passkey === undefined) throw new InvalidRequest({ passkey: ['is required'] });
    return verifyAttestation(challenge.passkey, passkey);
  }
  if (code === undefined) throw new InvalidRequest({ code: ['is required'] });
  const { secret } = challenge;
  const step = findTotpStep({ secret, lastStep: 0 }, code, now());
  return step === null ? null : { secret, lastStep: step };
}

async function replaceCodes(
  { random }: Context,
  transaction: Db,
  { userId, email }: UserCaller,
  author: Author,
): Promise<string[]> {
  const codes = mintRecoveryCodes(random);
  await store.replaceRecoveryCodes(transaction, userId, codes.map(hashRecoveryCode));
  const target = { kind: 'user', id: userId, name: email } as const;
  await record(transaction, author, { action: 'recovery_codes.create', target, details: { count: codes.length } });
  return codes;
}

/** Needs a recent login, which a factor proved. The last factor takes the recovery codes along. */
export async function removeFactor(context: Context, caller: UserCaller, id: number): Promise<void> {
  const { userId } = caller;
  await transact(context.db, async (transaction) => {
    const { author, login } = await requireUser(context, transaction, caller);
    requireFreshLogin(context, login);
    const removed = await store.deleteFactor(transaction, userId, id);
    if (!removed) throw new NotFound('second factor');
    const isLast = !(await store.hasFactor(transaction, userId));
    if (isLast) await store.deleteFactors(transaction, userId);
    const target = { kind: 'second_factor', id, name: removed.name } as const;
    await record(transaction, author, {
      ...{ action: 'factor.remove', target },
      details: { kind: removed.kind, last: isLast },
    });
  });
}

/** Voids the former codes. Needs a recent login, which a second factor proved. */
export async function createRecoveryCodes(context: Context, caller: UserCaller): Promise<RecoveryCodes> {
  return transact(context.db, async (transaction) => {
    const { author, login } = await requireUser(context, transaction, caller);
    requireFreshLogin(context, login);
    if (!(await store.hasFactor(transaction, caller.userId))) {
      throw new Forbidden('there is no second factor that a recovery code could replace; add one first');
    }
    return { recovery_codes: await replaceCodes(context, transaction, caller, author) };
  });
}

/**
 * Removes the factors of another user that lost them: from then on the password suffices. Only an
 * owner may do so for an owner, and no user for itself, because a session may be stolen.
 */
export async function resetFactors(context: Context, caller: UserCaller, id: number): Promise<FactorsRemoved> {
  return transact(context.db, async (transaction) => {
    await lockOrganization(transaction, caller.organizationId);
    const { author, role, login } = await requireUser(context, transaction, caller);
    requireFreshLogin(context, login);
    const user = await lockUser(transaction, caller.organizationId, id);
    if (!user) throw new NotFound('user');
    if (id === caller.userId) throw new Forbidden('remove your own second factors on the Account page of the console');
    if (user.role === 'owner' && role !== 'owner') {
      throw new Forbidden('only an owner may remove the second factors of an owner; ask an owner');
    }
    const factors_removed = await store.deleteFactors(transaction, id);
    const target = { kind: 'user', id, name: user.email } as const;
    if (factors_removed > 0)
      await record(transaction, author, { action: 'factor.remove', target, details: { factors_removed } });
    return { factors_removed };
  });
}
