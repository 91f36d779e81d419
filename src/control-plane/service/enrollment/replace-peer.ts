import type { EnrollRequest } from '../../../contract/peer.ts';
import type { KeyProof } from '../../../core/crypto/identity.ts';
import type { PublicKey } from '../../../core/crypto/keys.ts';
import { InvalidValue } from '../../../core/errors/index.ts';
import type { Prefix } from '../../../core/net/cidr.ts';
import { checkAll, readFields } from '../../domain/field-rules.ts';
import { checkEndpointOutside } from '../../domain/network-rules.ts';
import { readNetwork } from '../../store/networks.ts';
import { deleteEnrollment } from '../../store/peers/enrollments.ts';
import { isWaiting, type NewPeer, type StoredPeer, updatePeer } from '../../store/peers/peers.ts';
import { type Statements, saveStatements } from '../../store/statements.ts';
import type { Db } from '../../store/tables.ts';
import { checkKeyFree, checkProof } from '../peer-fields.ts';
import type { Revise } from '../with-revision.ts';
import type { Added } from './add-peer.ts';
import { lockForEnrollment } from './approval.ts';
import { keyProofHeader } from './claimed-identity.ts';

export interface Replacement
  extends Statements,
    Pick<NewPeer, 'peer_type' | 'serving_since' | 'expires_at' | 'network_secret_tag' | 'profile' | 'token_hash'>,
    Pick<StoredPeer, 'reauth_hours' | 'user_id' | 'user_email'> {
  readonly public_key: PublicKey;
  readonly peer_type: NonNullable<EnrollRequest['peer_type']>;
  readonly endpoint: string | null;
  readonly keyProof: KeyProof | null;
  /** The tags of the enrolment key; null for none. */
  readonly tags: string | null;
  /** The routes that the enrolment key allows; null for any. */
  readonly routes: readonly Prefix[] | null;
}

/**
 * Gives a peer to the host that proved its identity. Properties that the network assigned stay; the
 * earlier token and enrolment become void. A peer that waits for approval still does. A replayed
 * recording fails: its proof is not newer.
 */
export async function replacePeer(
  db: Db,
  revise: Revise,
  peer: StoredPeer,
  { keyProof, routes, ...brought }: Replacement,
): Promise<Added> {
  const { id, network_id } = peer;
  const waiting = isWaiting(peer) ? await lockForEnrollment(db, network_id) : null;
  const recordChange = waiting ? null : await revise(network_id);
  const network = waiting ?? (await readNetwork(db, network_id));
  const { endpoint, public_key, peer_type } = brought;
  const [, { key_proof }] = await checkAll(
    () => checkKeyFree(db, network_id, public_key, id),
    () =>
      readFields((read) => ({
        endpoint: read(() => endpoint && checkEndpointOutside(endpoint, network)),
        key_proof: read(() => readProof(keyProof, public_key, peer)),
      })),
  );
  await deleteEnrollment(db, id);
  const replaced = await updatePeer(db, network_id, id, {
    ...brought,
    key_proof,
    previous_key: public_key === peer.public_key ? peer.previous_key : peer.public_key,
    // Also for a peer that is not a connector: another enrolment could make it one again.
    routes: peer_type === 'connector' ? limitRoutes(peer.routes, routes) : peer.routes,
    priority: peer_type === 'connector' ? peer.priority : 0,
    withdrawn: '[]',
    masquerades: 0,
    tags: brought.tags ?? peer.tags,
  });
  const { follows_relay, enforces_rules } = brought;
  await saveStatements(db, id, { follows_relay, enforces_rules });
  await recordChange?.(id);
  return { peer: replaced, network };
}

function readProof(proof: KeyProof | null, publicKey: PublicKey, peer: StoredPeer): string | null {
  if (proof !== null) return checkProof(proof, publicKey, peer, keyProofHeader);
  if (publicKey === peer.public_key) return peer.key_proof;
  const rule = `is missing: the identity is that of peer ${peer.id}, which has another public key`;
  throw new InvalidValue(keyProofHeader, undefined, rule);
}

/** The routes of a peer that the key also allows, in JSON; null for any. */
function limitRoutes(served: string | null, allowed: readonly Prefix[] | null): string | null {
  if (allowed === null) return served;
  const both = served === null ? allowed : (JSON.parse(served) as Prefix[]).filter((route) => allowed.includes(route));
  return JSON.stringify(both);
}
