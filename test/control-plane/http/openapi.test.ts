import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { fastify } from 'fastify';
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { describeRoutes, prepareDescription } from '../../../src/control-plane/http/description/describe-routes.ts';
import { features, findFeatures } from '../../../src/core/map/features.ts';
import { type Description, readDescription } from './served-description.ts';

let description: Description;
let routes: readonly string[];
beforeAll(async () => {
  ({ description, routes } = await readDescription());
});

describe('the linter of Redocly', () => {
  test('finds nothing in the served description', async () => {
    expect(await lint(description)).toEqual([]);
  });

  test('finds nothing in the description that the plain service is made from', async () => {
    expect(await lintFile(join(import.meta.dirname, '../../plain/contract.openapi.yaml'))).toEqual([]);
  });

  test.each<[string, (operation: Record<string, unknown>) => void]>([
    ['operation-operationId', (operation) => delete operation.operationId],
    ['operation-summary', (operation) => delete operation.summary],
    ['security-defined', (operation) => delete operation.security],
    ['operation-4xx-response', (operation) => (operation.responses = { 200: { description: 'Done.' } })],
    ['no-unresolved-refs', (operation) => (operation.requestBody = { $ref: '#/components/schemas/Unknown' })],
  ])('would find %s', async (rule, spoil) => {
    const spoiled = structuredClone(description);
    spoil(Object.values(Object.values(spoiled.paths)[0] ?? {})[0] as unknown as Record<string, unknown>);
    expect(await lint(spoiled)).toContain(rule);
  });
});

describe('the served description', () => {
  test('names every extension that the connector uses', () => {
    expect(findFeatures(description, '')).toEqual(features);
  });

  test('has each route of the server, and nothing else', () => {
    const described = Object.entries(description.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.length).toBeGreaterThan(10);
    // Pages for people are no operations.
    const pages = ['GET /', 'GET /docs', 'GET /api/auth/single-sign-on/callback'];
    expect(described.sort()).toEqual(routes.filter((route) => !pages.includes(route)).sort());
  });

  test.each([
    ['without a word', undefined],
    ['without a summary', { operationId: 'x', response: { 200: z.null() } }],
    ['without an id', { summary: 'x', response: { 200: z.null() } }],
    ['without a reply', { operationId: 'x', summary: 'x' }],
    ['that hides', { operationId: 'x', summary: 'x', response: { 200: z.null() }, hide: true }],
  ])('a route %s is an error at start', async (_, schema) => {
    const app = fastify()
      .setValidatorCompiler(validatorCompiler)
      .setSerializerCompiler(serializerCompiler)
      .withTypeProvider<ZodTypeProvider>();
    await describeRoutes(app, prepareDescription(app));
    const route = { method: 'GET', url: '/secret', config: { access: 'anyone' }, handler: async () => null } as const;
    expect(() => app.route({ ...route, ...(schema && { schema }) })).toThrow(
      'GET /secret has no operationId, summary or response',
    );
  });
});

/** The rules that a document breaks. */
async function lint(document: object): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'cpn-lint-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'openapi.json');
  await writeFile(file, JSON.stringify(document));
  return lintFile(file);
}

/** The linter neither reports usage nor checks for updates: it needs no network. */
async function lintFile(file: string): Promise<string[]> {
  const config = join(import.meta.dirname, 'redocly.yaml');
  const { stdout } = await execa(
    'redocly',
    ['lint', file, '--config', config, '--format=json', '--max-problems=1000'],
    {
      preferLocal: true,
      reject: false,
      env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  );
  const { problems } = z.object({ problems: z.array(z.object({ ruleId: z.string() })) }).parse(JSON.parse(stdout));
  return problems.map(({ ruleId }) => ruleId);
}
