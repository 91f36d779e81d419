import * as z from 'zod';
import { CookiePath } from './auth.ts';

/** How users log in here, for a page before the login. */
export const LoginMethods = z
  .object({
    password: z
      .boolean()
      .meta({ description: 'False if only a reset owner logs in with a password, on the host itself.' }),
    single_sign_on: z
      .object({ issuer: z.string().meta({ maxLength: 2048 }) })
      .nullable()
      .meta({ description: 'The issuer of OpenID Connect; null without one.' }),
  })
  .meta({ id: 'LoginMethods' });
export type LoginMethods = z.infer<typeof LoginMethods>;

export const BeginSingleSignOn = z
  .object({ session_cookie: CookiePath.meta({ description: 'The path of the page that begins the login.' }) })
  .meta({ id: 'BeginSingleSignOn' });

/** Where the browser goes next. A cookie of the reply identifies this browser. */
export const SingleSignOn = z
  .object({ authorization_url: z.string().meta({ format: 'uri', maxLength: 8192 }) })
  .meta({ id: 'SingleSignOn' });
export type SingleSignOn = z.infer<typeof SingleSignOn>;

export const EndSingleSignOn = z
  .object({
    session_cookie: CookiePath.meta({ description: 'As at the begin. The session has a cookie for this path.' }),
    device_name: z.string().optional(),
  })
  .meta({ id: 'EndSingleSignOn' });

/** Names a user of the issuer by its subject, which stays if its e-mail address changes. */
export const LinkUser = z
  .object({
    subject: z.string().min(1).max(255),
    current_password: z.string().min(1).optional().meta({
      format: 'password',
      description: 'The password of the caller. Required where the login of the session is more than 5 minutes ago.',
    }),
  })
  .meta({ id: 'LinkUser' });
export type LinkUser = z.infer<typeof LinkUser>;

/** The form in which an issuer sends a logout (OpenID Connect Back-Channel Logout 1.0, 2.5). */
export const LogoutToken = z.object({ logout_token: z.string().min(1).max(16_384) }).meta({ id: 'LogoutToken' });
