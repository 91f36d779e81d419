import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { type Description, readDescription, type Schema } from './served-description.ts';

/** What the description should say of the contract's schemas that have a name on the wire, from which the connector's types are inferred. */
const contract = new Map<string, string>();
let served: Description['components']['schemas'];

beforeAll(async () => {
  const folder = join(import.meta.dirname, '../../../src/contract');
  for await (const file of glob('*.ts', { cwd: folder })) {
    for (const each of Object.values<unknown>(await import(join(folder, file)))) collect(each);
  }
  served = (await readDescription()).description.components.schemas;
});

/** Some schemas are exported as a field of another one alone. */
function collect(value: unknown): void {
  if (!(value instanceof z.ZodType)) return;
  const id = value.meta()?.id;
  if (id !== undefined) contract.set(id, canonical(describe(id, value)));
  if (value instanceof z.ZodObject) for (const field of Object.values(value.shape)) collect(field);
}

test('each schema of the contract is served as it is, and no other', () => {
  expect(contract.size).toBeGreaterThan(10);
  expect(findDifferences(served)).toEqual([]);
});

test('one property more or less, or another rule, would be noticed', () => {
  for (const [name, schema] of Object.entries(served)) {
    for (const [property, rules] of Object.entries(schema.properties ?? {})) {
      const { [property]: _, ...fewer } = schema.properties ?? {};
      const required = (schema.required ?? []).filter((each) => each !== property);
      const spoiled: Schema[] = [
        { ...schema, properties: fewer },
        { ...schema, properties: { ...schema.properties, [property]: { ...rules, maxLength: 7 } } },
        { ...schema, properties: { ...schema.properties, [`${property}_2`]: rules } },
        ...(schema.required?.includes(property) ? [{ ...schema, required }] : []),
      ];
      for (const each of spoiled) expect(findDifferences({ ...served, [name]: each })).toEqual([name]);
    }
  }
});

test('a schema more or less would be noticed', () => {
  const { Peer: _, ...fewer } = served;
  expect(findDifferences(fewer)).toEqual(['Peer']);
  expect(findDifferences({ ...served, Stranger: { type: 'object' } })).toEqual(['Stranger']);
});

/** The names of the components that are not what the contract says, those included that only one of the two has. */
function findDifferences(components: Readonly<Record<string, Schema>>): string[] {
  const names = new Set([...contract.keys(), ...Object.keys(components)]);
  return [...names].filter((name) => contract.get(name) !== canonical(components[name]));
}

/** What a caller may send, and a reply may bring: fields with a default may be left out, and more may come. */
function describe(name: string, schema: z.ZodType): unknown {
  const described = z.toJSONSchema(schema, { target: 'draft-2020-12', io: 'input' });
  const text = JSON.stringify(described.$defs?.[name]).replaceAll('"#/$defs/', '"#/components/schemas/');
  return JSON.parse(text, (key, value) => (key === 'additionalProperties' && value === false ? undefined : value));
}

/** The text of a JSON value in which the order of properties, and of what is required, makes no difference. */
function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (name, part) => {
    if (name === 'required' && Array.isArray(part)) return part.toSorted();
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}
