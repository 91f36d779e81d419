import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { client } from './provider.ts';

/** What the issuer does otherwise than a well-behaved one. */
export interface Conduct {
  /** Claims of the ID token in place of the usual ones; undefined removes one. */
  claims: Record<string, unknown>;
  /** Parameters of the callback in place of the usual ones. */
  answer: Record<string, string | undefined>;
  /** Signs with a key that the issuer does not name. */
  signsWithForeignKey: boolean;
  /** Signs with the client secret, or not at all. */
  algorithm: 'RS256' | 'HS256' | 'none';
  /** Another description than its own. */
  description: Record<string, unknown>;
  /** What the token endpoint replies instead. */
  tokens: Record<string, unknown> | null;
  /** What the userinfo endpoint states. */
  info: Record<string, unknown>;
}

export interface HostileIssuer extends Conduct {
  readonly url: string;
  /** From now on another key signs, which the issuer names. */
  rotateKeys(): Promise<void>;
  sign(claims: Record<string, unknown>): Promise<string>;
  /** The bodies of the requests for tokens. */
  readonly forms: URLSearchParams[];
  close(): void;
}

/** An issuer that a test makes lie. */
export async function startHostileIssuer(): Promise<HostileIssuer> {
  let key = await makeKey('first');
  const foreign = await makeKey('first');
  const codes = new Map<string, { nonce: string; challenge: string }>();
  const server = createServer((request, response) => {
    const reply = (status: number, body: unknown, headers: Record<string, string> = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    void answer(request).then(
      ([status, body, headers]) => reply(status, body, headers),
      (error: Error) => reply(500, { error: error.message }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer: HostileIssuer = {
    ...{
      url,
      claims: {},
      answer: {},
      signsWithForeignKey: false,
      algorithm: 'RS256',
      description: {},
      tokens: null,
      info: {},
    },
    forms: [],
    close: () => {
      server.close();
      server.closeAllConnections();
    },
    rotateKeys: async () => {
      key = await makeKey(`next ${Date.now()}`);
    },
    sign: async (claims) => {
      const now = Math.floor(Date.now() / 1000);
      const payload = { iss: url, aud: client.id, iat: now, exp: now + 300, ...claims };
      if (issuer.algorithm === 'none') {
        return (
          [{ alg: 'none' }, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.') +
          '.'
        );
      }
      if (issuer.algorithm === 'HS256') {
        return new SignJWT(payload).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(client.secret));
      }
      const { privateKey, id } = issuer.signsWithForeignKey ? foreign : key;
      return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: id }).sign(privateKey);
    },
  };

  type Answer = [status: number, body: unknown, headers?: Record<string, string>];
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const asked = new URL(request.url ?? '/', url);
    if (asked.pathname === '/.well-known/openid-configuration') {
      const endpoint = (name: string) => `${url}/${name}`;
      return [
        200,
        {
          ...{ issuer: url, authorization_endpoint: endpoint('authorize'), token_endpoint: endpoint('token') },
          ...{ jwks_uri: endpoint('keys'), userinfo_endpoint: endpoint('info'), response_types_supported: ['code'] },
          ...{ subject_types_supported: ['public'], id_token_signing_alg_values_supported: ['RS256'] },
          ...issuer.description,
        },
      ];
    }
    if (asked.pathname === '/keys') return [200, { keys: [await nameKey(key)] }];
    if (asked.pathname === '/info') return [200, issuer.info];
    if (asked.pathname === '/authorize') {
      const { searchParams: given } = asked;
      const code = createHash('sha256').update(String(Math.random())).digest('hex');
      codes.set(code, { nonce: given.get('nonce') ?? '', challenge: given.get('code_challenge') ?? '' });
      const back = new URL(given.get('redirect_uri') ?? '');
      const answered = { code, state: given.get('state') ?? '', ...issuer.answer };
      for (const [name, value] of Object.entries(answered)) if (value !== undefined) back.searchParams.set(name, value);
      return [303, {}, { location: back.href }];
    }
    if (asked.pathname === '/token') {
      const form = new URLSearchParams(await read(request));
      issuer.forms.push(form);
      if (issuer.tokens !== null) return [200, issuer.tokens];
      const found = codes.get(form.get('code') ?? '');
      const challenge = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url');
      if (found?.challenge !== challenge) return [400, { error: 'invalid_grant' }];
      codes.delete(form.get('code') ?? '');
      const usual = { sub: 's1', nonce: found.nonce, email: 'ada@example.net', groups: ['net-admins'] };
      const id_token = await issuer.sign({ ...usual, ...issuer.claims });
      return [200, { access_token: 'a', token_type: 'Bearer', expires_in: 300, id_token }];
    }
    return [404, {}];
  };
  return issuer;
}

interface Key {
  readonly id: string;
  readonly publicKey: CryptoKey;
  readonly privateKey: CryptoKey;
}

async function makeKey(id: string): Promise<Key> {
  return { id, ...(await generateKeyPair('RS256', { extractable: true })) };
}

async function nameKey({ id, publicKey }: Key): Promise<object> {
  return { ...(await exportJWK(publicKey)), kid: id, alg: 'RS256', use: 'sig' };
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
