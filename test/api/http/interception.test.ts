import { createServer } from 'node:https';
import tls from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { probeService } from '../../../src/api/http/is-service-reachable.ts';
import { connectRawService } from '../../../src/api/raw-service.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { makeCertificate } from '../certificate.ts';
import { connectPeerService } from '../described-service.ts';
import { enrollmentRequest, failureOf, unhurried } from '../samples.ts';
import { bytes, json, listen, type Reply, serve } from '../server.ts';

const token = new Secret('token-sample');
const html = { 'content-type': 'text/html; charset=utf-8' };
const page = '<!doctype html><title>Sign in</title>';

const portals: [string, Reply, string][] = [
  ['a page', bytes(200, page, html), 'it answered with HTML'],
  ['a page behind a byte order mark', bytes(200, `\ufeff\n ${page}`, html), 'it answered with HTML'],
  ['XHTML', bytes(203, page, { 'content-type': 'application/xhtml+xml' }), 'it answered with HTML'],
  [
    'a redirect to another host',
    bytes(302, page, { ...html, location: 'https://user:canary@portal.example.net:8443/login?from=canary' }),
    'it redirects to portal.example.net:8443',
  ],
  ['a 401 with a page', bytes(401, page, html), 'it answered 401 with HTML'],
  ['a 403 with a page', bytes(403, page, html), 'it answered 403 with HTML'],
  ['a 407 with a page', bytes(407, page, html), 'it answered 407 with HTML'],
  ['a 403 with a page of 100 KB', bytes(403, page.padEnd(100_000), html), 'it answered 403 with HTML'],
  ['a 511', bytes(511, page, html), 'it answered 511 (Network Authentication Required)'],
];

describe.each(portals)('%s in place of the control plane', (_, reply, how) => {
  test('is named, asked once, and no doubt about what was carried out', async () => {
    const { address, asked } = await serve(reply);
    const { options, sleeps } = unhurried();
    const failure = await failureOf(connectPeerService(address, options).enroll(enrollmentRequest()));
    const { url } = address;
    expect(failure).toMatchObject({
      name: 'Intercepted',
      isRetryable: true,
      delivered: true,
      perhapsDone: false,
      heard: false,
    });
    expect(failure.message).toContain(
      `a captive portal or proxy answers in place of the control plane at ${url} (${how}); log in`,
    );
    expect(failure.message).not.toMatch(/canary|token-sample/);
    expect(asked).toHaveLength(1);
    expect(sleeps).toEqual([]);
  });

  test('is not taken for the success of a deletion', async () => {
    const { address } = await serve(reply);
    const failure = await failureOf(connectAdminService(address, token).deleteNetwork(7));
    expect(failure.name).toBe('Intercepted');
  });
});

describe('no interception is', () => {
  test.each([502, 503, 504])('a page with a %i, of the proxy of the service', async (status) => {
    const { address } = await serve(bytes(status, page, html));
    const { options } = unhurried({ attempts: 1 });
    expect(await failureOf(connectPeerService(address, options).readMap(7, token, null))).toMatchObject({
      name: 'Unreachable',
      message: expect.stringContaining(`it answered ${status}`),
    });
  });

  test.each([404, 405])('a page with a %i, for an operation that not each service has', async (status) => {
    const { address } = await serve(bytes(status, page, html));
    expect((await failureOf(connectAdminService(address, token).listKeys(7))).name).toBe('Refused');
    expect((await failureOf(connectPeerService(address).enroll(enrollmentRequest()))).name).toBe('Refused');
  });

  test.each([401, 403])('a %i in plain words, whatever type they have', async (status) => {
    const { address } = await serve(bytes(status, 'Unauthorized', html));
    expect((await failureOf(connectPeerService(address).readMap(7, token, null))).name).toBe('Refused');
  });

  test('found in a page that a user requests', async () => {
    const { address } = await serve(bytes(200, page, html));
    const request = { method: 'GET', path: '/docs', query: [], headers: {}, body: null, secrets: [] } as const;
    expect(await connectRawService(address, token).send(request)).toMatchObject({ status: 200, json: false });
  });
});

test('a page with a 404 in place of a network is an interception', async () => {
  const { address } = await serve(bytes(404, page, html));
  expect((await failureOf(connectPeerService(address).readMap(7, token, null))).name).toBe('Intercepted');
  expect((await failureOf(connectAdminService(address, token).readNetwork(7))).name).toBe('Intercepted');
});

describe('a deletion', () => {
  const deletions: [string, Reply, boolean][] = [
    ['200 with what the control plane says', json(200, { data: null }), true],
    ['204', (response) => response.writeHead(204).end(), false],
    ['204 of a type', bytes(204, '', html), false],
    ['200 without a type', (response) => response.writeHead(200).end(), false],
    ['200 with other JSON', json(200, { data: {} }), false],
    ['200 with null', json(200, null), false],
    ['200 without a body, of another type', bytes(200, '', { 'content-type': 'application/octet-stream' }), false],
    ['200 with empty HTML', bytes(200, '', html), false],
    ['200 with words by the type of HTML', bytes(200, 'welcome', html), false],
    ['200 with text', bytes(200, 'welcome', { 'content-type': 'text/plain' }), false],
    ['200 with empty text', bytes(200, '', { 'content-type': 'text/plain; charset=utf-8' }), false],
  ];
  test.each(deletions)(
    'of a host by itself is confirmed only by the control plane’s own reply: %s',
    async (_, reply, isDone) => {
      const { address } = await serve(reply);
      expect(await connectPeerService(address).removePeer(7, 1, token)).toBe(isDone);
    },
  );

  const refusals: [string, Reply, boolean][] = [
    ['the message of the contract', json(401, { message: 'the bearer token is unknown or has expired' }), true],
    ['JSON of another form', json(401, { error: 'login required' }), false],
    ['an empty message', json(401, { message: '' }), false],
    ['text', bytes(401, 'Please log in', { 'content-type': 'text/plain' }), false],
    ['no body', (response) => response.writeHead(401).end(), false],
  ];
  test.each(refusals)('and a 401 say whether the service gave its reason: %s', async (_, reply, reasoned) => {
    const { address } = await serve(reply);
    const failure = await failureOf(connectPeerService(address).removePeer(7, 1, token));
    expect(failure).toMatchObject({ name: 'Refused', status: 401, reasoned });
  });
});

test('a trusted certificate of another name is named, and nothing is sent', async () => {
  let requests = 0;
  const certificate = makeCertificate({ name: 'portal\u001b[2J.example.net' });
  const usual = tls.getCACertificates('default');
  tls.setDefaultCACertificates([...usual, certificate.cert]);
  onTestFinished(() => tls.setDefaultCACertificates(usual));
  const { port } = await listen(
    createServer(certificate, () => {
      requests += 1;
    }),
  );
  const address = { url: `https://localhost:${port}`, insecureHttp: false };
  const { options, sleeps } = unhurried();
  const failures = [
    await failureOf(connectPeerService(address, options).readMap(7, token, null)),
    await failureOf(probeService(address, 5_000)),
  ];
  for (const failure of failures) {
    expect(failure).toMatchObject({ name: 'Intercepted', delivered: false, heard: false });
    expect(failure.message).toMatch(
      /^another server .*\(its TLS certificate is for .*portal.*\.example\.net, not for localhost .*\); .* requires a login, log in/,
    );
    expect(failure.message).not.toContain('\u001b');
  }
  expect(requests).toBe(0);
  expect(sleeps).toEqual([]);
});

test('a redirect to another host is not followed', async () => {
  const other = await serve(json(200, {}));
  const { address } = await serve((response) =>
    response.writeHead(307, { location: other.url.replace('127.0.0.1', 'localhost') }).end(),
  );
  const failure = await failureOf(connectPeerService(address).readMap(7, token, null));
  expect(failure.message).toContain(`it redirects to localhost:${new URL(other.url).port}`);
  expect(other.asked).toEqual([]);
});
