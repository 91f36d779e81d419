import fc from 'fast-check';
import { hostile } from './hostile-texts.ts';

/** Values that are seldom where they are expected. */
const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: hostile },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<unknown>(null, true, -1, 0, 1.5, 1e308, 2 ** 53, {}, [], [[]], [null], { data: {} }, ''),
  },
);

/** One change of a value: `at` is a part of all that it holds. */
interface Edit {
  readonly kind: 'replace' | 'delete' | 'double' | 'add';
  readonly at: number;
  readonly name: string;
  readonly value: unknown;
}

/** A value of JSON, changed in a few places or none: other values, properties and items more or less. */
export function mutatedJson(
  values: fc.Arbitrary<unknown>,
  names: readonly string[] = [],
  mostEdits = 4,
): fc.Arbitrary<unknown> {
  const edit: fc.Arbitrary<Edit> = fc.record({
    kind: fc.constantFrom('replace', 'replace', 'delete', 'double', 'add'),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    name: fc.oneof(fc.constantFrom(...names, '__proto__', 'data', 'id', ''), hostile),
    value: hostileValue,
  });
  return fc
    .tuple(values, fc.array(edit, { maxLength: mostEdits }))
    .map(([value, edits]) => edits.reduce(change, value));
}

type Container = Record<string, unknown> | unknown[];

function change(whole: unknown, { kind, at, name, value }: Edit): unknown {
  const copy: unknown = structuredClone(whole);
  const places = placesIn(copy);
  const place = places[Math.min(places.length - 1, Math.floor(at * places.length))];
  if (place === undefined) return value;
  const [container, key] = place;
  if (Array.isArray(container)) {
    const index = Number(key);
    const items = {
      replace: [value],
      delete: [],
      double: [container[index], container[index]],
      add: [container[index], value],
    };
    container.splice(index, 1, ...items[kind]);
  } else if (kind === 'delete') delete container[key];
  else set(container, kind === 'replace' ? key : name, kind === 'double' ? container[key] : value);
  return copy;
}

/** Also under the name `__proto__`, as JSON.parse would. */
function set(container: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Every property and item, whatever it is below. */
function placesIn(value: unknown): (readonly [Container, string])[] {
  if (typeof value !== 'object' || value === null) return [];
  const container = value as Container;
  return Object.entries(container).flatMap(([key, each]) => [[container, key] as const, ...placesIn(each)]);
}
