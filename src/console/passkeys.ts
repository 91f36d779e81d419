/** Why this browser offers no passkeys to this page; null if it does. */
export function findPasskeyProblem(): string | null {
  if (!isSecureContext) return 'browsers offer passkeys only over https';
  const isSupported =
    typeof PublicKeyCredential !== 'undefined' && 'parseCreationOptionsFromJSON' in PublicKeyCredential;
  return isSupported ? null : 'this browser is too old for passkeys';
}

type PasskeyOptions = Readonly<Record<string, unknown>>;

/** Lets the user make a passkey. @throws Error if the user or the authenticator declines */
export async function makePasskey(options: PasskeyOptions): Promise<unknown> {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as never);
  return toJson(await orDeclined(navigator.credentials.create({ publicKey })));
}

/** Lets the user sign with a passkey. @throws Error if the user or the authenticator declines */
export async function provePasskey(options: PasskeyOptions): Promise<unknown> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as never);
  return toJson(await orDeclined(navigator.credentials.get({ publicKey })));
}

const toJson = (credential: Credential | null): unknown => (credential as PublicKeyCredential | null)?.toJSON();

/** Browsers give one reason for all, so that no page learns what a user has. */
async function orDeclined<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const isKnown = error instanceof DOMException && error.name === 'InvalidStateError';
    throw new Error(
      isKnown ? 'This authenticator has a passkey of yours already.' : 'The passkey was not used. Try again.',
    );
  }
}
