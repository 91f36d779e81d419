import type { FastifyContextConfig } from 'fastify';
import { Secret } from '../../core/crypto/secret.ts';
import { createBoundedCache } from '../bounded-cache.ts';
import { type Caller, checkAccess, type PeerCaller, readers } from '../domain/caller.ts';
import type { Scope } from '../domain/network-limit.ts';
import { hashToken } from '../domain/tokens.ts';
import { Unauthenticated } from '../errors.ts';
import type { LostConnections } from '../health/lost-connections.ts';
import type { Presence } from '../health/presence.ts';
import { identify, logout } from '../service/accounts/sessions.ts';
import type { Context } from '../service/context.ts';
import { type DeletionRequest, refuseDeleted } from '../service/deletions.ts';
import type { App } from './app.ts';
import { readWait } from './conditional-requests.ts';
import { NetworkPath } from './routes/parts.ts';
import {
  type BrowserRequest,
  readBrowserSession,
  readSessionCookies,
  requirePublicHost,
  requireSameOrigin,
  sessionKeyHeader,
} from './session-cookie.ts';

type TokenPeer = Omit<PeerCaller, 'address' | 'access'>;

/** The id of the daemon's start, on requests for the map. */
export const instanceHeader = 'peer-instance';

/** The daemon's behaviour after a deletion of its network, on requests for the map. */
export const deletionHeader = 'network-deletion';

const maxCachedTokens = 100_000;

/** Authenticates requests and checks access before their body is read. Records peers' presence. */
export function authenticate(
  app: App,
  context: Context,
  presence: Pick<Presence, 'touch' | 'clonedSince'>,
  losses: Pick<LostConnections, 'noteRequest'>,
): void {
  app.decorateRequest('caller', null);
  app.addHook('onRoute', (route) => {
    if (!route.config?.access) throw new Error(`${route.method} ${route.url} has no access rule`);
  });
  /** The peers of recent tokens, by token hash. Routes that use it check the peer's membership. */
  const tokenPeers = createBoundedCache<string, TokenPeer>(maxCachedTokens);
  app.addHook('onRequest', async (request) => {
    const { access, looksUpPeers } = request.routeOptions.config;
    // Without a route, the reply is a 404 and there is nothing to protect.
    if (access === undefined || access === 'anyone') return;
    await endUnsplitSession(context, request);
    const found = looksUpPeers ? tokenPeers.get(hashOf(context, request)) : undefined;
    const cached = found && !isExpired(found, context.now()) ? found : null;
    const caller = cached ? { ...cached, address: request.ip, access } : await authenticateRequest(context, request);
    request.caller = caller;
    // A peer that waits for approval is not in the cache, so that the approval has effect at once.
    if (caller.kind !== 'peer' || caller.awaitsApproval) return;
    if (looksUpPeers && !cached) tokenPeers.set(hashOf(context, request), caller);
    const { 'user-agent': userAgent, [instanceHeader]: instance } = request.headers;
    presence.touch(caller, { userAgent, instance: [instance].flat()[0] });
    losses.noteRequest(caller.peerId);
  });
  // Runs after a wait, and for each status.
  app.addHook('onSend', async ({ caller, routeOptions }, response) => {
    const { looksUpPeers } = routeOptions.config;
    const since = looksUpPeers && caller?.kind === 'peer' ? presence.clonedSince(caller.peerId) : null;
    if (since !== null) {
      response.header('peer-cloned-since', new Date(Math.round(since / 1000) * 1000).toISOString());
    }
  });
  // A removed or suspended peer must leave the cache, so that its later requests are no presence.
  app.addHook('onResponse', async (request, { statusCode }) => {
    const isRefused = [401, 403, 410].includes(statusCode);
    if (isRefused && request.caller?.kind === 'peer') tokenPeers.delete(hashOf(context, request));
  });
}

function isExpired({ expiresAt }: TokenPeer, now: Date): boolean {
  return expiresAt !== null && expiresAt <= now.toISOString();
}

function hashOf(context: Context, request: RequestFacts): string {
  return hashToken(credentialOf(context, request));
}

/** The request's current caller. @throws Unauthenticated if void, Forbidden without access */
export async function authenticateRequest(context: Context, request: RequestFacts): Promise<Caller> {
  const { access } = request.routeOptions.config;
  if (access === undefined || access === 'anyone') throw new Error('a route for anyone asked who calls');
  const token = credentialOf(context, request);
  // A page that is left open waits for changes, and must not keep its session.
  const isUse = readWait([request.headers.prefer].flat().join(', ')) === null;
  const caller = await identify(context, token, { address: request.ip, access, scope: scopeOf(request), isUse }).catch(
    async (error: unknown) => {
      const { statesDeletion } = request.routeOptions.config;
      const network = NetworkPath.safeParse(request.params).data?.network;
      if (statesDeletion && network !== undefined && error instanceof Unauthenticated) {
        await refuseDeleted(context, token, network, readDeletion(request.headers[deletionHeader]));
      }
      throw error;
    },
  );
  checkAccess(caller, access);
  return caller;
}

interface RequestFacts extends BrowserRequest {
  readonly ip: string;
  readonly params: unknown;
  readonly routeOptions: {
    readonly url?: string | undefined;
    readonly config: Pick<FastifyContextConfig, 'access' | 'statesDeletion' | 'appliesLimit'>;
  };
}

/** A route that this does not recognize concerns the organization: limited callers get a 403. */
function scopeOf({ params, routeOptions: { url = '', config } }: RequestFacts): Scope {
  if (config.appliesLimit) return 'filtered';
  // No network has the id 0.
  if (url.split('/').includes(':network')) return NetworkPath.safeParse(params).data?.network ?? 0;
  return url.startsWith('/api/auth/') ? 'account' : 'organization';
}

function readDeletion(header: string | string[] | undefined): DeletionRequest | null {
  return header === 'follow' || header === 'applied' ? header : null;
}

/** Returns the bearer token, or without that header the session of the console. */
function credentialOf({ publicUrls }: Pick<Context, 'publicUrls'>, request: RequestFacts): Secret {
  const { authorization } = request.headers;
  const session = authorization === undefined ? readBrowserSession(request) : null;
  if (session === null) return bearerOf(authorization);
  requirePublicHost(request, publicUrls);
  if (request.method !== 'GET' && request.method !== 'HEAD') requireSameOrigin(request);
  return session;
}

/** Ends sessions of version 0.1: their cookie has a whole token that other ports may have read. */
async function endUnsplitSession(context: Context, { headers, ip }: RequestFacts): Promise<void> {
  if (headers.authorization !== undefined || headers[sessionKeyHeader] !== undefined) return;
  for (const token of readSessionCookies(headers.cookie).slice(0, mostUnsplit)) {
    const caller = await identify(context, token, {
      address: ip,
      access: readers,
      scope: 'filtered',
      isUse: false,
    }).catch((error) => {
      if (error instanceof Unauthenticated) return null;
      throw error;
    });
    if (caller?.kind === 'user') await logout(context, caller);
  }
}

const mostUnsplit = 3;

function bearerOf(header: string | undefined): Secret {
  const [, token] = /^Bearer +([\x21-\x7e]{1,256})$/i.exec(header ?? '') ?? [];
  // The joined halves of a browser session would pass by the checks of its page.
  if (token === undefined || token.includes('.'))
    throw new Unauthenticated('this needs a bearer token in the Authorization header');
  return new Secret(token);
}
