import tls from 'node:tls';
import { createRemoteJWKSet, type JWTPayload, type JWTVerifyGetKey, customFetch as joseFetch, jwtVerify } from 'jose';
import * as client from 'openid-client';
import { Secret } from '../../core/crypto/secret.ts';
import { printable } from '../../core/errors/index.ts';
import { codeOf, isUnknownIssuer } from '../../core/tls/failure-code.ts';
import { noteTrust } from '../../core/tls/trust-system.ts';
import { createSeal } from '../domain/seal.ts';
import type { Claims, Grant, Issuer, OidcSettings, SingleSignOn } from '../domain/single-sign-on.ts';
import type { Random } from '../domain/tokens.ts';
import { IssuerRefused, Unavailable } from '../errors.ts';

interface Found {
  readonly config: client.Configuration;
  readonly keys: JWTVerifyGetKey;
  readonly at: number;
}

/** How long the description of the issuer is kept. */
const descriptionMs = 3600 * 1000;
const timeoutS = 10;
/** How far the clocks of this host and the issuer may be apart. */
const clockToleranceS = 60;
/** A login may rotate the keys of the issuer, and a stranger may name keys that do not exist. */
const keysPauseMs = 1_000;
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';

export function connectIssuer(settings: OidcSettings, random: Random): SingleSignOn {
  return { settings, issuer: createIssuer(settings), seal: createSeal(settings.clientSecret, random) };
}

/** Reads the issuer's description at the first use: the control plane starts without the issuer. */
function createIssuer(settings: OidcSettings): Issuer {
  const { issuer, clientId, clientSecret } = settings;
  const secret = clientSecret.reveal();
  const name = issuer.host;
  let found: Found | null = null;
  let finding: Promise<Found> | null = null;

  const discover = async (): Promise<Found> => {
    if (found !== null && Date.now() - found.at < descriptionMs && Date.now() >= found.at) return found;
    // A silent issuer gets one request at a time.
    finding ??= describe().finally(() => {
      finding = null;
    });
    return finding;
  };

  const describe = async (): Promise<Found> => {
    const metadata = { client_secret: secret, [client.clockTolerance]: clockToleranceS };
    const execute = issuer.protocol === 'http:' ? [client.allowInsecureRequests] : [];
    const options = { timeout: timeoutS, execute, [client.customFetch]: fetchTrusting };
    const config = await client.discovery(issuer, clientId, metadata, authenticateClient(secret), options);
    const { jwks_uri } = config.serverMetadata();
    if (jwks_uri === undefined) throw new IssuerRefused(`the issuer ${name} names no keys (jwks_uri)`);
    const keys = createRemoteJWKSet(new URL(jwks_uri), {
      ...{ timeoutDuration: timeoutS * 1000, cooldownDuration: keysPauseMs },
      [joseFetch]: fetchTrusting,
    });
    found = { config, keys, at: Date.now() };
    return found;
  };

  const verify = async (token: string, { config, keys }: Found): Promise<JWTPayload> => {
    const { issuer: stated } = config.serverMetadata();
    const options = { issuer: stated, audience: clientId, algorithms, clockTolerance: clockToleranceS };
    return (await jwtVerify(token, keys, options)).payload;
  };

  /** The claims of a response, with those of the userinfo endpoint if the ID token lacks some. */
  const readGrant = async (tokens: Tokens, at: Found, subject: string | null): Promise<Grant> => {
    // openid-client trusts the connection, and verifies no signature.
    const stated: Claims = tokens.id_token === undefined ? {} : await verify(tokens.id_token, at);
    const expected = subject ?? String(stated.sub);
    if (stated.sub !== undefined && stated.sub !== expected) {
      throw new IssuerRefused(`the issuer ${name} answered with the token of another user`, { isEnd: true });
    }
    const isWhole = [settings.groupsClaim, settings.organizationClaim ?? 'email', 'email'].every((claim) =>
      Object.hasOwn(stated, claim.split('.', 1)[0] ?? claim),
    );
    const hasInfo = at.config.serverMetadata().userinfo_endpoint !== undefined;
    const info = isWhole || !hasInfo ? {} : await client.fetchUserInfo(at.config, tokens.access_token, expected);
    const { refresh_token: token } = tokens;
    return {
      claims: { ...info, ...stated, sub: expected },
      refreshToken: token === undefined ? null : new Secret(token),
      session: typeof stated.sid === 'string' ? stated.sid : null,
      hasIdToken: tokens.id_token !== undefined,
    };
  };

  const translated = async <Result>(work: (at: Found) => Promise<Result>): Promise<Result> => {
    try {
      return await work(await discover());
    } catch (error) {
      // Its endpoints may have moved.
      found = null;
      throw translate(error, name);
    }
  };

  const asked = settings.parameters.find(([parameter]) => parameter === 'max_age');
  const maxAge = asked === undefined ? {} : { maxAge: Number(asked[1]) };
  return {
    authorize: (redirectUri, { state, nonce, verifier }) =>
      translated(async ({ config }) =>
        client.buildAuthorizationUrl(config, {
          ...Object.fromEntries(settings.parameters),
          redirect_uri: redirectUri,
          scope: ['openid', ...settings.scopes].join(' '),
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          ...{ state, nonce },
        }),
      ),
    redeem: (callback, { state, nonce, verifier }) =>
      translated(async (at) => {
        const checks = {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
          ...maxAge,
        };
        return readGrant(await client.authorizationCodeGrant(at.config, callback, checks), at, null);
      }),
    refresh: (token, subject, keep) =>
      translated(async (at) => {
        const tokens = await client.refreshTokenGrant(at.config, token.reveal());
        if (tokens.refresh_token !== undefined) await keep(new Secret(tokens.refresh_token));
        return readGrant(tokens, at, subject);
      }),
    readLogout: (token) =>
      translated(async (at) => {
        const { sub, sid, iat, events, nonce, jti } = await verify(token, at);
        const isLogout = typeof events === 'object' && events !== null && logoutEvent in events;
        const names = typeof sub === 'string' || typeof sid === 'string';
        if (!isLogout || nonce !== undefined || !names || iat === undefined || jti === undefined) {
          throw new IssuerRefused('the token is not a logout token; see OpenID Connect Back-Channel Logout 1.0, 2.4');
        }
        if (Math.abs(Date.now() / 1000 - iat) > logoutAgeS) throw new IssuerRefused('the logout token is too old');
        return {
          subject: typeof sub === 'string' ? sub : null,
          session: typeof sid === 'string' ? sid : null,
          at: new Date(iat * 1000),
        };
      }),
  };
}

/** A logout token is sent at once. An older one may be a replay. */
const logoutAgeS = 180;

type Tokens = client.TokenEndpointResponse;

/** Uses HTTP Basic, which every issuer supports (RFC 6749, 2.3.1), unless it lists others only. */
function authenticateClient(secret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, ...others) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...others);
  };
}

/** Trusts the authorities of this host too, after an unknown one: an issuer is often internal. */
async function fetchTrusting(url: string, options: object): Promise<Response> {
  const trustMore = noteTrust(() => tls);
  try {
    return await fetch(url, { ...options, redirect: 'error' });
  } catch (error) {
    if (!isUnknownIssuer(codeOf((error as Error).cause)) || !trustMore()) throw error;
    return fetch(url, { ...options, redirect: 'error' });
  }
}

/** Separates a refusal from an issuer that cannot be asked now. Both name no secret. */
function translate(error: unknown, name: string): Error {
  if (error instanceof IssuerRefused || error instanceof Unavailable) return error;
  if (error instanceof client.AuthorizationResponseError || error instanceof client.ResponseBodyError) {
    const reason = [error.error, error.error_description ?? []].flat().join(': ');
    const isLater = error instanceof client.ResponseBodyError && (error.status >= 500 || error.status === 429);
    if (isLater) return new Unavailable(`the issuer ${name} answers ${shorten(reason)}`, retrySeconds, error);
    const isEnd = ends.includes(error.error);
    return new IssuerRefused(`the issuer ${name} refused: ${shorten(reason)}`, { cause: error, isEnd });
  }
  const { code = '', message = '' } = (error ?? {}) as { readonly code?: string; readonly message?: string };
  if (isAnswer(code))
    return new IssuerRefused(`the answer of the issuer ${name} is not valid: ${shorten(message)}`, { cause: error });
  return new Unavailable(`the issuer ${name} does not answer (${shorten(nameCause(error))})`, retrySeconds, error);
}

/** Refusals of a refresh that mean the user, and not the settings of this control plane. */
const ends = [
  ...['invalid_grant', 'access_denied', 'login_required', 'consent_required', 'interaction_required'],
  'account_selection_required',
];

const retrySeconds = 5;
const mostShown = 200;
const shorten = (text: string) => printable(text.slice(0, mostShown));

/** True for an answer whose content is wrong, by the codes of openid-client and jose. */
function isAnswer(code: string): boolean {
  return /^(?:ERR_JW[ST]_|ERR_JWKS_(?!TIMEOUT)|ERR_JOSE_(?:ALG|NOT)_|OAUTH_(?:INVALID|JWT|JSON|KEY|UNSUPPORTED)_)/.test(
    code,
  );
}

function nameCause(error: unknown): string {
  if (error instanceof Error && error.cause instanceof Error) return nameCause(error.cause);
  const code = codeOf(error);
  return code !== 'unknown' ? code : error instanceof Error ? error.message : String(error);
}
