import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { OidcSettings } from '../../../src/control-plane/domain/single-sign-on.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import type { Plane, Reply } from '../harness.ts';
import { client, type TestProvider } from './provider.ts';

export const path = '/api/auth/single-sign-on';

/** A port that nothing has, for a control plane whose public URL is its address. */
export async function findPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export function settingsFor(issuer: string, others: Partial<OidcSettings> = {}): OidcSettings {
  return {
    ...{ issuer: new URL(issuer), clientId: client.id, clientSecret: new Secret(client.secret) },
    ...{
      scopes: ['profile', 'email', 'offline_access'],
      parameters: [],
      groupsClaim: 'groups',
      organizationClaim: null,
    },
    roles: [
      { role: 'owner', group: 'bosses' },
      { role: 'admin', group: 'net-admins' },
      { role: 'viewer', group: 'staff' },
    ],
    tokenMaxAgeMs: 30 * 24 * 3600 * 1000,
    ...others,
  };
}

/** The cookies of a browser by the origin that set them. */
export interface Browser {
  readonly cookies: Map<string, Map<string, string>>;
}

export const openBrowser = (): Browser => ({ cookies: new Map() });

/** Sends a request of a page, with the cookies of its origin, and follows nothing. */
export async function visit(browser: Browser, url: string, init: RequestInit = {}): Promise<Response> {
  const { origin } = new URL(url);
  const own = browser.cookies.get(origin) ?? new Map<string, string>();
  browser.cookies.set(origin, own);
  const cookie = [...own].map(([name, value]) => `${name}=${value}`).join('; ');
  const headers = { ...(init.headers as Record<string, string>), ...(cookie !== '' && { cookie }) };
  const response = await fetch(url, { ...init, headers, redirect: 'manual' });
  for (const line of response.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(line) || value === '') own.delete(name);
    else own.set(name, value);
  }
  return response;
}

/** Begins a login in a browser. Returns where the browser is sent. */
export async function begin(browser: Browser, plane: Pick<Plane, 'url'>): Promise<string> {
  const response = await post(browser, plane, path, { session_cookie: '/' });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const { data } = (await response.json()) as { data: { authorization_url: string } };
  return data.authorization_url;
}

export function post(browser: Browser, plane: Pick<Plane, 'url'>, to: string, body: unknown): Promise<Response> {
  return visit(browser, plane.url + to, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: plane.url },
    body: JSON.stringify(body),
  });
}

/** Follows the pages of the issuer. Returns the URL of the callback, not visited yet. */
export async function passIssuer(browser: Browser, plane: Pick<Plane, 'url'>, start: string): Promise<string> {
  let url = start;
  for (let hops = 0; hops < 10; hops += 1) {
    if (url.startsWith(plane.url)) return url;
    const response = await visit(browser, url);
    const next = response.headers.get('location');
    if (next === null) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    url = new URL(next, url).href;
  }
  throw new Error('the issuer sends the browser on and on');
}

/** What the page gets at the end of a login. */
export async function redeem(browser: Browser, plane: Pick<Plane, 'url'>): Promise<Reply> {
  const response = await post(browser, plane, `${path}/session`, { session_cookie: '/', device_name: 'console' });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** A whole login. Returns the reply, and the headers of the page's next requests. */
export async function logInAt(
  { plane, provider }: { readonly plane: Pick<Plane, 'url'>; readonly provider: TestProvider },
  subject: string,
) {
  provider.subject = subject;
  const browser = openBrowser();
  const callback = await passIssuer(browser, plane, await begin(browser, plane));
  const back = await visit(browser, callback);
  const reply = await redeem(browser, plane);
  const cookies = browser.cookies.get(new URL(plane.url).origin) ?? new Map();
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const headers = { cookie, 'session-key': reply.body.data?.session_key ?? '', origin: plane.url };
  return { browser, callback, back, reply, headers };
}
