import { expect, test } from 'vitest';
import { type Operation, operations } from '../../src/api/operations.ts';
import { readDescription } from '../control-plane/http/served-description.ts';

const withoutNames = (path: string) => path.replace(/\?.*/, '').replace(/\{\w+\}/g, '{}');

test('each operation of an administrator is one that the control plane describes, with its query and its request', async () => {
  const { paths } = (await readDescription()).description;
  const described = new Map(Object.entries(paths).map(([path, item]) => [withoutNames(path), item]));
  for (const [name, { method, path, query = [], body }] of Object.entries<Operation>(operations)) {
    const operation = described.get(withoutNames(path))?.[method.toLowerCase()];
    expect(operation, name).toBeDefined();
    const parameters = (operation?.parameters ?? []).map((parameter) => parameter.name);
    expect(parameters, name).toEqual(expect.arrayContaining([...query]));
    const schema = Object.values(operation?.requestBody?.content ?? {})[0]?.schema;
    if (body) expect(schema?.$ref, name).toBe(`#/components/schemas/${body.meta()?.id}`);
  }
});
