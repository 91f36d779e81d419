import * as z from 'zod';

/**
 * A string of at most `max` characters. A character is a code point, not a UTF-16 unit. NUL is
 * refused, because PostgreSQL cannot store it (its manual, 8.3).
 */
export const text = (max: number) =>
  z
    .string()
    .refine((value) => !value.includes('\0'), { error: 'must not hold a NUL character' })
    .refine((value) => characterCount(value) <= max, { error: `must be at most ${max} characters` })
    .meta({ maxLength: max });

/** White space and invisible characters, such as U+200B and U+2800. */
const unseen = /^[\s\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u{2800}]*$/u;

/** Like {@link text}, but not empty. */
export const requiredText = (max: number) =>
  text(max)
    .refine((value) => !unseen.test(value), { error: 'must not be empty' })
    .meta({ minLength: 1, maxLength: max });

/** The addresses that HTML's `<input type="email">` accepts (WHATWG HTML, 4.10.5.1.5). */
export const email = z.email({ pattern: z.regexes.html5Email });

export const identifier = z.int().min(1);

/** A name in a reply. {@link requiredText} has checked it in the request. */
export const nameShown = z.string().meta({ maxLength: 120 });

/** A credential in a reply: characters that are valid in an Authorization header. */
export const tokenShown = z.string().min(1).meta({ pattern: '^[!-~]+$' });

/** An instant in a reply: ISO 8601 in UTC. */
export const instant = z.iso.datetime({ offset: true });

const characterCount = (value: string): number => [...value].length;
