import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';
import { closePlane, openPlane } from '../harness.ts';

/** A JSON object of which nothing is known. */
export type Json = { [name: string]: unknown };

/** A schema as OpenAPI 3.1 writes it, as far as our own use it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** The served description, as far as the tests look at it. */
export interface Description extends Json {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { schema: Schema }>> }>>;
}

/** What a control plane serves at /docs/api/openapi.json, and every route that it really has, as `GET /path/{part}`. */
export async function readDescription(): Promise<{ description: Description; routes: readonly string[] }> {
  const routes = new Set<string>();
  // Fastify announces each server before anything is added to it: no route can be missed.
  const listen = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) if (each !== 'HEAD') routes.add(`${each} ${url.replace(/:(\w+)/g, '{$1}')}`);
    });
  };
  subscribe('fastify.initialization', listen);
  const plane = await openPlane();
  try {
    const { body } = await plane.call('GET', '/docs/api/openapi.json');
    return { description: body, routes: [...routes] };
  } finally {
    unsubscribe('fastify.initialization', listen);
    await closePlane(plane);
  }
}
