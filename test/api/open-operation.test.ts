import { describe, expect, test } from 'vitest';
import { needsNoToken } from '../../src/api/open-operation.ts';
import { failureOf, unhurried } from './samples.ts';
import { bytes, json, type Reply, serve } from './server.ts';

const open = { security: [] };
const closed = { security: [{ bearer: [] }] };

/** Whether a service that describes these paths takes a request without a token. */
async function isOpen(
  paths: unknown,
  { method = 'GET', path = '/api/x', more = {}, base = '' } = {} as {
    method?: string;
    path?: string;
    more?: object;
    base?: string;
  },
) {
  const { url, asked } = await serve(json(200, { paths, ...more }));
  const is = await needsNoToken({ url: `${url}${base}`, insecureHttp: false }, { method: method as 'GET', path });
  expect(asked.map((request) => `${request.method} ${request.path}`)).toEqual([`GET ${base}/docs/api/openapi.json`]);
  expect(asked[0]?.headers.authorization).toBeUndefined();
  return is;
}

describe('an operation needs no token', () => {
  test.each<[string, unknown, object, boolean]>([
    ['of its own', open, {}, true],
    ['where an empty one is among its ways', { security: [{ bearer: [] }, {}] }, {}, true],
    ['where all others need one', open, { security: [{ bearer: [] }] }, true],
    ['where nothing needs one', {}, {}, true],
    ['where the description says so of all', {}, { security: [] }, true],
    ['but where it says so itself', closed, { security: [] }, false],
    ['but where the description says so of all', {}, { security: [{ bearer: [] }] }, false],
    ['but where several are needed', { security: [{ bearer: [], other: [] }] }, {}, false],
    ['but where its ways are none', { security: 'none' }, {}, false],
    ['but where its ways are empty words', { security: [null, 7, ''] }, {}, false],
  ])('%s', async (_, operation, more, is) => {
    expect(await isOpen({ '/api/x': { get: operation } }, { more })).toBe(is);
  });

  test('by its verb, and HEAD by that of GET where it has none of its own', async () => {
    const paths = { '/api/x': { get: open, post: closed } };
    expect(await isOpen(paths, { method: 'GET' })).toBe(true);
    expect(await isOpen(paths, { method: 'POST' })).toBe(false);
    expect(await isOpen(paths, { method: 'DELETE' })).toBe(false);
    expect(await isOpen(paths, { method: 'HEAD' })).toBe(true);
    expect(await isOpen({ '/api/x': { get: open, head: closed } }, { method: 'HEAD' })).toBe(false);
    expect(await isOpen({ '/api/x': { head: open, get: closed } }, { method: 'GET' })).toBe(false);
  });

  test.each<[string, string, boolean]>([
    ['/api/networks/7', '/api/networks/{network}', true],
    ['/api/networks/7?x=1', '/api/networks/{network}', true],
    ['api/networks/7', '/api/networks/{network}', true],
    ['/api/networks/', '/api/networks/{network}', false],
    ['/api/networks/7/keys', '/api/networks/{network}', false],
    ['/api/networks', '/api/networks/{network}', false],
    ['/api/networks/7', '/api/networks/x{network}', false],
    ['/api/Networks/7', '/api/networks/{network}', false],
  ])('by its path: %s as %s', async (path, template, is) => {
    expect(await isOpen({ [template]: { get: open } }, { path })).toBe(is);
  });

  test('the closest path decides', async () => {
    for (const [exact, other] of [
      [open, closed],
      [closed, open],
    ]) {
      const paths = { '/api/{a}/{b}': { get: other }, '/api/{a}/me': { get: other }, '/api/auth/me': { get: exact } };
      for (const given of [paths, Object.fromEntries(Object.entries(paths).toReversed())])
        expect(await isOpen(given, { path: '/api/auth/me' })).toBe(exact === open);
    }
  });

  test('below a base address, as the description writes it: with its path or without', async () => {
    for (const template of ['/api/x', '/vpn/api/x'])
      expect(await isOpen({ [template]: { get: open } }, { base: '/vpn' })).toBe(true);
    expect(await isOpen({ '/other/api/x': { get: open } }, { base: '/vpn' })).toBe(false);
  });

  test.each<[string, Reply]>([
    ['no description', json(404, {})],
    ['no JSON', bytes(200, 'none', { 'content-type': 'text/plain' })],
    ['no paths', json(200, {})],
    ['paths of another kind', json(200, { paths: ['/api/x'] })],
    ['a path of another kind', json(200, { paths: { '/api/x': 'get' } })],
    ['null', json(200, null)],
  ])('of a service with %s only by what is described', async (_, reply) => {
    const { address } = await serve(reply);
    expect(await needsNoToken(address, { method: 'GET', path: '/api/x' })).toBe(false);
  });

  test('is not known where the service does not answer', async () => {
    const { address } = await serve(json(503, {}));
    const asking = needsNoToken(address, { method: 'GET', path: '/api/x' }, unhurried().options);
    expect((await failureOf(asking)).name).toBe('Unreachable');
  });
});
