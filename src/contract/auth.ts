import * as z from 'zod';
import { identifier, instant, text, tokenShown } from './text.ts';

/** What a user may do; see each operation's `x-roles` in the served description. */
export const Role = z.enum(['owner', 'admin', 'member', 'viewer']).meta({ id: 'Role' });
export type Role = z.infer<typeof Role>;

export const LoginRequest = z
  .object({
    email: z.email(),
    password: z.string().min(1).meta({ format: 'password' }),
    device_name: text(255).optional(),
  })
  .meta({ id: 'LoginRequest' });
export type LoginRequest = z.infer<typeof LoginRequest>;

/** A session token, shown once. */
export const Session = z
  .object({ access_token: tokenShown, token_type: z.literal('Bearer'), expires_at: instant })
  .meta({ id: 'Session' });
export type Session = z.infer<typeof Session>;

export const Profile = z
  .object({
    id: identifier,
    email: z.email(),
    role: Role,
    organization: z.object({ id: identifier, name: z.string().meta({ maxLength: 1000 }) }),
  })
  .meta({ id: 'Profile' });
export type Profile = z.infer<typeof Profile>;
