import type { Id } from '../../core/map/model.ts';
import type { Field } from './field.ts';

/**
 * A number, or a word of at most 255 characters: whatever it is, it is only ever compared, shown
 * and sent back.
 */
export function decodeId(field: Field): Id {
  const { value } = field;
  // A whole number that is not safe was read as another one.
  const isExact = Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
  if (typeof value === 'number' && isExact) return value;
  // It becomes a segment of a path, where dots would climb.
  if (typeof value === 'string' && /^(?!\.{1,2}$)[\x21-\x7e]{1,255}$/.test(value)) return value;
  throw field.wrong('is neither a number nor a word of at most 255 characters');
}

/** True of one id in either of the forms that a service may write it in. */
export function sameId(one: Id, other: Id | null): boolean {
  return String(one) === String(other);
}
