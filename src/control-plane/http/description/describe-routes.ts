import { createHash } from 'node:crypto';
import swagger from '@fastify/swagger';
import type { FastifySchema, RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { Refusal } from '../../../contract/reply.ts';
import type { App } from '../app.ts';
import { matches } from '../conditional-requests.ts';
import { type Description, descriptionPagePolicy, renderDescription } from './description-page.ts';
import { cleanUpDescription } from './openapi-cleanup.ts';

export interface Served {
  readonly document: Record<string, unknown>;
  readonly page: string;
  /** The ETag of both forms. */
  readonly etag: string;
}

/** Returns a function that creates the description at its first call, once all routes are added. */
export function prepareDescription(app: App): () => Served {
  let served: Served | undefined;
  return () => {
    served ??= toServed({ ...cleanUpDescription(app.swagger() as unknown as Record<string, unknown>), servers });
    return served;
  };
}

/** Serves the HTML description at `/docs`. Not part of the API: add it before the API's hooks. */
export function serveDescriptionPage(app: App, describe: () => Served): void {
  app.get('/docs', async ({ headers }, reply) => {
    const { page, etag } = describe();
    reply.headers({ ...pageHeaders, etag });
    if (matches(headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type('text/html; charset=utf-8').send(page);
  });
}

/** Serves the OpenAPI 3.1 description of all routes that are added after this. */
export async function describeRoutes(app: App, describe: () => Served): Promise<void> {
  app.addHook('onRoute', completeSchema);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'cpn control plane', version: '1.0.0', description },
      components: { securitySchemes },
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  app.route({
    method: 'GET',
    url: '/docs/api/openapi.json',
    config: { access: 'anyone' },
    schema: {
      operationId: 'readDescription',
      summary: 'This description',
      headers: z.looseObject({
        'if-none-match': z
          .string()
          .optional()
          .meta({ description: 'The ETag of the description that the caller has.' }),
      }),
      response: {
        200: z.record(z.string(), z.unknown()),
        304: z.undefined().meta({ description: 'The description is unchanged.' }),
      },
    },
    handler: async (request, response) => {
      const { document, etag } = describe();
      response.header('etag', etag);
      // Hosts request it every hour, but it changes only with the version of the program.
      if (matches(request.headers['if-none-match'], etag)) return response.code(304).send();
      return document;
    },
  });
}

/** Relative, to be right behind a proxy's path too. @fastify/swagger accepts no relative URL. */
const servers = [{ url: '../..' }];

function toServed(document: Record<string, unknown>): Served {
  const digest = createHash('sha256').update(JSON.stringify(document)).digest('base64url');
  const page = renderDescription(document as unknown as Description);
  return { document, page, etag: `"${digest.slice(0, 22)}"` };
}

const pageHeaders = { 'content-security-policy': descriptionPagePolicy, 'cache-control': 'no-cache' };

const description = [
  'The private-network part of the customer API, for hosts of one organization and the people who run them.',
  'Extensions that a client may rely on because they are described here: Idempotency-Key and access_token at',
  'POST /api/networks/enroll; If-None-Match, Prefer: wait=N and A-IM: cpn-delta at GET /api/networks/{network}, and Network-Deletion there; the operations that change and remove',
  'networks, peers and enrolment keys; users, personal tokens and the audit; withdrawn at PATCH /api/networks/{network}/peers/{peer}, by which a connector takes itself out',
  'of service; the roles of users, networks to which users and tokens are limited, sessions, and the change of a password; peer_types and routes of enrolment keys; serving_since and priority of connectors, which rank them; unique names of peers;',
  'page, per_page and links.next of lists; add_routes, remove_routes and expected_routes of a network, and expected_routes of a peer;',
  'GET /api/networks/{network}/events;',
  'suspended and expires_at of a peer, and peer_expires_in_hours of an enrolment key; the health of a network, and the reports of its hosts.',
  'self_enroll of a network, the own devices of users, and reauth_hours of a peer;',
  'null in a field of a request that may be left out counts as left out, unless the field says that it may be null.',
].join('\n');

const securitySchemes = {
  session: { type: 'http', scheme: 'bearer', description: 'The token of a session.' },
  personal: { type: 'http', scheme: 'bearer', description: 'A personal token, with the role of its user.' },
  peer: { type: 'http', scheme: 'bearer', description: 'The access_token of an enrolment, for this peer alone.' },
} as const;

/** The statuses that every operation may return. */
const always = [429, 500, 503];

/** Completes a schema from access and input. @throws Error without id, summary or response */
function completeSchema(route: RouteOptions): void {
  const access = route.config?.access;
  if (access === undefined) return;
  const schema: FastifySchema & DescribedRoute = route.schema ?? {};
  if (!schema.operationId || !schema.summary || !schema.response || schema.hide)
    throw new Error(`${route.method} ${route.url} has no operationId, summary or response`);
  const changes = route.method !== 'GET' && route.method !== 'HEAD';
  const refusals = [
    ...always,
    ...(changes ? [504] : []),
    ...(schema.body || access !== 'anyone' ? [401, 403, 422] : []),
    ...(schema.body ? [413, 415] : []),
  ];
  route.schema = {
    ...schema,
    ...{ 'x-roles': access === 'anyone' ? [] : access.roles },
    security:
      access === 'anyone'
        ? []
        : [
            ...(access.roles.length > 0 ? [{ session: [] }, ...(access.sessionOnly ? [] : [{ personal: [] }])] : []),
            ...(access.peer ? [{ peer: [] }] : []),
          ],
    response: {
      ...Object.fromEntries(refusals.map((status) => [status, Refusal])),
      ...(schema.response as Record<string, unknown>),
    },
  };
}

/** The fields of a schema that @fastify/swagger reads. */
interface DescribedRoute {
  readonly operationId?: string;
  readonly summary?: string;
  readonly hide?: boolean;
}
