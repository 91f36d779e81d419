import { Secret } from '../core/secret.ts';
import type { App } from './app.ts';
import { type Access, type Caller, checkAccess } from './caller.ts';
import { Unauthenticated } from './errors.ts';
import { KnownPeers } from './known-peers.ts';
import type { Context } from './service/context.ts';
import { identify } from './service/sessions.ts';
import { hashToken } from './tokens.ts';

/** Finds out who calls, and refuses whom the route is not for, before the body of the request is read. */
export function authenticate(app: App, context: Context): void {
  app.decorateRequest('caller', null);
  app.addHook('onRoute', (route) => {
    if (!route.config?.access) throw new Error(`${route.method} ${route.url} does not say who may call it`);
  });
  const known = new KnownPeers();
  app.addHook('onRequest', async (request) => {
    const { access, looksUpPeers } = request.routeOptions.config;
    // Without a route there is nothing to protect: the reply is a 404.
    if (access === undefined || access === 'anyone') return;
    request.caller = (looksUpPeers && recall(known, request)) || (await recognize(context, request));
    if (looksUpPeers && request.caller.kind === 'peer') known.keep(hashOf(request), request.caller);
  });
}

/** The peer that made a request before with the token of this one; it may be no more. */
function recall(known: KnownPeers, request: RequestFacts): Caller | undefined {
  const peer = known.get(hashOf(request));
  return peer && { ...peer, address: request.ip };
}

function hashOf({ headers }: RequestFacts): string {
  return hashToken(bearerOf(headers.authorization));
}

/** Who makes this request, as of now; refuses whom its route is not for, and whose token is void. */
export async function recognize(context: Context, request: RequestFacts): Promise<Caller> {
  const { access } = request.routeOptions.config;
  if (access === undefined || access === 'anyone') throw new Error('a route for anyone asked who calls');
  const caller = await identify(context, bearerOf(request.headers.authorization), request.ip);
  checkAccess(caller, access);
  return caller;
}

interface RequestFacts {
  readonly ip: string;
  readonly headers: { readonly authorization?: string | undefined };
  readonly routeOptions: { readonly config: { readonly access?: Access } };
}

function bearerOf(header: string | undefined): Secret {
  const [, token] = /^Bearer +([\x21-\x7e]{1,256})$/i.exec(header ?? '') ?? [];
  if (token === undefined) throw new Unauthenticated('this needs a bearer token in the Authorization header');
  return new Secret(token);
}
