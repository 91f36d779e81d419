import * as z from 'zod';
import { instant, tokenShown } from './text.ts';

/** The letters of a user code: consonants form no words (RFC 8628, 6.1). */
export const userCodeLetters = 'BCDFGHJKLMNPQRSTVWXZ';

const letter = `[${userCodeLetters}${userCodeLetters.toLowerCase()}]`;

/** A user code as a person types it. */
export const UserCode = z.string().regex(new RegExp(`^${letter}{4}-?${letter}{4}$`));

/** With PKCE (RFC 7636), the console returns to a loopback port (RFC 8252, 7.3). */
export const StartDeviceCode = z
  .object({
    device_name: z
      .string()
      .optional()
      .meta({ description: 'Names the session, and is shown before the approval; its first 255 characters are kept.' }),
    code_challenge: z
      .string()
      .regex(/^[\w-]{43}$/, { error: 'must be the SHA-256 of the verifier in base64url' })
      .optional()
      .meta({ description: 'For a browser on the same machine: the S256 challenge of a verifier (RFC 7636).' }),
    redirect_port: z
      .int()
      .min(1)
      .max(65535)
      .optional()
      .meta({ description: 'Goes with code_challenge: the port of 127.0.0.1 to which the console brings the code.' }),
  })
  .meta({ id: 'StartDeviceCode' });

const page = { maxLength: 2000, format: 'uri' } as const;

/** A login that waits for an approval in the console (RFC 8628, 3.2). */
export const DeviceCode = z
  .object({
    device_code: tokenShown,
    user_code: z.string().meta({ maxLength: 9, example: 'BCDF-GHJK' }),
    verification_uri: z
      .string()
      .meta({ ...page, description: 'The page of the console at which a person types the user code.' }),
    verification_uri_complete: z.string().meta({ ...page, description: 'The same page with the user code filled in.' }),
    expires_in: z.int().min(1).meta({ description: 'Seconds.' }),
    interval: z.int().min(1).meta({ description: 'Seconds to wait between two requests for the session.' }),
  })
  .meta({ id: 'DeviceCode' });
export type DeviceCode = z.infer<typeof DeviceCode>;

export const RedeemDeviceCode = z
  .object({
    device_code: z.string().min(1).max(256).meta({ format: 'password' }),
    code: z
      .string()
      .max(256)
      .optional()
      .meta({ format: 'password', description: 'The code that the console brought to redirect_port.' }),
    code_verifier: z
      .string()
      .regex(/^[\w.~-]{43,128}$/, { error: 'must be 43 to 128 letters, digits, "-", ".", "_" or "~"' })
      .optional()
      .meta({ format: 'password', description: 'The verifier of code_challenge. Required with it, like code.' }),
  })
  .meta({ id: 'RedeemDeviceCode' });

/** What a person sees before the approval. */
export const DeviceRequest = z
  .object({
    user_code: z.string().meta({ maxLength: 9 }),
    device_name: z.string().meta({ maxLength: 255, description: 'Stated by the device; empty where it stated none.' }),
    address: z.string().meta({ maxLength: 64, description: 'Where the device asked from.' }),
    same_address: z.boolean().meta({ description: 'True if this request comes from that address too.' }),
    created_at: instant,
    expires_at: instant,
    redirects: z.boolean().meta({ description: 'True if the approval must be brought to a port of the same machine.' }),
  })
  .meta({ id: 'DeviceRequest' });
export type DeviceRequest = z.infer<typeof DeviceRequest>;

export const DecideDeviceCode = z
  .object({
    approve: z.boolean().meta({ description: 'False refuses the login.' }),
    password: z.string().min(1).optional().meta({
      format: 'password',
      description:
        'The password of the caller. Required for an approval where the login of the session is more than 5 minutes ago.',
    }),
  })
  .meta({ id: 'DecideDeviceCode' });
export type DecideDeviceCode = z.infer<typeof DecideDeviceCode>;

/** Where the console goes next; null for a device that polls. */
export const DeviceDecision = z
  .object({
    redirect_port: z.int().min(1).max(65535).nullable(),
    code: tokenShown.nullable().meta({ description: 'For one use with the verifier; null without redirect_port.' }),
  })
  .meta({ id: 'DeviceDecision' });
export type DeviceDecision = z.infer<typeof DeviceDecision>;

/** Why a device code gives no session (RFC 8628, 3.5). */
export const DeviceCodeError = z.enum(['authorization_pending', 'slow_down', 'access_denied', 'expired_token']);
export type DeviceCodeError = z.infer<typeof DeviceCodeError>;
