import * as z from 'zod';
import { identifier, instant, nameShown, requiredText } from './text.ts';

export const CreateOwnDevice = z
  .object({
    password: z.string().min(1).optional().meta({
      format: 'password',
      description: 'The password of the caller. Required where the login of the session is more than 5 minutes ago.',
    }),
  })
  .meta({ id: 'CreateOwnDevice' });
export type CreateOwnDevice = z.infer<typeof CreateOwnDevice>;

/** A key with which the caller enrols one own device. The token is returned only here. */
export const OwnDeviceKey = z
  .object({
    id: identifier,
    enrollment_token: z.string().meta({ minLength: 5, maxLength: 128, pattern: '^cpn_[!-~]+$' }),
    expires_at: instant,
    network: z.object({ id: identifier, name: nameShown }),
  })
  .meta({ id: 'OwnDeviceKey' });
export type OwnDeviceKey = z.infer<typeof OwnDeviceKey>;

/** An own device of the caller, which is a peer of a network. */
export const OwnDevice = z
  .object({
    id: identifier,
    name: nameShown,
    network: z.object({ id: identifier, name: nameShown }),
    address: z.ipv4(),
    created_at: instant,
    state: z.enum(['active', 'waiting', 'suspended', 'expired']).meta({
      description:
        'An admin approves a waiting device, and resumes a suspended one. The next login brings back an expired one that has reauth_hours.',
    }),
    expires_at: instant.nullable(),
    reauth_hours: z.int().min(1).nullable().meta({
      description: 'Each login moves expires_at to so many hours later; null if logins do not move it.',
    }),
  })
  .meta({ id: 'OwnDevice' });
export type OwnDevice = z.infer<typeof OwnDevice>;

export const ChangeOwnDevice = z.object({ name: requiredText(120).optional() }).meta({ id: 'ChangeOwnDevice' });
export type ChangeOwnDevice = z.infer<typeof ChangeOwnDevice>;
