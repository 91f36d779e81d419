import { totpSeconds } from '../domain/one-time-codes.ts';
import { challengeMs, freshLoginMs } from '../domain/tokens.ts';
import type { Db, Tables } from './tables.ts';
import { transact } from './transact.ts';

/** The longest pause between attempts. A later due time was stored while the clock was ahead. */
const longestDeliveryMs = 3_600_000;
/** Until the issuer is asked again. A later time was stored while the clock was ahead. */
const longestRefreshMs = 300_000;
/** The longest time for a confirmation of rules, by the contract. */
const longestConfirmationMs = 3_600_000;

/**
 * Sets later instants than `now`, from when the clock was ahead, to `now`; expiring rows keep their
 * lifetime. Sessions count as too old to prove a password: their true age is unknown.
 */
export async function clampInstants(db: Db, now: Date): Promise<void> {
  const at = now.toISOString();
  await transact(db, async (transaction) => {
    for (const column of ['last_seen', 'reported_at', 'lost_at'] as const)
      await transaction
        .updateTable('peer_health')
        .set({ [column]: at })
        .where(column, '>', at)
        .execute();
    for (const table of ['personal_tokens', 'sessions', 'known_prefixes'] as const)
      await transaction.updateTable(table).set({ last_used_at: at }).where('last_used_at', '>', at).execute();
    for (const table of ['enrollment_keys', 'sessions', 'personal_tokens'] as const)
      await shortenIn(transaction, table, now);
    for (const column of ['last_login_at', 'confirmed_at'] as const)
      await transaction
        .updateTable('identities')
        .set({ [column]: at })
        .where(column, '>', at)
        .execute();
    await transaction.deleteFrom('login_attempts').where('created_at', '>', at).execute();
    const latestRefresh = new Date(now.getTime() + longestRefreshMs).toISOString();
    await transaction
      .updateTable('issuer_sessions')
      .set({ next_at: at })
      .where('next_at', '>', latestRefresh)
      .execute();
    await clampFactors(transaction, now);
    // A host answers a message within seconds or never, so these messages are of no use.
    await transaction.deleteFrom('peer_messages').where('created_at', '>', at).execute();
    for (const table of ['peer_endpoints', 'peer_pairs', 'path_starts'] as const)
      await transaction.deleteFrom(table).where('at', '>', at).execute();
    const latest = new Date(now.getTime() + longestConfirmationMs).toISOString();
    await transaction
      .updateTable('network_rules')
      .set({ confirm_until: latest })
      .where('confirm_until', '>', latest)
      .execute();
    const horizon = new Date(now.getTime() + longestDeliveryMs).toISOString();
    await transaction
      .updateTable('deliveries')
      .set({ next_at: at })
      .where('next_at', '>', at)
      .where((eb) => eb.or([eb('attempts', '=', 0), eb('next_at', '>', horizon)]))
      .execute();
  });
}

type ExpiringTable = 'enrollment_keys' | 'sessions' | 'personal_tokens';

async function shortenIn(transaction: Db, table: ExpiringTable & keyof Tables, now: Date): Promise<void> {
  const at = now.toISOString();
  const earlier = new Date(now.getTime() - freshLoginMs - 1).toISOString();
  const early = await transaction
    .selectFrom(table)
    .select(['id', 'created_at', 'expires_at'])
    .where('created_at', '>', at)
    .execute();
  for (const { id, created_at, expires_at } of early) {
    const aheadMs = Date.parse(created_at) - now.getTime();
    const end = expires_at === null ? null : new Date(Date.parse(expires_at) - aheadMs).toISOString();
    await transaction
      .updateTable(table)
      .set({ created_at: table === 'sessions' ? earlier : at, ...(end !== null && { expires_at: end }) })
      .where('id', '=', id)
      .execute();
  }
}

/** An authenticator app would be refused until its last step, and after wrong codes for hours. */
async function clampFactors(transaction: Db, now: Date): Promise<void> {
  const at = now.toISOString();
  const latest = new Date(now.getTime() + challengeMs).toISOString();
  await transaction.deleteFrom('factor_challenges').where('expires_at', '>', latest).execute();
  await transaction.updateTable('second_factors').set({ last_used_at: at }).where('last_used_at', '>', at).execute();
  const present = Math.floor(now.getTime() / 1000 / totpSeconds);
  const apps = transaction.selectFrom('second_factors').select(['id', 'data']).where('kind', '=', 'totp');
  for (const { id, data } of await apps.execute()) {
    const { secret, lastStep, failedAt = at } = JSON.parse(data);
    if (lastStep <= present + 1 && failedAt <= at) continue;
    const clamped = JSON.stringify({ secret, lastStep: Math.min(lastStep, present) });
    await transaction.updateTable('second_factors').set({ data: clamped }).where('id', '=', id).execute();
  }
}
