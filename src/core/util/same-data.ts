import { Secret } from '../crypto/secret.ts';

/**
 * True for the same plain data: primitives, lists, records and secrets. Ignores the order of
 * fields, and treats undefined fields as absent. Does not descend into shared objects.
 */
export function sameData(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((each, at) => sameData(each, other[at]));
  }
  if (one instanceof Secret) return other instanceof Secret && one.reveal() === other.reveal();
  if (!isRecord(one) || !isRecord(other)) return false;
  for (const name in one) if (!sameData(one[name], other[name])) return false;
  for (const name in other) if (!Object.hasOwn(one, name) && other[name] !== undefined) return false;
  return true;
}

/** Other objects, such as maps and dates, are never equal. */
function isRecord(value: object): value is Record<string, unknown> {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** True if both contain the same members, in any order. */
export function sameMembers(one: readonly string[], other: readonly string[]): boolean {
  if (one.length === other.length && one.every((member, at) => member === other[at])) return true;
  const members = new Set(one);
  return members.size === new Set(other).size && other.every((member) => members.has(member));
}
