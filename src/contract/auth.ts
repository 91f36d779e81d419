import * as z from 'zod';
import { email, identifier, instant, tokenShown } from './text.ts';

/** The role of a user. See each operation's `x-roles` in the served description. */
export const Role = z.enum(['owner', 'admin', 'member', 'viewer']).meta({ id: 'Role' });
export type Role = z.infer<typeof Role>;

/** The networks to which a user or a token is limited. */
export const NetworkLimit = z.array(identifier).max(1000).nullable();
export type NetworkLimit = z.infer<typeof NetworkLimit>;

/** The path of a page, which ends in a slash. */
export const CookiePath = z
  .string()
  .max(255, { error: 'must be at most 255 characters' })
  .regex(/^\/(?:[\w.~!$&'()*+=:@%-]+\/)*$/, { error: 'must be a path that begins and ends with "/"' });

export const LoginRequest = z
  .object({
    email,
    password: z.string().min(1).meta({ format: 'password' }),
    device_name: z.string().optional().meta({ description: 'Names the session; its first 255 characters are kept.' }),
    session_cookie: CookiePath.optional().meta({
      description:
        'The path of a page at this origin, such as "/". The session then has two halves: a cookie for that path, which scripts cannot read, ' +
        'and `session_key` of the reply, which the page sends in the header Session-Key of each request.',
    }),
  })
  .meta({ id: 'LoginRequest' });
export type LoginRequest = z.infer<typeof LoginRequest>;

/** A session token, returned only once. */
export const Session = z
  .object({ access_token: tokenShown, token_type: z.literal('Bearer'), expires_at: instant })
  .meta({ id: 'Session' });
export type Session = z.infer<typeof Session>;

/** A session whose secret has two halves: one in a cookie, one in a page. */
export const CookieSession = z.object({ session_key: tokenShown, expires_at: instant }).meta({ id: 'CookieSession' });
export type CookieSession = z.infer<typeof CookieSession>;

export const LogoutRequest = z
  .object({
    session_cookie: CookiePath.optional().meta({ description: 'The path of the page whose cookie is to be removed.' }),
  })
  .meta({ id: 'LogoutRequest' });

/** A session of the caller in a list, without its token. */
export const OpenSession = z
  .object({
    id: identifier,
    device_name: z.string().meta({ maxLength: 255, description: 'Empty where the login named none.' }),
    created_at: instant,
    expires_at: instant,
    last_used_at: instant,
    address: z.string().meta({ maxLength: 64 }).nullable().meta({ description: 'Where the login came from.' }),
    is_current: z.boolean().meta({ description: 'True for the session that makes the call.' }),
  })
  .meta({ id: 'OpenSession' });
export type OpenSession = z.infer<typeof OpenSession>;

export const Profile = z
  .object({
    id: identifier,
    email,
    role: Role,
    networks: NetworkLimit.optional().meta({
      description: 'The ids of the networks to which the user, or the token of the request, is limited; null for all.',
    }),
    organization: z.object({ id: identifier, name: z.string().meta({ maxLength: 1000 }) }),
  })
  .meta({ id: 'Profile' });
export type Profile = z.infer<typeof Profile>;
