import * as z from 'zod';

/**
 * A string of at most `max` characters, counted as the contract counts them: in code points, not UTF-16 units. It has no NUL, which
 * PostgreSQL cannot keep (its manual, 8.3).
 */
export const text = (max: number) =>
  z
    .string()
    .refine((value) => !value.includes('\0'), { error: 'must not hold a NUL character' })
    .refine((value) => characterCount(value) <= max, { error: `must be at most ${max} characters` })
    .meta({ maxLength: max });

/** White space, and characters that leave no mark where they are shown, such as U+200B and U+2800. */
const unseen = /^[\s\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u{2800}]*$/u;

/** Like {@link text}, for a field that must say something. */
export const requiredText = (max: number) =>
  text(max)
    .refine((value) => !unseen.test(value), { error: 'must not be empty' })
    .meta({ minLength: 1, maxLength: max });

/** What HTML's `<input type="email">` accepts (WHATWG HTML, 4.10.5.1.5). */
export const email = z.email({ pattern: z.regexes.html5Email });

/** What the service calls a resource. */
export const identifier = z.int().min(1);

/** A name as the service shows it: what {@link requiredText} let in needs no second look on the way out. */
export const nameShown = z.string().meta({ maxLength: 120 });

/** A credential as the service shows it: what an Authorization header can carry. */
export const tokenShown = z.string().min(1).meta({ pattern: '^[!-~]+$' });

/** An instant as the service writes it: ISO 8601 in UTC. */
export const instant = z.iso.datetime({ offset: true });

const characterCount = (value: string): number => [...value].length;
