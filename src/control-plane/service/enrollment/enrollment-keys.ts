import type { CreateEnrollmentKey, EnrollmentKey } from '../../../contract/enrollment-key.ts';
import type { PeerType } from '../../../contract/peer.ts';
import type { Secret } from '../../../core/crypto/secret.ts';
import { InvalidValue } from '../../../core/errors/index.ts';
import type { Prefix } from '../../../core/net/cidr.ts';
import { type Caller, requireTagger } from '../../domain/caller.ts';
import { readFields } from '../../domain/field-rules.ts';
import { parseServedRoutes, parseTags } from '../../domain/network-rules.ts';
import { hashToken, mintToken, tokenPrefixes } from '../../domain/tokens.ts';
import { NotFound } from '../../errors.ts';
import * as store from '../../store/enrollment-keys.ts';
import type { StoredNetwork } from '../../store/networks.ts';
import { mapPage, type Slice, type StoredPage } from '../../store/page.ts';
import { transact } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { lockNetwork, requireNetwork } from '../networks.ts';
import { requireAdminIfClosed, requireAuthor } from '../require-author.ts';

/** Creates an enrolment key. The token is returned only here: only its hash is stored. */
export async function createKey(
  context: Context,
  caller: Caller,
  networkId: number,
  asked: CreateEnrollmentKey,
): Promise<{ key: EnrollmentKey; token: Secret }> {
  const token = mintToken(tokenPrefixes.enrollmentKey, context.random);
  const at = context.now();
  return transact(context.db, async (transaction) => {
    const network = await lockNetwork(transaction, caller, networkId);
    const author = await requireAuthor(context, transaction, requireTagger(caller, asked.tags));
    const { peer_types = null } = asked;
    // A connector sends with any address of its routes.
    if (peer_types === null || peer_types.includes('connector'))
      await requireAdminIfClosed(context, transaction, caller, networkId, 'create keys for connectors');
    const { routes, tags } = readLimits(asked, network);
    const key = await store.insertKey(transaction, {
      network_id: networkId,
      name: asked.name,
      token_hash: hashToken(token),
      max_uses: asked.max_uses,
      uses: 0,
      created_at: at.toISOString(),
      expires_at: new Date(at.getTime() + asked.expires_in_hours * 3600 * 1000).toISOString(),
      peer_types: peer_types && JSON.stringify([...new Set(peer_types)]),
      routes: routes && JSON.stringify(routes),
      peer_hours: asked.peer_expires_in_hours ?? null,
      tags: tags && JSON.stringify(tags),
    });
    const shown = toEnrollmentKey(key);
    const { id: _, name: __, uses: ___, ...limits } = shown;
    await record(transaction, author, {
      action: 'key.create',
      target: targetOf(key),
      details: { network: networkId, ...limits },
    });
    return { key: shown, token };
  });
}

export async function checkNewKey(
  { db }: Context,
  caller: Caller,
  networkId: number,
  asked: Partial<CreateEnrollmentKey>,
): Promise<void> {
  readLimits(asked, await requireNetwork(db, caller, networkId));
}

/** The routes that connectors with this key may serve, null for any; and the tags of its peers. */
function readLimits(
  { routes, peer_types, tags }: Partial<CreateEnrollmentKey>,
  network: StoredNetwork,
): { readonly routes: Prefix[] | null; readonly tags: string[] | null } {
  return readFields((read) => ({
    tags: read(() => (tags === undefined ? null : parseTags(tags))),
    routes: read(() => {
      if (routes === undefined) return null;
      if (peer_types && !peer_types.includes('connector')) {
        const rule = 'are for keys that connectors may enrol with';
        throw new InvalidValue('routes', routes, rule, 'add connector to peer_types');
      }
      return parseServedRoutes(routes, network.routes);
    }),
  }));
}

/** Lists the usable keys of a network, or with `all` every key that is not revoked. */
export async function listKeys(
  { db, now }: Context,
  caller: Caller,
  networkId: number,
  { all, slice }: { all: boolean; slice: Slice },
): Promise<StoredPage<EnrollmentKey>> {
  await requireNetwork(db, caller, networkId);
  return mapPage(await store.listKeys(db, networkId, all ? null : now().toISOString(), slice), toEnrollmentKey);
}

export async function revokeKey(context: Context, caller: Caller, networkId: number, id: number): Promise<void> {
  await transact(context.db, async (transaction) => {
    await requireNetwork(transaction, caller, networkId);
    const author = await requireAuthor(context, transaction, caller);
    const revoked = await store.revokeKey(transaction, networkId, id, context.now().toISOString());
    if (!revoked) throw new NotFound('enrolment key');
    await record(transaction, author, {
      action: 'key.revoke',
      target: targetOf(revoked),
      details: { network: networkId },
    });
  });
}

function targetOf({ id, name }: store.StoredKey) {
  return { kind: 'enrollment_key', id, name } as const;
}

function toEnrollmentKey(key: store.StoredKey): EnrollmentKey {
  const { id, name, max_uses, uses, expires_at } = key;
  const { types, routes } = readKeyLimits(key);
  return {
    ...{ id, name, max_uses, uses, expires_at },
    ...(types !== null && { peer_types: [...types] }),
    ...(routes !== null && { routes: [...routes] }),
    ...(key.tags !== null && { tags: JSON.parse(key.tags) }),
    ...(key.peer_hours !== null && { peer_expires_in_hours: key.peer_hours }),
  };
}

/** The limits for peers that enrol with a key; null for no limit. */
export function readKeyLimits({ peer_types, routes }: Pick<store.StoredKey, 'peer_types' | 'routes'>): {
  readonly types: readonly PeerType[] | null;
  readonly routes: readonly Prefix[] | null;
} {
  return {
    types: peer_types === null ? null : (JSON.parse(peer_types) as PeerType[]),
    routes: routes === null ? null : (JSON.parse(routes) as Prefix[]),
  };
}
