import fc from 'fast-check';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import type { Description, Schema } from '../../control-plane/http/served-description.ts';
import { keyPair, prefixes } from '../../core/samples.ts';

type Components = Description['components']['schemas'];

/** What a format stands for, where a pattern or a length says too little. */
const formats: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  ipv4: fc.ipV4(),
  cidrv4: prefixes,
  email: fc.emailAddress().filter((email) => /^[\w.+-]+@[a-z0-9.-]+\.[a-z]{2,}$/i.test(email)),
  'date-time': fc.date({ min: new Date(0), noInvalidDate: true }).map((date) => date.toISOString()),
  'wireguard-key': fc.integer({ min: 0, max: 0xffff }).map((number) => keyPair(number).publicKey),
  'ed25519-key': fc.uint8Array({ minLength: 32, maxLength: 32 }).map((seed) => makeIdentity(seed).key),
  endpoint: fc
    .tuple(fc.oneof(fc.ipV4(), fc.domain(), fc.constant('[2001:db8::1]')), fc.integer({ min: 1, max: 65535 }))
    .map(([host, port]) => `${host}:${port}`),
};

/** Any value that a schema of the description allows, with unknown properties. */
export function valuesOf(schema: Schema, components: Components): fc.Arbitrary<unknown> {
  const { $ref, anyOf, allOf, type } = schema;
  if ($ref !== undefined) return valuesOf(resolve($ref, components), components);
  if (anyOf) return fc.oneof(...anyOf.map((each) => valuesOf(each, components)));
  if (allOf) return valuesOf(Object.assign({}, ...allOf), components);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (Array.isArray(type)) return fc.oneof(...type.map((each) => valuesOf({ ...schema, type: each }, components)));
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({
        min: Math.max(schema.minimum ?? 0, -(2 ** 31)),
        max: Math.min(schema.maximum ?? 9, 2 ** 31 - 1),
      });
    case 'number':
      return fc.double({ min: schema.minimum ?? 0, max: schema.maximum ?? 9, noNaN: true });
    case 'string':
      return strings(schema);
    case 'array':
      return fc.array(valuesOf(schema.items ?? {}, components), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case 'object':
      return objects(schema, components);
    case undefined:
      return fc.jsonValue();
    default:
      throw new Error(`this test has no values for the type ${type}`);
  }
}

/** The schema that a reference leads to. */
export function resolve(reference: string, components: Components): Schema {
  const name = reference.replace('#/components/schemas/', '');
  const found = components[name];
  if (found === undefined) throw new Error(`there is no component ${name}`);
  return found;
}

function strings({ format, pattern, minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<unknown> {
  const formatted = format === undefined ? undefined : formats[format];
  if (formatted) return formatted;
  const fits = (text: string) => [...text].length >= minLength && [...text].length <= maxLength;
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern)).filter(fits);
  return fc.string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, 200) }).filter(fits);
}

function objects({ properties = {}, required = [], additionalProperties }: Schema, components: Components) {
  const known = Object.entries(properties).map(([name, each]) => [name, valuesOf(each, components)] as const);
  const record = fc.record(Object.fromEntries(known), { requiredKeys: [...required] });
  const rest = typeof additionalProperties === 'object' ? valuesOf(additionalProperties, components) : fc.jsonValue();
  const others = fc.dictionary(fc.stringMatching(/^x_[a-z]{1,8}$/), rest, { maxKeys: 2 });
  return fc.tuple(record, others).map(([known, unknown]) => ({ ...unknown, ...known }));
}

/** A way to a property, through the first item of each list: `['peers', 0, 'address']`. */
export type Way = readonly (string | number)[];

/** The ways to all required properties of what a schema describes. */
export function requiredWays(schema: Schema, components: Components): Way[] {
  const { $ref, items, properties = {}, required = [] } = schema;
  if ($ref !== undefined) return requiredWays(resolve($ref, components), components);
  if (items) return requiredWays(items, components).map((way) => [0, ...way]);
  return required.flatMap((name): Way[] => [
    [name],
    ...requiredWays(properties[name] ?? {}, components).map((way) => [name, ...way]),
  ]);
}

/** A copy of a value in which the property at the end of a way is another, or none where that is undefined. */
export function replaceAt(value: unknown, [first, ...rest]: Way, by: unknown): unknown {
  if (first === undefined) return by;
  const copy: Record<string | number, unknown> | unknown[] = Array.isArray(value)
    ? [...value]
    : { ...(value as object) };
  const record = copy as Record<string | number, unknown>;
  record[first] = replaceAt(record[first], rest, by);
  if (record[first] === undefined) delete record[first];
  return copy;
}

/** What is at the end of a way. */
export function readAt(value: unknown, way: Way): unknown {
  return way.reduce<unknown>((at, step) => (at as Record<string | number, unknown> | null)?.[step], value);
}
