import * as z from 'zod';
import { CookiePath } from './auth.ts';
import { identifier, instant, nameShown, requiredText, tokenShown } from './text.ts';

const FactorKind = z.enum(['totp', 'passkey']);
export type FactorKind = z.infer<typeof FactorKind>;

/** A second factor of a user in a list, without its secret. */
export const SecondFactor = z
  .object({
    id: identifier,
    kind: FactorKind.meta({ description: 'An authenticator app (RFC 6238) or a passkey (WebAuthn).' }),
    name: nameShown,
    created_at: instant,
    last_used_at: instant.nullable(),
  })
  .meta({ id: 'SecondFactor' });
export type SecondFactor = z.infer<typeof SecondFactor>;

export const SecondFactors = z
  .object({
    factors: z.array(SecondFactor),
    recovery_codes_left: z.int().nonnegative(),
    passkey_problem: z
      .string()
      .nullable()
      .meta({ description: 'Why a passkey cannot be added at this address of the console; null if it can.' }),
  })
  .meta({ id: 'SecondFactors' });
export type SecondFactors = z.infer<typeof SecondFactors>;

const challenge = z.string().min(1).max(200);

/** Binary data of WebAuthn. */
const base64url = z
  .string()
  .max(16_384, { error: 'must be at most 16384 characters' })
  .regex(/^[\w-]+$/, { error: 'must be base64url' });

/** `PublicKeyCredential.toJSON()` of a new passkey. */
const Attestation = z.object({
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  response: z.object({ clientDataJSON: base64url, attestationObject: base64url }),
});
export type Attestation = z.infer<typeof Attestation>;

/** `PublicKeyCredential.toJSON()` of the use of a passkey. */
const Assertion = z.object({
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  response: z.object({ clientDataJSON: base64url, authenticatorData: base64url, signature: base64url }),
});
export type Assertion = z.infer<typeof Assertion>;

/** The options for `PublicKeyCredential.parse…OptionsFromJSON()` of browsers. */
const PasskeyOptions = z.record(z.string(), z.unknown());

export const BeginFactor = z
  .object({
    kind: FactorKind,
    password: z
      .string()
      .min(1)
      .optional()
      .meta({
        format: 'password',
        description:
          'The password of the caller. Required where the login of the session is more than 5 minutes ago. It does not suffice where the ' +
          'caller has a second factor already.',
      }),
  })
  .meta({ id: 'BeginFactor' });
export type BeginFactor = z.infer<typeof BeginFactor>;

/** A factor that is being added. It takes effect only after a code or a passkey proved it. */
export const FactorChallenge = z
  .object({
    challenge: tokenShown,
    expires_at: instant,
    secret: z.string().meta({ maxLength: 64 }).optional().meta({ description: 'For an authenticator app, in base32.' }),
    uri: z.string().meta({ maxLength: 1000 }).optional().meta({ description: 'The same as an otpauth URI.' }),
    passkey: PasskeyOptions.optional(),
  })
  .meta({ id: 'FactorChallenge' });
export type FactorChallenge = z.infer<typeof FactorChallenge>;

const code = z.string().max(32, { error: 'must be at most 32 characters' });

export const AddFactor = z
  .object({
    challenge,
    name: requiredText(120),
    code: code.optional().meta({ description: 'The present code of the authenticator app.' }),
    passkey: Attestation.optional(),
  })
  .meta({ id: 'AddFactor' });
export type AddFactor = z.infer<typeof AddFactor>;

const recoveryCodes = z
  .array(z.string().meta({ maxLength: 32 }))
  .meta({ description: 'Each replaces a second factor once. Shown only here.' });

export const AddedFactor = z
  .object({
    factor: SecondFactor,
    recovery_codes: recoveryCodes.optional().meta({ description: 'With the first factor.' }),
    sessions_ended: z.int().nonnegative().meta({ description: 'Other sessions, which end with the first factor.' }),
  })
  .meta({ id: 'AddedFactor' });
export type AddedFactor = z.infer<typeof AddedFactor>;

export const RecoveryCodes = z.object({ recovery_codes: recoveryCodes }).meta({ id: 'RecoveryCodes' });
export type RecoveryCodes = z.infer<typeof RecoveryCodes>;

/** The factors that an administrator removed. */
export const FactorsRemoved = z.object({ factors_removed: z.int().nonnegative() }).meta({ id: 'FactorsRemoved' });
export type FactorsRemoved = z.infer<typeof FactorsRemoved>;

/** The reply to the right password of a user with a second factor, to a page. */
export const LoginChallenge = z
  .object({
    second_factor: z.object({
      challenge: tokenShown,
      expires_at: instant,
      kinds: z.array(FactorKind),
      recovery_codes_left: z.int().nonnegative(),
      passkey: PasskeyOptions.nullable().meta({ description: 'Null without a passkey for this address.' }),
      passkey_hosts: z.array(z.string()).meta({ description: 'The DNS names at which the passkeys of the user work.' }),
    }),
  })
  .meta({ id: 'LoginChallenge' });
export type LoginChallenge = z.infer<typeof LoginChallenge>;

/** Exactly one of `code`, `recovery_code` and `passkey`. */
export const SecondFactorLogin = z
  .object({
    challenge,
    session_cookie: CookiePath.meta({ description: 'As at the login.' }),
    code: code.optional(),
    recovery_code: code.optional(),
    passkey: Assertion.optional(),
  })
  .meta({ id: 'SecondFactorLogin' });
export type SecondFactorLogin = z.infer<typeof SecondFactorLogin>;
