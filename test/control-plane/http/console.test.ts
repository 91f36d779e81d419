import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findConsole } from '../../../src/control-plane/http/console.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, owner, type Plane, startPlane } from '../harness.ts';
import { connectRaw } from '../raw.ts';

const folder = findConsole() ?? '';
const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

let plane: Plane;
beforeAll(async () => {
  plane = await openPlane({ console: folder, proxies: [parsePrefix('127.0.0.1/32')] });
});
afterAll(() => closePlane(plane));

/** As a page at this origin, or another, sends it. */
function fromPage(headers: Record<string, string> = { 'sec-fetch-site': 'same-origin' }, on = plane) {
  const logIn = (fields: object = {}) =>
    on.call('POST', '/api/auth/login', { body: { ...owner, session_cookie: '/', ...fields }, headers });
  return { logIn };
}

/** The two halves of a new session, as a browser sends them. */
async function logIn(on = plane): Promise<{ cookie: string; 'session-key': string }> {
  const { headers, body } = await fromPage(undefined, on).logIn();
  return { cookie: (headers.get('set-cookie') ?? '').split(';')[0] ?? '', 'session-key': body.data.session_key };
}

const greeting = { data: { name: 'cpn control plane', description: 'docs/api/openapi.json' } };

describe('the page', () => {
  test('comes with a policy that lets in nothing from elsewhere, and no code in the page', async () => {
    const { status, headers, body } = await plane.call('GET', '/', { headers: html });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('cache-control')).toBe('no-cache');
    expect(body).not.toMatch(/<style|style=|\son\w+=|https?:|\s(?:src|href)="\//);
    for (const [, content] of body.matchAll(/<script[^>]*>([^<]*)</g)) expect(content).toBe('');
  });

  test('is a 304 for a browser that has it', async () => {
    const { headers } = await plane.call('GET', '/', { headers: html });
    const known = { ...html, 'if-none-match': headers.get('etag') ?? '' };
    expect((await plane.call('GET', '/', { headers: known })).status).toBe(304);
    expect((await plane.call('GET', '/', { headers: { ...html, 'if-none-match': '"other"' } })).status).toBe(200);
  });

  test.each(['application/json', '*/*', 'text/html;q=0'])(
    'is the name of the service for a client that accepts %s',
    async (accept) => {
      const { status, body } = await plane.call('GET', '/', { headers: { accept } });
      expect([status, body]).toEqual([200, greeting]);
    },
  );

  test('has its files compressed and plain, to be kept for good', async () => {
    for (const name of readdirSync(join(folder, 'assets')).filter((each) => !each.endsWith('.gz'))) {
      const path = `/assets/${name}`;
      const packed = await plane.call('GET', path, { headers: { 'accept-encoding': 'gzip' } });
      const plain = await plane.call('GET', path, { headers: { 'accept-encoding': 'identity' } });
      const content = readFileSync(join(folder, 'assets', name), 'utf8');
      expect([packed.status, packed.body, plain.body]).toEqual([200, content, content]);
      expect([packed.headers.get('content-encoding'), plain.headers.get('content-encoding')]).toEqual(['gzip', null]);
      expect(packed.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(packed.headers.get('vary')).toContain('accept-encoding');
    }
  });

  test.each(['/assets/', '/assets/none.js', '/assets/../index.html', '/assets/%2e%2e/index.html', '/assets/__proto__'])(
    'has no file %s',
    async (path) => {
      expect((await plane.call('GET', path, { headers: html })).status).toBe(404);
    },
  );

  test('is not there with --no-console, where the API still is', async () => {
    const bare = await startPlane();
    const { status, body } = await bare.call('GET', '/', { headers: html });
    expect([status, body]).toEqual([200, greeting]);
    expect((await bare.call('GET', '/assets/any.js')).status).toBe(404);
    expect((await bare.call('GET', '/healthz')).status).toBe(200);
  });

  test('is no operation of the API', async () => {
    const { body } = await plane.call('GET', '/docs/api/openapi.json');
    expect(Object.keys(body.paths).filter((path) => !path.startsWith('/api/'))).toEqual(
      expect.not.arrayContaining(['/', '/assets/{*}']),
    );
  });
});

describe('the cookie of a session', () => {
  test('has one half of the token, the reply the other, and no script and no other site gets the cookie', async () => {
    const { status, headers, body } = await fromPage().logIn();
    expect([status, Object.keys(body.data)]).toEqual([200, ['session_key', 'expires_at']]);
    expect(body.data.session_key).toMatch(/^[\w-]{16}\.[\w-]{43}$/);
    const [value, ...attributes] = (headers.get('set-cookie') ?? '').split('; ');
    expect(value).toMatch(/^cpn_session=cpu_[\w-]{43}$/);
    expect(attributes).toEqual([
      `Expires=${new Date(body.data.expires_at).toUTCString()}`,
      ...['Path=/', 'HttpOnly', 'SameSite=Strict'],
    ]);
  });

  test('is for the path of the page, below which a proxy may serve it', async () => {
    const { headers } = await fromPage().logIn({ session_cookie: '/vpn/cpn-1/' });
    expect(headers.get('set-cookie')).toContain('; Path=/vpn/cpn-1/; ');
  });

  test.each(['', 'vpn/', '/vpn', '/a;b/', '/a; Domain=example.net; x=/', '/a\r\nx: y/', `/${'a'.repeat(300)}/`])(
    'is for no path such as %j',
    async (path) => {
      const { status, body } = await fromPage().logIn({ session_cookie: path });
      expect([status, Object.keys(body.errors)]).toEqual([422, ['session_cookie']]);
    },
  );

  test('is sent over https only, where a trusted proxy serves that', async () => {
    const page = { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': '203.0.113.7' };
    const secure = await fromPage({ ...page, 'x-forwarded-proto': 'https' }).logIn();
    expect(secure.headers.get('set-cookie')).toMatch(/^__Host-cpn_session=cpu_.*; Path=\/; .*; Secure$/);
    const below = await fromPage({ ...page, 'x-forwarded-proto': 'https' }).logIn({ session_cookie: '/vpn/' });
    expect(below.headers.get('set-cookie')).toMatch(/^__Secure-cpn_session=cpu_.*; Path=\/vpn\/; .*; Secure$/);
    const cookie = (below.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const halves = { cookie, 'session-key': below.body.data.session_key };
    expect((await plane.call('GET', '/api/auth/me', { headers: halves })).status).toBe(200);
    expect((await fromPage(page).logIn()).headers.get('set-cookie')).not.toContain('Secure');
    const direct = await startPlane({ console: folder });
    const claimed = await fromPage({ ...page, 'x-forwarded-proto': 'https' }, direct).logIn();
    expect(claimed.headers.get('set-cookie')).not.toContain('Secure');
  });

  test('lets the page read and change, until it logs out', async () => {
    const halves = await logIn();
    const headers = { ...halves, 'sec-fetch-site': 'same-origin' };
    expect((await plane.call('GET', '/api/auth/me', { headers: halves })).body.data.email).toBe(owner.email);
    const made = await plane.call('POST', '/api/networks', {
      body: { name: 'by cookie', private_cidr: '10.78.0.0/24' },
      headers,
    });
    expect(made.status).toBe(201);
    const out = await plane.call('POST', '/api/auth/logout', { body: { session_cookie: '/' }, headers });
    expect([out.status, out.headers.get('set-cookie')]).toEqual([
      200,
      'cpn_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict',
    ]);
    expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(401);
  });

  test('is ignored next to an Authorization header', async () => {
    const headers = { ...(await logIn()), authorization: 'Bearer cpu_wrong' };
    expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(401);
  });

  test('is found among other cookies', async () => {
    const { cookie, ...key } = await logIn();
    const headers = { cookie: `a=b; ${cookie}; c=d`, ...key };
    expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(200);
  });

  test('opens nothing without the key of its page, nor as a bearer; nor does the key', async () => {
    const { cookie, 'session-key': key } = await logIn();
    const other = await logIn();
    const [, value = ''] = cookie.split('=');
    const attempts: Record<string, string>[] = [
      ...[{ cookie }, { 'session-key': key }, { cookie, 'session-key': other['session-key'] }],
      ...[value, key, key.slice(17), `cpu_${key.slice(17)}`, `${value}.${key.slice(17)}`].map((token) => ({
        authorization: `Bearer ${token}`,
      })),
      ...['', 'x', `${key.slice(0, 16)}.`, `${key}x`, `${key}, ${key}`].map((each) => ({
        cookie,
        'session-key': each,
      })),
    ];
    for (const headers of attempts) {
      expect([headers, (await plane.call('GET', '/api/auth/me', { headers })).status]).toEqual([headers, 401]);
    }
    expect((await plane.call('GET', '/api/auth/me', { headers: { cookie, 'session-key': key } })).status).toBe(200);
  });

  test('is replaced by a login, which ends the session before', async () => {
    const before = await logIn();
    const { headers, body } = await fromPage({ ...before, 'sec-fetch-site': 'same-origin' }).logIn();
    const after = {
      cookie: (headers.get('set-cookie') ?? '').split(';')[0] ?? '',
      'session-key': body.data.session_key,
    };
    const status = async (halves: Record<string, string>) =>
      (await plane.call('GET', '/api/auth/me', { headers: halves })).status;
    expect([await status(before), await status(after)]).toEqual([401, 200]);
    // A wrong password ends nothing.
    await fromPage({ ...after, 'sec-fetch-site': 'same-origin' }).logIn({ password: 'wrong' });
    expect(await status(after)).toBe(200);
  });

  test('that was planted before a login is not the session after it, for the user or the planter', async () => {
    const planted = await logIn();
    const page = { 'sec-fetch-site': 'same-origin' };
    const status = async (halves: Record<string, string>) =>
      (await plane.call('GET', '/api/auth/me', { headers: halves })).status;
    for (const before of [{ cookie: planted.cookie }, { cookie: `cpn_session=cpu_${'A'.repeat(43)}` }]) {
      const { headers, body } = await fromPage({ ...page, ...before }).logIn();
      const cookie = (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
      const key = body.data.session_key;
      expect(cookie).not.toBe(before.cookie);
      expect(await status({ cookie, 'session-key': key })).toBe(200);
      expect(await status({ ...before, 'session-key': key })).toBe(401);
      expect(await status({ cookie, 'session-key': planted['session-key'] })).toBe(401);
    }
    // A planter that plants both halves gets the session ended by the login, not that of the user.
    const { headers, body } = await fromPage({ ...page, ...planted }).logIn();
    expect(await status(planted)).toBe(401);
    const cookie = (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    expect(await status({ cookie, 'session-key': body.data.session_key })).toBe(200);
  });

  test('that another port planted locks no user out', async () => {
    const [own, planted] = [await logIn(), await logIn()];
    for (const before of [
      planted.cookie,
      `cpn_session=cpu_${'A'.repeat(43)}`,
      '__Host-cpn_session=x',
      'cpn_session=',
    ]) {
      const headers = { ...own, cookie: `${before}; ${own.cookie}` };
      expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(200);
    }
  });

  test('of the version before ends its session, and the page shows that a login is needed', async () => {
    const { body } = await plane.call('POST', '/api/auth/login', { body: owner });
    const token = body.data.access_token;
    expect((await plane.call('GET', '/api/auth/me', { token })).status).toBe(200);
    const refused = await plane.call('GET', '/api/auth/me', { headers: { cookie: `cpn_session=${token}` } });
    expect([refused.status, refused.body]).toEqual([
      401,
      { message: 'the session of this page has ended; reload the page and log in again' },
    ]);
    expect((await plane.call('GET', '/api/auth/me', { token })).status).toBe(401);
  });

  test('authenticates no peer and no personal token', async () => {
    const token = await plane.signIn('owner');
    const network = await makeNetwork(plane, token, { name: 'no peers by cookie', private_cidr: '10.79.0.0/24' });
    const { body } = await enroll(plane, await makeKey(plane, token, network));
    const personal = await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'deploy' } });
    for (const value of [body.data.access_token, personal.body.data.access_token]) {
      const path = `/api/networks/${network}`;
      expect((await plane.call('GET', path, { token: value })).status).toBe(200);
      expect((await plane.call('GET', path, { headers: { cookie: `cpn_session=${value}` } })).status).toBe(401);
    }
  });
});

describe('a change with the cookie', () => {
  const change = (headers: Record<string, string>) => rawChange(plane, headers);

  test.each<[string, Record<string, string>, number]>([
    ['of this page', { 'Sec-Fetch-Site': 'same-origin' }, 422],
    ['of this page, which Origin names too', { 'Sec-Fetch-Site': 'same-origin', Origin: 'http://cp.test:8787' }, 422],
    ['of another site', { 'Sec-Fetch-Site': 'cross-site' }, 403],
    ['of another site that claims this Origin', { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://cp.test:8787' }, 403],
    ['of another host of this site', { 'Sec-Fetch-Site': 'same-site' }, 403],
    ['of no page', { 'Sec-Fetch-Site': 'none' }, 403],
    ['of an older browser at this host', { Origin: 'http://cp.test:8787' }, 422],
    ['of an older browser over https', { Origin: 'https://cp.test:8787' }, 422],
    ['of an older browser at another port', { Origin: 'http://cp.test:8788' }, 403],
    ['of an older browser at another host', { Origin: 'http://evil.test:8787' }, 403],
    ['of a host whose name ends alike', { Origin: 'http://evil-cp.test:8787' }, 403],
    ['of a page without an origin', { Origin: 'null' }, 403],
    ['with an Origin that is none', { Origin: 'cp.test:8787' }, 403],
    ['without a word of where it comes from', {}, 403],
    ['behind a proxy, of its host', { 'X-Forwarded-Host': 'vpn.test', Origin: 'https://vpn.test' }, 422],
    ['behind a proxy, of the usual port', { 'X-Forwarded-Host': 'vpn.test:443', Origin: 'https://VPN.test' }, 422],
    ['behind a proxy, of another host', { 'X-Forwarded-Host': 'vpn.test', Origin: 'http://cp.test:8787' }, 403],
  ])('%s: %o gives %i', async (_what, headers, status) => {
    // A body that breaks a rule is refused only after the check.
    expect(await change({ ...(await logIn()), ...headers })).toBe(status);
  });

  test('X-Forwarded-Host of an unknown client is ignored', async () => {
    const direct = await startPlane({ console: folder });
    const claimed = { ...(await logIn(direct)), 'X-Forwarded-Host': 'evil.test', Origin: 'http://evil.test' };
    expect(await rawChange(direct, claimed)).toBe(403);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'by a form as %s, which browsers send anywhere without a preflight, does nothing',
    async (type) => {
      const halves = await logIn();
      const raw = JSON.stringify({ name: 'by form', private_cidr: '10.80.0.0/24' });
      for (const [headers, status] of [
        [{}, 403],
        [{ origin: 'null' }, 403],
        [{ origin: 'http://evil.test', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 403],
        [{ origin: plane.url, 'sec-fetch-site': 'same-origin' }, 422],
      ] as const) {
        const given = { raw, headers: { ...halves, ...headers, 'content-type': type } };
        expect([headers, (await plane.call('POST', '/api/networks', given)).status]).toEqual([headers, status]);
      }
      // A form has no key of the page, so that not even this origin could send one.
      const form = { raw, headers: { cookie: halves.cookie, origin: plane.url, 'content-type': type } };
      expect((await plane.call('POST', '/api/networks', form)).status).toBe(401);
      const networks = (await plane.call('GET', '/api/networks', { headers: halves })).body.data;
      expect(networks.map(({ name }: { name: string }) => name)).not.toContain('by form');
    },
  );

  test('a login for a cookie is such a change', async () => {
    for (const headers of [{}, { origin: 'http://evil.test' }, { 'sec-fetch-site': 'cross-site' }]) {
      const { status, headers: replied } = await fromPage(headers).logIn();
      expect([status, replied.get('set-cookie')]).toEqual([403, null]);
    }
  });

  test('a change with a bearer token comes from anywhere', async () => {
    const token = await plane.signIn('owner');
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'http://evil.test' };
    expect((await plane.call('POST', '/api/networks', { token, body: {}, headers })).status).toBe(422);
  });
});

test.each([
  ...['/?next=https://evil.test/', '/?redirect=//evil.test', '/?return_to=/\\evil.test', '/?url=javascript:alert(1)'],
  ...['//evil.test', '//evil.test/%2e%2e', '/\\evil.test', '/%2f%2fevil.test', '/%5cevil.test', '/.//evil.test'],
  ...['https://evil.test/', '/assets//evil.test', '/docs//evil.test', '/api/auth/login?next=//evil.test'],
])('%s leads nowhere else: no reply is a redirect', async (path) => {
  for (const method of ['GET', 'HEAD', 'POST']) {
    const client = await connectRaw(plane.url);
    const lines = [
      `${method} ${path} HTTP/1.1`,
      'Host: cp.test:8787',
      'Accept: text/html',
      'X-Forwarded-For: 203.0.113.9',
    ];
    client.send(`${lines.join('\r\n')}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    const reply = await client.ended();
    expect(reply).toMatch(/^HTTP\/1\.1 [245]/);
    expect(reply).not.toMatch(/^(?:location|refresh):/im);
  }
});

test('with public URLs, pages and sessions are refused at other hosts; bearers and health checks take any', async () => {
  const publicUrls = ['https://cp.test/', 'http://backup.test:8787/vpn/'].map((url) => new URL(url));
  const named = await startPlane({ console: folder, publicUrls, proxies: [parsePrefix('127.0.0.1/32')] });
  const token = await named.signIn('owner');
  const from = (host: string) => ({ 'x-forwarded-for': '203.0.113.7', 'x-forwarded-host': host });
  const page = (host: string) => fromPage({ ...from(host), 'sec-fetch-site': 'same-origin' }, named);
  const { headers, body } = await page('cp.test').logIn();
  const cookie = (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const halves = { cookie, 'session-key': body.data.session_key };
  const asset = readdirSync(join(folder, 'assets'))[0];
  const statuses = async (host: string) => [
    (await named.call('GET', '/', { headers: { ...html, ...from(host) } })).status,
    (await named.call('GET', `/assets/${asset}`, { headers: from(host) })).status,
    (await page(host).logIn()).status,
    (await named.call('GET', '/api/auth/me', { headers: { ...halves, ...from(host) } })).status,
    (await named.call('GET', '/api/auth/me', { token, headers: from(host) })).status,
    (await named.call('GET', '/healthz', { headers: from(host) })).status,
  ];
  for (const host of ['cp.test', 'CP.test:443', 'backup.test:8787']) {
    expect([host, await statuses(host)]).toEqual([host, [200, 200, 200, 200, 200, 200]]);
  }
  for (const host of ['evil.test', 'cp.test:8443', 'cp.test.evil.test', 'backup.test', '127.0.0.1']) {
    expect([host, await statuses(host)]).toEqual([host, [403, 403, 403, 403, 200, 200]]);
  }
});

/** Sends a change that is refused with 422 once it is let in, with these headers and no others; fetch sets some itself. */
async function rawChange({ url }: Pick<Plane, 'url'>, headers: Record<string, string>): Promise<number> {
  const client = await connectRaw(url);
  const given = { Host: 'cp.test:8787', 'X-Forwarded-For': '203.0.113.9', ...headers };
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}\r\n`);
  const body = 'Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close';
  client.send(`POST /api/networks HTTP/1.1\r\n${lines.join('')}${body}\r\n\r\n{}`);
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(await client.ended())?.[1]);
}
