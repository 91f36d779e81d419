import {
  type EnrollmentClaim,
  type IdentityKey,
  isEnrollmentProven,
  isProven,
  type KeyProof,
  parseIdentityKey,
} from '../../../core/crypto/identity.ts';
import { InvalidValue } from '../../../core/errors/index.ts';
import { readFields } from '../../domain/field-rules.ts';
import type { StoredNetwork } from '../../store/networks.ts';
import { wasIdentityRemoved } from '../../store/peers/enrollments.ts';
import { findByIdentity } from '../../store/peers/peers.ts';
import type { Db } from '../../store/tables.ts';

/** The headers with the identity of an enrolling host. Each is valid by its schema, or missing. */
export interface IdentityHeaders {
  readonly key?: string | undefined;
  readonly proof?: string | undefined;
  readonly keyProof?: string | undefined;
}

/** An identity, with the proof of the public key if any. A key proof requires a proven identity. */
export interface ClaimedIdentity {
  readonly key: string;
  readonly isProven: boolean;
  readonly keyProof: KeyProof | null;
}

export const keyProofHeader = 'peer-key-proof';

/** Reads the identity of an enrolment. Refuses an invalid key and a proof that does not hold. */
export function readIdentity(
  { key, proof, keyProof }: IdentityHeaders,
  claim: EnrollmentClaim,
): ClaimedIdentity | null {
  const parsedKey = readKey(key);
  const read = readFields((parse) => ({
    isProven: parse(() => {
      if (proof === undefined) return false;
      if (parsedKey === null) throw new InvalidValue(proofHeader, undefined, 'is given without Peer-Identity-Key');
      if (isEnrollmentProven(parsedKey, claim, proof)) return true;
      const rule = 'is not signed by the Peer-Identity-Key for this public_key and this enrollment_token';
      throw new InvalidValue(proofHeader, undefined, rule);
    }),
    keyProof: parse(() => {
      if (keyProof === undefined) return null;
      if (parsedKey === null || proof === undefined)
        throw new InvalidValue(keyProofHeader, undefined, 'is given without Peer-Identity-Proof');
      const [serial, signature = ''] = keyProof.split(' ');
      const parsed = { serial: Number(serial), signature };
      if (isProven(parsedKey, claim.publicKey, parsed)) return parsed;
      throw new InvalidValue(keyProofHeader, undefined, 'is not signed by the Peer-Identity-Key for this public_key');
    }),
  }));
  return parsedKey && { key: parsedKey, ...read };
}

const proofHeader = 'peer-identity-proof';

/** Checks the key even without a proof, because the map publishes it and other hosts parse it. */
function readKey(key: string | undefined): IdentityKey | null {
  return readFields((parse) => ({
    key: parse(() => (key === undefined ? null : parseIdentityKey(key, 'peer-identity-key'))),
  })).key;
}

/**
 * The identity to store. Without a proof it is dropped if a peer of the network has or had it, and
 * where an administrator approves it: any host can state the fingerprint of another.
 */
export async function chooseIdentity(
  db: Db,
  { id: network, approval }: StoredNetwork,
  identity: ClaimedIdentity | null,
): Promise<string | null> {
  if (identity === null || identity.isProven) return identity?.key ?? null;
  if (approval === 'required') return null;
  const { key } = identity;
  const isTaken = (await findByIdentity(db, network, key)) || (await wasIdentityRemoved(db, network, key));
  return isTaken ? null : key;
}
