import swagger from '@fastify/swagger';
import type { FastifySchema, RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { Refusal } from '../contract/reply.ts';
import type { App } from './app.ts';
import { tidyDescription } from './tidy-description.ts';

/** Serves the OpenAPI 3.1 description of all routes that are added after this. */
export async function describeRoutes(app: App): Promise<void> {
  app.addHook('onRoute', completeSchema);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'cpn control plane', version: '1.0.0', description },
      servers: [{ url: '/' }],
      components: { securitySchemes },
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  let document: Record<string, unknown> | undefined;
  app.route({
    method: 'GET',
    url: '/docs/api/openapi.json',
    config: { access: 'anyone' },
    schema: {
      operationId: 'readDescription',
      summary: 'This description',
      response: { 200: z.record(z.string(), z.unknown()) },
    },
    handler: async () => {
      document ??= tidyDescription(app.swagger() as unknown as Record<string, unknown>);
      return document;
    },
  });
}

const description = [
  'The private-network part of the customer API, for hosts of one organization and the people who run them.',
  'Extensions that a client may rely on because they are described here: Idempotency-Key and access_token at',
  'POST /api/networks/enroll; If-None-Match and Prefer: wait=N at GET /api/networks/{network}; the operations that change and remove',
  'networks, peers and enrolment keys.',
].join('\n');

const securitySchemes = {
  session: { type: 'http', scheme: 'bearer', description: 'The token of a session.' },
  peer: { type: 'http', scheme: 'bearer', description: 'The access_token of an enrolment, for this peer alone.' },
} as const;

/** Adds to a route's schema what follows from who may call it and from what it reads. */
function completeSchema(route: RouteOptions): void {
  const access = route.config?.access;
  if (access === undefined) return;
  const schema: FastifySchema = route.schema ?? {};
  const refusals = [429, ...(schema.body || access !== 'anyone' ? [401, 403, 422] : []), ...(schema.body ? [413] : [])];
  route.schema = {
    ...schema,
    ...{ 'x-roles': access === 'anyone' ? [] : access.roles },
    security: access === 'anyone' ? [] : [{ session: [] }, ...(access.peer ? [{ peer: [] }] : [])],
    response: {
      ...Object.fromEntries(refusals.map((status) => [status, Refusal])),
      ...(schema.response as Record<string, unknown>),
    },
  };
}
