import {
  type EnrollmentClaim,
  type IdentityKey,
  isEnrollmentProven,
  isProven,
  type KeyProof,
  parseIdentityKey,
} from '../../core/crypto/identity.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import { readFields } from '../domain/field-rules.ts';
import { wasIdentityRemoved } from '../store/former-identities.ts';
import { findByIdentity } from '../store/peers.ts';
import type { Db } from '../store/tables.ts';

/** The headers of an enrolment with the identity of its host. Each follows its schema or is missing. */
export interface IdentityHeaders {
  readonly key?: string | undefined;
  readonly proof?: string | undefined;
  readonly keyProof?: string | undefined;
}

/** An identity, and its proof of the public key where the enrolment brought one; no such proof comes without a proven identity. */
export interface ClaimedIdentity {
  readonly key: string;
  readonly isProven: boolean;
  readonly keyProof: KeyProof | null;
}

/** The header of the proof that belongs to the public key. */
export const keyProofHeader = 'peer-key-proof';

/** Reads the identity of an enrolment, and refuses a key that is none and a proof that does not hold. */
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

/** Also an identity without a proof is published in the map, where other hosts parse it. */
function readKey(key: string | undefined): IdentityKey | null {
  return readFields((parse) => ({
    key: parse(() => (key === undefined ? null : parseIdentityKey(key, 'peer-identity-key'))),
  })).key;
}

/** The identity to keep of a new peer: one without a proof is kept only where no peer of the network has it or had it. */
export async function chooseIdentity(
  db: Db,
  network: number,
  identity: ClaimedIdentity | null,
): Promise<string | null> {
  if (identity === null || identity.isProven) return identity?.key ?? null;
  const { key } = identity;
  const isTaken = (await findByIdentity(db, network, key)) || (await wasIdentityRemoved(db, network, key));
  return isTaken ? null : key;
}
