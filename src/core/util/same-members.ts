/** True when both hold the same members, whatever their order. */
export function sameMembers(one: readonly string[], other: readonly string[]): boolean {
  if (one.length === other.length && one.every((member, at) => member === other[at])) return true;
  const members = new Set(one);
  return members.size === new Set(other).size && other.every((member) => members.has(member));
}
