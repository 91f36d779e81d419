import type { Assertion, Attestation } from '../../contract/second-factor.ts';
import type { Random } from './tokens.ts';

/** The page that uses passkeys: a passkey works only at its DNS name. */
export interface PasskeySite {
  readonly rpId: string;
  readonly origin: string;
}

export interface Passkey {
  readonly rpId: string;
  readonly credentialId: string;
  readonly publicKey: string;
  readonly counter: number;
}

interface Challenge extends PasskeySite {
  readonly value: string;
}

interface NewPasskey {
  readonly user: { readonly id: number; readonly email: string };
  /** The passkeys of the user. An authenticator holds one for each user. */
  readonly others: readonly Passkey[];
}

/** EdDSA, ES256 and RS256. The library's own choice tries algorithms that Node warns about. */
const supportedAlgorithmIDs = [-8, -7, -257];

/** Loaded only if it is used: the library reads certificates of authenticators too. */
const library = () => import('@simplewebauthn/server');
const helpers = () => import('@simplewebauthn/server/helpers');

/** To be called before a transaction: others wait for it, and must not wait for the library. */
export async function loadPasskeys(): Promise<void> {
  await Promise.all([library(), helpers()]);
}

export function mintPasskeyChallenge(random: Random): string {
  return Buffer.from(random(32)).toString('base64url');
}

/** The options for `navigator.credentials.create()`, in JSON. */
export async function creationOptions({ value, rpId }: Challenge, { user, others }: NewPasskey) {
  const { generateRegistrationOptions } = await library();
  return generateRegistrationOptions({
    rpName: 'cpn',
    rpID: rpId,
    userName: user.email,
    userID: new TextEncoder().encode(`cpn user ${user.id}`),
    challenge: Uint8Array.from(Buffer.from(value, 'base64url')),
    attestationType: 'none',
    supportedAlgorithmIDs,
    excludeCredentials: others.filter((each) => each.rpId === rpId).map(({ credentialId: id }) => ({ id })),
    // A security key has room for few discoverable passkeys, and the login names its user.
    authenticatorSelection: { residentKey: 'discouraged', userVerification: 'preferred' },
  });
}

/** The options for `navigator.credentials.get()`, in JSON. */
export function requestOptions({ value, rpId }: Challenge, passkeys: readonly Passkey[]) {
  const allowed = passkeys.filter((each) => each.rpId === rpId);
  return {
    ...{ challenge: value, rpId, timeout: 60_000, userVerification: 'preferred' },
    allowCredentials: allowed.map(({ credentialId: id }) => ({ id, type: 'public-key' })),
  };
}

/** Returns the passkey that an authenticator made for the challenge; null if it proves none. */
export async function verifyAttestation(challenge: Challenge, attestation: Attestation): Promise<Passkey | null> {
  const { verifyRegistrationResponse } = await library();
  const { decodeAttestationObject, isoBase64URL } = await helpers();
  const { verified, registrationInfo: made } = await orUnverified(async () => {
    const object = decodeAttestationObject(isoBase64URL.toBuffer(attestation.response.attestationObject));
    // Other formats have certificates, which name addresses that the library may fetch from.
    const isPlain = ['none', 'packed'].includes(object.get('fmt')) && object.get('attStmt').get('x5c') === undefined;
    if (!isPlain) return unverified;
    return verifyRegistrationResponse({
      response: { ...attestation, clientExtensionResults: {} },
      expectedChallenge: challenge.value,
      expectedOrigin: challenge.origin,
      expectedRPID: challenge.rpId,
      requireUserVerification: false,
      supportedAlgorithmIDs,
    });
  });
  if (!verified || made === undefined) return null;
  const { id, publicKey, counter } = made.credential;
  const { rpId } = challenge;
  return { rpId, credentialId: id, publicKey: Buffer.from(publicKey).toString('base64url'), counter };
}

/** Returns the passkey with its new counter; null if it did not sign the challenge. */
export async function verifyAssertion(
  challenge: Challenge,
  passkey: Passkey,
  assertion: Assertion,
): Promise<Passkey | null> {
  if (passkey.rpId !== challenge.rpId || passkey.credentialId !== assertion.id) return null;
  const { verifyAuthenticationResponse } = await library();
  const { credentialId: id, publicKey, counter } = passkey;
  const { verified, authenticationInfo: used } = await orUnverified(() =>
    verifyAuthenticationResponse({
      response: { ...assertion, clientExtensionResults: {} },
      expectedChallenge: challenge.value,
      expectedOrigin: challenge.origin,
      expectedRPID: challenge.rpId,
      credential: { id, publicKey: Uint8Array.from(Buffer.from(publicKey, 'base64url')), counter },
      requireUserVerification: false,
    }),
  );
  return verified && used !== undefined ? { ...passkey, counter: used.newCounter } : null;
}

const unverified = { verified: false, registrationInfo: undefined, authenticationInfo: undefined } as const;

/** The library throws for everything that it does not accept. */
async function orUnverified<Result>(work: () => Promise<Result>): Promise<Result | typeof unverified> {
  try {
    return await work();
  } catch {
    return unverified;
  }
}
