import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { renderDescription } from '../../../src/control-plane/http/description/description-page.ts';
import { closePlane, openPlane, type Plane } from '../harness.ts';

let plane: Plane;
let page: { readonly headers: Headers; readonly body: string };

beforeAll(async () => {
  plane = await openPlane();
  const reply = await fetch(`${plane.url}/docs`);
  page = { headers: reply.headers, body: await reply.text() };
});

afterAll(() => closePlane(plane));

it('/docs shows each operation and each schema of the description', async () => {
  const { body } = await plane.call('GET', '/docs/api/openapi.json');
  const operations = Object.values<Record<string, { operationId: string }>>(body.paths).flatMap(Object.values);
  expect(operations.length).toBeGreaterThan(30);
  for (const { operationId } of operations) expect(page.body).toContain(`<section id="${operationId}">`);
  for (const name of Object.keys(body.components.schemas)) expect(page.body).toContain(`<section id="schema-${name}">`);
  const links = [...page.body.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
  expect(links.filter((id) => !page.body.includes(`id="${id}"`))).toEqual([]);
});

it('/docs has the access, the parameters, the body and the replies of an operation', () => {
  const section = /<section id="changePeer">.*?<\/section>/s.exec(page.body)?.[0];
  expect(section).toContain('<code>PATCH /api/networks/{network}/peers/{peer}</code>');
  expect(section).toContain('Access: a session, a personal token, the token of a peer. Roles: owner, admin, member.');
  expect(section).toContain('<code>network</code></td><td>path, required</td><td>integer, at least 1</td>');
  expect(section).toContain('<a href="#schema-ChangePeer">ChangePeer</a>');
  expect(section).toMatch(/<dt>200<\/dt><dd>.*<a href="#schema-Peer">/);
});

it('/docs runs no script and loads nothing; its only style is allowed by its hash', () => {
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(page.body) ?? [];
  const hash = createHash('sha256').update(style).digest('base64');
  expect(page.headers.get('content-security-policy')).toBe(
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
  expect(page.body).not.toMatch(/<script|<link|<img| style=| on\w+=/);
});

it('/docs is not sent again to a browser that has it, and links relative to a path of a proxy', async () => {
  const again = await fetch(`${plane.url}/docs`, { headers: { 'if-none-match': `${page.headers.get('etag')}` } });
  expect([again.status, await again.text()]).toEqual([304, '']);
  expect(new URL('docs/api/openapi.json', 'https://cp.example.net/vpn/docs').pathname).toBe(
    '/vpn/docs/api/openapi.json',
  );
  expect(page.body).toContain('href="docs/api/openapi.json"');
});

it('shows texts of a description as texts', () => {
  const text = renderDescription({ info: { title: '<b>&"\'', version: '1' }, paths: {}, components: {} });
  expect(text).toContain('<h1>&#60;b&#62;&#38;&#34;&#39;</h1>');
});
