import { hkdfSync } from 'node:crypto';
import nacl from 'tweetnacl';
import { Secret } from '../../core/crypto/secret.ts';
import type { Random } from './tokens.ts';

/** Encrypts secrets for the database with a key that is not in it. */
export interface Seal {
  close(secret: Secret): string;
  /** Null for a text of another key, or a changed one. */
  open(sealed: string): Secret | null;
}

/** The key comes from the client secret, which every process has: there is no second secret. */
export function createSeal(clientSecret: Secret, random: Random): Seal {
  const key = new Uint8Array(
    hkdfSync('sha256', clientSecret.reveal(), '', 'cpn refresh tokens', nacl.secretbox.keyLength),
  );
  return {
    close: (secret) => {
      const nonce = Uint8Array.from(random(nacl.secretbox.nonceLength));
      const box = nacl.secretbox(new TextEncoder().encode(secret.reveal()), nonce, key);
      return Buffer.concat([nonce, box]).toString('base64url');
    },
    open: (sealed) => {
      const bytes = new Uint8Array(Buffer.from(sealed, 'base64url'));
      const nonce = bytes.subarray(0, nacl.secretbox.nonceLength);
      if (nonce.length < nacl.secretbox.nonceLength) return null;
      const text = nacl.secretbox.open(bytes.subarray(nonce.length), nonce, key);
      return text === null ? null : new Secret(new TextDecoder().decode(text));
    },
  };
}
