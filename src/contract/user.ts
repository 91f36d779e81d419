import * as z from 'zod';
import { Role } from './auth.ts';
import { identifier, instant } from './text.ts';

/** The password that a user is made with. It is long rather than of many kinds of characters (NIST SP 800-63B, 3.1.1). */
export const NewPassword = z
  .string()
  .refine((value) => [...value].length >= 12, { error: 'must be at least 12 characters' })
  .refine((value) => new TextEncoder().encode(value).length <= 1024, { error: 'must be at most 1024 bytes' })
  .meta({ format: 'password', minLength: 12, maxLength: 1024 });

export const CreateUser = z
  .object({ email: z.email().max(254), password: NewPassword, role: Role })
  .meta({ id: 'CreateUser' });
export type CreateUser = z.infer<typeof CreateUser>;

export const User = z
  .object({
    id: identifier,
    email: z.string().meta({ format: 'email', maxLength: 254 }),
    role: Role,
    created_at: instant,
  })
  .meta({ id: 'User' });
export type User = z.infer<typeof User>;
