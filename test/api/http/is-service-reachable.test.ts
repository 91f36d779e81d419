import { X509Certificate } from 'node:crypto';
import dns, { type LookupOptions } from 'node:dns';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { probeService } from '../../../src/api/http/is-service-reachable.ts';
import { describeUser } from '../../../src/api/http/listener-check.ts';
import type { Resolved } from '../../../src/core/names/resolved-names.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import { memory } from '../../lab/memory.ts';
import { ofAuthority, openAuthority } from '../certificate-authority.ts';
import { failureOf } from '../samples.ts';
import { json, listen, serve, silent, trust } from '../server.ts';

describe('lookAtService', () => {
  test.each([200, 401, 404, 500])(
    'takes any answer, such as %i, and its clock, and sends no secret',
    async (status) => {
      const { address, asked } = await serve(json(status, {}, { date: 'Tue, 14 Nov 2023 22:13:20 GMT' }));
      expect(await probeService(address, 5_000)).toMatchObject({ date: 1_700_000_000 });
      expect(asked).toMatchObject([{ method: 'GET', path: '/', body: '' }]);
      expect(asked[0]?.headers.authorization).toBeUndefined();
    },
  );

  test('has no time where the reply has none', async () => {
    const { address } = await serve((response) => {
      response.sendDate = false;
      response.end();
    });
    expect((await probeService(address, 5_000)).date).toBeNull();
  });

  test('has the certificate of a service by TLS and its issuers', async () => {
    const { issue } = openAuthority();
    const root = issue({ name: 'Trusted Root', extensions: ofAuthority });
    trust(root.cert);
    const own = issue({ name: 'localhost', issuer: root, days: [-1, 10] });
    const { port } = await listen(createHttps(own, (_, response) => response.end()));
    const { certificates } = await probeService({ url: `https://localhost:${port}`, insecureHttp: false }, 5_000);
    const validTo = Date.parse(new X509Certificate(own.cert).validTo);
    expect(certificates).toMatchObject([{ subject: 'localhost', validTo }, { subject: 'Trusted Root' }]);
    const { address } = await serve(json(200, {}));
    expect(await probeService(address, 5_000)).not.toHaveProperty('certificates');
  });

  test('fails in time where no service answers', async () => {
    const { address } = await serve(silent);
    expect(await failureOf(probeService(address, 50))).toMatchObject({
      name: 'Unreachable',
      message: expect.stringContaining('no answer came within 0.05 s'),
    });
  });

  test('fails where no service listens, and where something else does', async () => {
    const { url } = await listen(createServer((socket) => socket.end('SSH-2.0-x\r\n')));
    expect(await failureOf(probeService({ url, insecureHttp: false }, 5_000))).toMatchObject({
      heard: true,
      remedy: expect.stringContaining('port'),
    });
    const closed = { url: 'http://127.0.0.1:1', insecureHttp: false };
    expect(await failureOf(probeService(closed, 5_000))).toMatchObject({
      name: 'Unreachable',
      remedy: 'check its address and port, and that it runs',
    });
  });

  test.each([
    ['', '/'],
    ['/', '/'],
    ['/vpn', '/vpn'],
    ['/vpn/cpn/', '/vpn/cpn'],
  ])('requests a base address that ends in %j by the path %s', async (end, path) => {
    const { url, asked } = await serve(json(200, {}));
    await probeService({ url: `${url}${end}`, insecureHttp: false }, 5_000);
    expect(asked.map((each) => each.path)).toEqual([path]);
  });

  test('has the user whose program answers on this host, and none over TLS', async () => {
    const { address } = await serve(json(200, {}));
    expect(await probeService(address, 5_000)).toMatchObject({ listener: describeUser(process.geteuid?.() ?? 0) });
    const { issue } = openAuthority();
    const own = issue({ name: 'localhost' });
    trust(own.cert);
    const { port } = await listen(createHttps(own, (_, response) => response.end()));
    const secure = await probeService({ url: `https://localhost:${port}`, insecureHttp: false }, 5_000);
    expect(secure).not.toHaveProperty('listener');
  });

  test('fails where the program of another user than before listens', async () => {
    const folder = mkdtempSync(join(memory, 'cpn-probe-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'control-plane');
    const requests: unknown[] = [];
    const server = createHttp((request) => void requests.push(request.url)).listen(path);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    chownSync(path, 65_534, 65_534);
    const address = { url: `unix:${path}`, insecureHttp: false, listener: 65_533 };
    expect(await failureOf(probeService(address, 5_000))).toMatchObject({ name: 'ForeignListener' });
    expect(requests).toEqual([]);
  });

  test('fails where another server has the name, and where the proxy fails', async () => {
    const { issue } = openAuthority();
    const other = issue({ name: 'portal', extensions: ['subjectAltName=DNS:portal'] });
    trust(other.cert);
    const { port } = await listen(createHttps(other));
    const portal = { url: `https://localhost:${port}`, insecureHttp: false };
    expect(await failureOf(probeService(portal, 5_000))).toMatchObject({ name: 'Intercepted' });
    const proxy = parseProxy('http://127.0.0.1:1', '--proxy');
    const behind = { url: 'https://cp.invalid', insecureHttp: false, proxy };
    expect(await failureOf(probeService(behind as never, 5_000))).toMatchObject({ name: 'ProxyFailed' });
  });

  test('uses the addresses that its name had before where the resolver fails', async () => {
    const { issue } = openAuthority();
    const own = issue({ name: 'cp.invalid', extensions: ['subjectAltName=DNS:cp.invalid'] });
    trust(own.cert);
    const { port } = await listen(createHttps(own, (_, response) => response.end()));
    const fail = (_name: string, _options: LookupOptions, done: (error: Error) => void) =>
      done(Object.assign(new Error('no resolver'), { code: 'ENOTFOUND' }));
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(fail as never);
    syncBuiltinESMExports();
    onTestFinished(() => {
      lookup.mockRestore();
      syncBuiltinESMExports();
    });
    const address = { url: `https://cp.invalid:${port}`, insecureHttp: false };
    expect(await failureOf(probeService(address, 5_000))).toMatchObject({ name: 'Unreachable' });
    const resolved = { 'cp.invalid': ['127.0.0.1'] } as unknown as Resolved;
    expect(await probeService(address, 5_000, resolved)).toMatchObject({ certificates: [{ subject: 'cp.invalid' }] });
  });
});
