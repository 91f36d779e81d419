import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { NotFound } from '../errors.ts';
import type { App } from './app.ts';
import { accepts, matches } from './conditional-requests.ts';
import { requirePublicHost } from './session-cookie.ts';

/** The folder of the built console; null if it was not built. */
export function findConsole(): string | null {
  // The built program is in dist/parts, this source file three folders below the project.
  const folders = ['../console', '../../../dist/console'].map((path) => join(import.meta.dirname, path));
  return folders.find((folder) => existsSync(join(folder, 'index.html'))) ?? null;
}

interface ServedFile {
  readonly type: string;
  readonly etag: string;
  readonly plain: Buffer;
  readonly gzip: Buffer;
}

/** Not part of the API: add these routes before the hooks that check and describe operations. */
export function serveConsole(app: App, folder: string, publicUrls: readonly URL[]): void {
  const page = readServed(join(folder, 'index.html'));
  const assets = new Map(
    readdirSync(join(folder, 'assets'))
      .filter((name) => !name.endsWith('.gz'))
      .map((name) => [name, readServed(join(folder, 'assets', name))]),
  );
  app.get('/', async (request, reply) => {
    if (!accepts(request.headers.accept, 'text/html')) return greeting;
    requirePublicHost(request, publicUrls);
    return send(request, reply.headers(pageHeaders), page);
  });
  app.get<{ Params: { '*': string } }>('/assets/*', async (request, reply) => {
    const asset = assets.get(request.params['*']);
    if (asset === undefined) throw new NotFound('path');
    requirePublicHost(request, publicUrls);
    // The name contains a hash of the content.
    return send(request, reply.header('cache-control', 'public, max-age=31536000, immutable'), asset);
  });
}

/** Serves `/` if there is no console. */
export function serveGreeting(app: App): void {
  app.get('/', async () => greeting);
}

/** For curl, and for monitors that request `/`. */
const greeting = { data: { name: 'cpn control plane', description: 'docs/api/openapi.json' } };

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const pageHeaders = {
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-cache',
};

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

function readServed(path: string): ServedFile {
  const plain = readFileSync(path);
  const type = types[extname(path)];
  if (type === undefined) throw new Error(`the console has a file of no known type: ${path}`);
  const digest = createHash('sha256').update(plain).digest('base64url');
  return { type, plain, gzip: readFileSync(`${path}.gz`), etag: `"${digest.slice(0, 22)}"` };
}

function send(request: FastifyRequest, reply: FastifyReply, { type, etag, plain, gzip }: ServedFile): FastifyReply {
  // Weak, because the plain and compressed content have the same ETag.
  reply.headers({ etag: `W/${etag}`, vary: 'accept, accept-encoding' });
  if (matches(request.headers['if-none-match'], etag)) return reply.code(304).send();
  if (!accepts(request.headers['accept-encoding'], 'gzip')) return reply.type(type).send(plain);
  return reply.type(type).header('content-encoding', 'gzip').send(gzip);
}
