import { createHash, timingSafeEqual } from 'node:crypto';
import { type DecideDeviceCode, type DeviceDecision, userCodeLetters } from '../../../contract/device-code.ts';
import { Secret } from '../../../core/crypto/secret.ts';
import type { UserCaller } from '../../domain/caller.ts';
import { boundSessions } from '../../domain/session-limits.ts';
import { hashToken, mintToken, type Random, tokenPrefixes } from '../../domain/tokens.ts';
import { DeviceCodeRefused, InvalidRequest, NotFound, TooManyRequests } from '../../errors.ts';
import * as store from '../../store/accounts/device-codes.ts';
import { hasFactor } from '../../store/accounts/second-factors.ts';
import { findSessionProof } from '../../store/accounts/sessions.ts';
import { lockUserById } from '../../store/accounts/users.ts';
import type { Db } from '../../store/tables.ts';
import { transact } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { requireUser } from '../require-author.ts';
import { type OpenedSession, openLogin } from './open-login.ts';
import { proveIfGiven, requireProof } from './prove-password.ts';
import { shorten } from './sessions.ts';

/** Seconds for which a device code waits for its approval. */
export const validSeconds = 600;
/** Milliseconds within which an approval must be used. */
const usableMs = 120_000;
/** The maximum numbers of stored codes. Anyone may ask for one. */
const mostCodes = 1000;
const mostOfOrigin = 20;
const retrySeconds = 60;

interface DeviceLogin {
  readonly device: string;
  readonly address: string;
  /** The part of the address by which requests are limited. */
  readonly origin: string;
  readonly challenge: string | undefined;
  readonly redirectPort: number | undefined;
}

/** Stores a login that waits for its approval. Only the hashes of its codes are stored. */
export async function startDeviceLogin(
  { db, now, random }: Context,
  { device, address, origin, challenge, redirectPort }: DeviceLogin,
): Promise<{ readonly deviceCode: Secret; readonly userCode: string }> {
  if ((challenge === undefined) !== (redirectPort === undefined)) {
    const missing = challenge === undefined ? 'code_challenge' : 'redirect_port';
    throw new InvalidRequest({ [missing]: ['is required: code_challenge and redirect_port go together'] });
  }
  const deviceCode = mintToken(tokenPrefixes.device, random);
  const at = now();
  return transact(db, async (transaction) => {
    await store.deleteExpiredDeviceCodes(transaction, at.toISOString());
    if ((await store.countDeviceCodes(transaction, origin)) >= mostOfOrigin)
      throw new TooManyRequests(`open device codes from this address, ${mostOfOrigin}`, retrySeconds);
    if ((await store.countDeviceCodes(transaction)) >= mostCodes)
      throw new TooManyRequests(`open device codes, ${mostCodes}`, retrySeconds);
    const userCode = mintUserCode(random);
    await store.insertDeviceCode(transaction, {
      device_code_hash: hashToken(deviceCode),
      user_code_hash: hashUserCode(userCode),
      ...{ name: shorten(device), address, origin },
      ...{ code_challenge: challenge ?? null, redirect_port: redirectPort ?? null },
      created_at: at.toISOString(),
      expires_at: new Date(at.getTime() + validSeconds * 1000).toISOString(),
    });
    return { deviceCode, userCode: formatUserCode(userCode) };
  });
}

/** The login that waits with this user code. @throws NotFound also for one that was decided */
export async function readDeviceLogin({ db, now }: Context, userCode: string) {
  const found = await findAsked(db, userCode, now());
  const { name, address, created_at, expires_at, redirect_port } = found;
  return { name, address, created_at, expires_at, redirects: redirect_port !== null };
}

/**
 * Approves or refuses a login. An approval needs a recent proof of identity: a stolen session must
 * not open sessions that outlive it.
 * @throws NotFound, Forbidden for a wrong password, InvalidRequest for a missing one
 */
export async function decideDeviceLogin(
  context: Context,
  caller: UserCaller,
  userCode: string,
  { approve, password }: DecideDeviceCode,
): Promise<DeviceDecision> {
  const proof = approve ? await proveIfGiven(context, caller, password) : null;
  const redirectCode = mintToken(tokenPrefixes.device, context.random);
  return transact(context.db, async (transaction) => {
    const { author, login } = await requireUser(context, transaction, caller);
    const at = context.now();
    const { id, name, address, redirect_port, expires_at } = await findAsked(transaction, userCode, at);
    if (approve) await requireProof(context, transaction, { caller, login, proof, field: 'password' });
    const isProven = proof !== null && !(await hasFactor(transaction, caller.userId));
    const redirects = approve && redirect_port !== null;
    const usableUntil = Math.min(at.getTime() + usableMs, Date.parse(expires_at));
    const isFirst = await store.decideCode(transaction, id, {
      ...{ outcome: approve ? 'approved' : 'refused', user_id: caller.userId, session_id: caller.credential.id },
      // A chain of approvals must not prolong the proof of the first session.
      proven_at: isProven ? at.toISOString() : login,
      redirect_code_hash: redirects ? hashToken(redirectCode) : null,
      expires_at: new Date(usableUntil).toISOString(),
    });
    if (!isFirst) throw new NotFound('device code');
    const target = { kind: 'session', id: null, name } as const;
    const action = approve ? 'login.approve' : 'login.deny';
    await record(transaction, author, { action, target, details: { device_address: address } });
    return { redirect_port, code: redirects ? redirectCode.reveal() : null };
  });
}

interface Redemption {
  readonly deviceCode: Secret;
  readonly redirectCode: Secret | undefined;
  readonly verifier: Secret | undefined;
  /** The source address of the request. */
  readonly address: string;
}

/**
 * Opens the session of an approved login, once. Checks the approver again: the approval ends with
 * the session that gave it.
 * @throws DeviceCodeRefused
 */
export async function redeemDeviceCode(
  context: Context,
  { deviceCode, redirectCode, verifier, address }: Redemption,
): Promise<OpenedSession> {
  const { db, now, sessionLimits } = context;
  const at = now();
  const found = await store.findDeviceCode(db, hashToken(deviceCode), at.toISOString());
  if (!found) throw new DeviceCodeRefused('expired_token');
  const { id, outcome, user_id: userId, session_id: session, proven_at: provenAt } = found;
  if (outcome === null) throw new DeviceCodeRefused('authorization_pending');
  if (outcome === 'refused') throw new DeviceCodeRefused('access_denied');
  if (!isOfRedirect(found, redirectCode, verifier)) throw new DeviceCodeRefused('expired_token');
  return transact(db, async (transaction) => {
    const user = userId === null ? undefined : await lockUserById(transaction, userId);
    const proof =
      user &&
      session !== null &&
      (await findSessionProof(transaction, user.id, session, boundSessions(sessionLimits, at)));
    const isTaken = await store.takeDeviceCode(transaction, id);
    if (!user || !proof || !isTaken) throw new DeviceCodeRefused('expired_token');
    const { id: _, ...opened } = await openLogin(context, transaction, {
      user: { id: user.id, email: user.email, organizationId: user.organization_id },
      ...{ name: found.name, address, isSplit: false, method: 'device_code' },
      provenAt: provenAt ?? proof,
      details: { approved_by_session: session },
    });
    return opened;
  });
}

interface RedirectHashes {
  readonly code_challenge: string | null;
  readonly redirect_code_hash: string | null;
}

/** True if both secrets match, or if the login has no redirect. */
function isOfRedirect(
  { code_challenge: challenge, redirect_code_hash: hash }: RedirectHashes,
  redirectCode: Secret | undefined,
  verifier: Secret | undefined,
): boolean {
  if (challenge === null) return true;
  if (hash === null || !redirectCode || !verifier) return false;
  const hashed = createHash('sha256').update(verifier.reveal()).digest('base64url');
  return isSame(hashToken(redirectCode), hash) && isSame(hashed, challenge);
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

async function findAsked(db: Db, userCode: string, now: Date) {
  const found = await store.findAskedCode(db, hashUserCode(userCode), now.toISOString());
  if (!found) throw new NotFound('device code');
  return found;
}

const userCodeLength = 8;

/** Draws letters without a bias: bytes from the largest multiple of 20 on are dropped. */
function mintUserCode(random: Random): string {
  const { length } = userCodeLetters;
  let code = '';
  while (code.length < userCodeLength) {
    for (const byte of random(2 * userCodeLength)) {
      if (byte < 256 - (256 % length)) code += userCodeLetters[byte % length];
    }
  }
  return code.slice(0, userCodeLength);
}

export function formatUserCode(code: string): string {
  const letters = plainUserCode(code);
  return `${letters.slice(0, userCodeLength / 2)}-${letters.slice(userCodeLength / 2)}`;
}

const plainUserCode = (typed: string) => typed.replace('-', '').toUpperCase();

const hashUserCode = (typed: string) => hashToken(new Secret(plainUserCode(typed)));
