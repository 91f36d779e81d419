import * as z from 'zod';
import { NetworkLimit } from './auth.ts';
import { identifier, instant, nameShown, requiredText, tokenShown } from './text.ts';

/** Without `expires_in_days`, the token is valid until it is revoked. */
export const CreatePersonalToken = z
  .object({
    name: requiredText(120),
    expires_in_days: z.int().min(1).max(365).optional(),
    networks: NetworkLimit.optional().meta({
      description: 'The ids of the networks to which the token is limited. Null or absent: all those of its user.',
    }),
    password: z.string().min(1).optional().meta({
      format: 'password',
      description: 'The password of the caller. Required where the login of the session is more than 5 minutes ago.',
    }),
  })
  .meta({ id: 'CreatePersonalToken' });
export type CreatePersonalToken = z.infer<typeof CreatePersonalToken>;

/** A personal token in a list, without its value. */
export const PersonalToken = z
  .object({
    id: identifier,
    name: nameShown,
    created_at: instant,
    expires_at: instant.nullable(),
    last_used_at: instant.nullable().meta({ description: 'To the hour; null before the first use.' }),
    networks: NetworkLimit.optional().meta({
      description: 'The ids of the networks to which the token is limited; null for all those of its user.',
    }),
  })
  .meta({ id: 'PersonalToken' });
export type PersonalToken = z.infer<typeof PersonalToken>;

/** A created personal token. Its value is returned only here. */
export const NewPersonalToken = PersonalToken.extend({ access_token: tokenShown }).meta({
  id: 'NewPersonalToken',
});
export type NewPersonalToken = z.infer<typeof NewPersonalToken>;
