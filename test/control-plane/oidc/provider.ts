import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

export const client = { id: 'cpn', secret: 'secret of the client, long enough' };

/** What the issuer states of a user. */
export interface Account {
  email?: string;
  groups?: readonly string[];
  organization?: string;
}

export interface TestProvider {
  readonly url: string;
  /** The users by their subject. One that is removed is no user any more. */
  readonly accounts: Map<string, Account>;
  /** Who logs in next. */
  subject: string;
  givesRefreshTokens: boolean;
  /** Paths that it answers with a 503. */
  readonly failing: Set<string>;
  /** The requests that it got, as method and path. */
  readonly requests: string[];
  /** Closes its port, and opens it again. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Sends a logout token, as after a logout of the user or of one session. */
  sendLogout(subject: string, session?: string): Promise<void>;
}

/** An issuer by `oidc-provider`, whose users log in without a page. The caller stops it. */
export async function startProvider(redirectUri: string): Promise<TestProvider> {
  const accounts = new Map<string, Account>();
  const requests: string[] = [];
  const failing = new Set<string>();
  let handle: (...of: Parameters<ReturnType<Provider['callback']>>) => unknown = () => {};
  let server: Server | null = null;
  let port = 0;
  const start = async () => {
    const opened = createServer((request, response) => {
      requests.push(`${request.method} ${request.url?.split('?')[0]}`);
      if (failing.has(request.url?.split('?')[0] ?? '')) response.writeHead(503).end();
      else void handle(request, response);
    });
    await new Promise<void>((resolve) => opened.listen(port, '127.0.0.1', resolve));
    port = (opened.address() as AddressInfo).port;
    server = opened;
  };
  const stop = async () => {
    server?.closeAllConnections();
    await new Promise((resolve) => server?.close(resolve) ?? resolve(null));
    server = null;
  };
  await start();
  const url = `http://127.0.0.1:${port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const tested = { url, accounts, failing, requests, stop, start, subject: '', givesRefreshTokens: true };
  const provider = new Provider(url, {
    clients: [
      {
        ...{ client_id: client.id, client_secret: client.secret, redirect_uris: [redirectUri] },
        grant_types: ['authorization_code', 'refresh_token'],
        backchannel_logout_uri: redirectUri.replace(/callback$/, 'logout'),
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['cookies of a test'] },
    claims: { openid: ['sub', 'sid', 'groups', 'organization'], email: ['email'], profile: [] },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    // Its own refuses loopback addresses.
    fetch: (url, { method = 'GET', body, headers } = {}) => fetch(url, { method, body, headers } as RequestInit),
    issueRefreshToken: async () => tested.givesRefreshTokens,
    findAccount: async (_context, id) => {
      const account = accounts.get(id);
      return account && { accountId: id, claims: async () => ({ sub: id, ...account }) };
    },
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({ clientId: client.id, accountId: oidc.session?.accountId ?? '' });
      grant.addOIDCScope('openid email profile offline_access');
      await grant.save();
      return grant;
    },
    ttl: { Interaction: 600, Grant: 86_400, Session: 86_400, AccessToken: 3600, RefreshToken: 86_400, IdToken: 3600 },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  });
  const answer = provider.callback();
  handle = (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return answer(request, response);
    return provider.interactionFinished(request, response, { login: { accountId: tested.subject } });
  };
  const sendLogout = async (subject: string, session?: string) => {
    const found = await provider.Client.find(client.id);
    if (found === undefined) throw new Error('the provider has no client');
    await (found as unknown as { backchannelLogout(sub: string, sid?: string): Promise<unknown> }).backchannelLogout(
      subject,
      session,
    );
  };
  return Object.assign(tested, { sendLogout });
}
