import * as z from 'zod';
import { CookiePath, NetworkLimit, Role } from './auth.ts';
import { EnrollmentKeyOfNetwork } from './enrollment-key.ts';
import { PersonalToken } from './personal-token.ts';
import { email, identifier, instant, tokenShown } from './text.ts';

/** A new password: long, without rules for kinds of characters (NIST SP 800-63B, 3.1.1). */
export const NewPassword = z
  .string()
  .refine((value) => [...value].length >= 12, { error: 'must be at least 12 characters' })
  .refine((value) => new TextEncoder().encode(value).length <= 1024, { error: 'must be at most 1024 bytes' })
  .meta({ format: 'password', minLength: 12, maxLength: 1024 });

/** The caller's own password, in a request about another user. */
const OwnPassword = z.string().min(1).optional();

export const CreateUser = z
  .object({
    email: email.max(254),
    password: NewPassword,
    role: Role,
    networks: NetworkLimit.optional().meta({
      description: 'The ids of the networks to which the user is limited. Null or absent: all. Not for owners.',
    }),
    current_password: OwnPassword.meta({
      format: 'password',
      description: 'The password of the caller. Required where the login of the session is more than 5 minutes ago.',
    }),
  })
  .meta({ id: 'CreateUser' });
export type CreateUser = z.infer<typeof CreateUser>;

/** Absent fields stay unchanged. */
export const ChangeUser = z
  .object({
    role: Role.optional(),
    networks: NetworkLimit.optional().meta({
      description: 'The ids of the networks to which the user is limited; null lifts the limit. Not for owners.',
    }),
    current_password: OwnPassword.meta({
      format: 'password',
      description:
        'The password of the caller. Required to raise a role, or to add networks, where the login of the session is more than 5 minutes ago.',
    }),
    keep_keys: z.boolean().optional().meta({
      description:
        'True keeps the enrolment keys of the user usable, where it becomes a viewer or loses their network.',
    }),
  })
  .meta({ id: 'ChangeUser' });
export type ChangeUser = z.infer<typeof ChangeUser>;

export const ChangePassword = z
  .object({
    current_password: z.string().min(1).meta({ format: 'password' }),
    new_password: NewPassword,
    keep_tokens: z.boolean().optional().meta({ description: 'True keeps the personal tokens of the caller valid.' }),
    session_cookie: CookiePath.optional().meta({
      description: 'As at the login, for a page with a session cookie. Without it, the page must log in again.',
    }),
  })
  .meta({ id: 'ChangePassword' });
export type ChangePassword = z.infer<typeof ChangePassword>;

export const User = z
  .object({
    id: identifier,
    email: z.string().meta({ format: 'email', maxLength: 254 }),
    role: Role,
    created_at: instant,
    subject: z.string().meta({ maxLength: 255 }).nullable().optional().meta({
      description:
        'In a list: who the user is at the issuer of single sign-on; null for a user that has only a password.',
    }),
    has_second_factor: z.boolean().optional().meta({ description: 'Absent from services without second factors.' }),
    networks: NetworkLimit.optional().meta({
      description: 'The ids of the networks to which the user is limited; null for all.',
    }),
  })
  .meta({ id: 'User' });
export type User = z.infer<typeof User>;

const keysRevoked = z
  .array(EnrollmentKeyOfNetwork)
  .meta({ description: 'Enrolment keys that the user made and that hosts could use, newest first; 1,000 at most.' });

export const ChangedUser = User.extend({ keys_revoked: keysRevoked.optional() }).meta({ id: 'ChangedUser' });
export type ChangedUser = z.infer<typeof ChangedUser>;

/** The sessions of a user that an administrator ended. */
export const SessionsEnded = z.object({ sessions_ended: z.int().nonnegative() }).meta({ id: 'SessionsEnded' });
export type SessionsEnded = z.infer<typeof SessionsEnded>;

/** The keys that were revoked with a user. */
export const UserRemoval = z.object({ keys_revoked: keysRevoked }).meta({ id: 'UserRemoval' });
export type UserRemoval = z.infer<typeof UserRemoval>;

/**
 * The credentials that a change of a password invalidated, and the users and keys that the caller
 * made. A holder of the former password may have made them.
 */
export const PasswordChange = z
  .object({
    sessions_ended: z.int().nonnegative().meta({ description: 'Other sessions than that of the call.' }),
    access_token: tokenShown.optional().meta({
      description: 'A session in place of that of the call, which ended. Absent where the call came with a cookie.',
    }),
    session_key: tokenShown
      .optional()
      .meta({ description: 'The same for a page that named `session_cookie`: the half that it keeps.' }),
    expires_at: instant.optional().meta({ description: 'When the new session ends.' }),
    tokens_revoked: z.array(PersonalToken),
    users_made: z.array(User).meta({
      description: 'Users that the caller made or whose role it changed, newest first; 1,000 of them at most.',
    }),
    keys_made: z.array(EnrollmentKeyOfNetwork).meta({
      description: 'Enrolment keys that the caller made and that hosts can use, newest first; 1,000 at most.',
    }),
  })
  .meta({ id: 'PasswordChange' });
export type PasswordChange = z.infer<typeof PasswordChange>;
