import * as z from 'zod';

/** A string of at most `max` characters, counted as the contract counts them: in code points, not UTF-16 units. */
export const text = (max: number) =>
  z
    .string()
    .refine((value) => characterCount(value) <= max, { error: `must be at most ${max} characters` })
    .meta({ maxLength: max });

/** Like {@link text}, for a field that must say something. */
export const requiredText = (max: number) =>
  text(max)
    .refine((value) => value.trim() !== '', { error: 'must not be empty' })
    .meta({ minLength: 1, maxLength: max });

/** An instant as the service writes it: ISO 8601 in UTC. */
export const instant = z.iso.datetime({ offset: true });

const characterCount = (value: string): number => [...value].length;
