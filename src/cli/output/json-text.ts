/**
 * What a terminal would obey or show in another order, in JSON: DEL and the C1 controls, characters without a shape such as the
 * bidirectional ones, and line separators. JSON.stringify escapes only the C0 controls.
 */
const unshapely = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** JSON that means the same, with such characters as escapes. */
export function escapeUnshapely(json: string): string {
  return json.replace(unshapely, (character) =>
    [...Array(character.length).keys()].map((unit) => escapeUnit(character.charCodeAt(unit))).join(''),
  );
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
