import { createServer as createPlain, type IncomingHttpHeaders } from 'node:http';
import { createServer as createTls } from 'node:https';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { probeService } from '../../../src/api/http/is-service-reachable.ts';
import { exitCodeOf } from '../../../src/cli/exit-code.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { ProxyFailed, Unreachable } from '../../../src/core/errors/index.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import { makeCertificate } from '../certificate.ts';
import { connectPeerService } from '../described-service.ts';
import { failureOf, networkBody, unhurried } from '../samples.ts';
import { listen, trust } from '../server.ts';

const token = new Secret('token-sample');
const credentials = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;

interface Seen {
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
}

/** A proxy that takes each CONNECT to one port on this machine, and answers forwarded requests itself. */
async function serveProxy({
  port = 0,
  status = 200,
  secure = false,
  name = 'localhost',
}: {
  port?: number;
  status?: number;
  secure?: boolean;
  name?: string;
}) {
  const seen: Seen[] = [];
  const certificate = makeCertificate({ name });
  if (secure) trust(certificate.cert);
  const server = secure ? createTls(certificate) : createPlain();
  server.on('request', (request, response) => {
    seen.push({ target: request.url ?? '', headers: request.headers });
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ data: networkBody() }));
  });
  server.on('connect', (request, socket) => {
    seen.push({ target: request.url ?? '', headers: request.headers });
    if (status === 0) return;
    if (status !== 200) return void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    for (const end of [socket, onward]) end.on('error', () => {});
  });
  const { port: own } = await listen(server);
  const url = (user = '') => `${secure ? 'https' : 'http'}://${user}localhost:${own}`;
  return { seen, url };
}

async function serveApi() {
  const certificate = makeCertificate({ name: 'cp.example.net' });
  const asked: IncomingHttpHeaders[] = [];
  const server = createTls(certificate, (request, response) => {
    asked.push(request.headers);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data: networkBody() }));
  });
  const { port } = await listen(server);
  return { port, asked, certificate };
}

function read(url: string, proxy: string) {
  const { options, sleeps } = unhurried();
  const address = { url, insecureHttp: true, proxy: parseProxy(proxy, 'HTTPS_PROXY') };
  return { map: connectPeerService(address, options).readMap(7, token, null), sleeps, address };
}

describe('through a proxy', () => {
  test.each([false, true])(
    'https goes in a tunnel, and only the proxy sees its credentials (TLS to the proxy: %s)',
    async (secure) => {
      const { port, asked, certificate } = await serveApi();
      const proxy = await serveProxy({ port, secure });
      trust(certificate.cert);
      const { map, from } = await read('https://cp.example.net:8443', proxy.url('user:p%40ss@')).map;
      expect(map?.name).toBe('office');
      expect(from).toBe('127.0.0.1');
      expect(proxy.seen).toEqual([
        { target: 'cp.example.net:8443', headers: expect.objectContaining({ 'proxy-authorization': credentials }) },
      ]);
      expect(proxy.seen[0]?.headers).not.toHaveProperty('authorization');
      expect(asked[0]).toMatchObject({ authorization: 'Bearer token-sample', host: 'cp.example.net:8443' });
      expect(asked[0]).not.toHaveProperty('proxy-authorization');
    },
  );

  test('the certificate inside is that of the control plane, whatever the proxy is', async () => {
    const certificate = makeCertificate({ name: 'other.example.net' });
    trust(certificate.cert);
    const { port } = await listen(createTls(certificate));
    const proxy = await serveProxy({ port });
    const failure = await failureOf(read('https://cp.example.net', proxy.url()).map);
    expect(failure.message).toContain('its TLS certificate is for other.example.net, not for cp.example.net');
  });

  test('the certificate of an https proxy is for its own name', async () => {
    const proxy = await serveProxy({ secure: true, name: 'cp.example.net' });
    const failure = await failureOf(read('https://cp.example.net', proxy.url()).map);
    expect(failure).toBeInstanceOf(ProxyFailed);
    expect(failure.message).toContain('is unreachable: its TLS certificate is for cp.example.net, not for localhost');
  });

  test('plain http is forwarded', async () => {
    const proxy = await serveProxy({});
    expect((await read('http://cp.example.net:8787', proxy.url('user:p%40ss@')).map).map?.name).toBe('office');
    expect(proxy.seen).toEqual([
      {
        target: 'http://cp.example.net:8787/api/networks/7',
        headers: expect.objectContaining({ host: 'cp.example.net:8787', 'proxy-authorization': credentials }),
      },
    ]);
  });

  test.each([
    ['https', 407, '', 'requires a user and a password (407)'],
    ['https', 407, 'user:hunter2@', 'does not accept its user and password (407)'],
    ['http', 407, 'user:hunter2@', 'does not accept its user and password (407)'],
    ['https', 401, 'user:hunter2@', 'does not accept its user and password (401)'],
    ['https', 401, '', 'does not allow connections to cp.example.net:443 (401)'],
    ['https', 499, '', 'does not allow connections to cp.example.net:443 (499)'],
    ['https', 500, '', 'cannot connect to cp.example.net:443 (500)'],
    ['https', 403, '', 'does not allow connections to cp.example.net:443 (403)'],
    ['https', 502, '', 'cannot connect to cp.example.net:443 (502)'],
  ])('a refusal is an error of the proxy at once: %s, %i %s', async (scheme, status, user, problem) => {
    const proxy = await serveProxy({ status });
    const { map, sleeps, address } = read(`${scheme}://cp.example.net`, proxy.url(user));
    const failure = await failureOf(map);
    expect(failure).toBeInstanceOf(ProxyFailed);
    expect(failure).toBeInstanceOf(Unreachable);
    expect(failure).toMatchObject({ delivered: false, facts: { url: `${scheme}://cp.example.net` } });
    expect(failure.message).toContain(`the proxy ${proxy.url()} (HTTPS_PROXY) ${problem}`);
    expect(failure.message).not.toContain('hunter2');
    expect(exitCodeOf(failure)).toBe(5);
    expect(sleeps).toEqual([]);
    expect((await failureOf(probeService(address, 5_000))).name).toBe('ProxyFailed');
  });

  test('an IPv6 address of the control plane is in brackets', async () => {
    const proxy = await serveProxy({ status: 403 });
    const failure = await failureOf(read('https://[2001:db8::1]:8443', proxy.url()).map);
    expect(failure.message).toContain('does not allow connections to [2001:db8::1]:8443 (403)');
    expect(proxy.seen.map(({ target }) => target)).toEqual(['[2001:db8::1]:8443']);
  });

  test('a proxy that is not there is named, with the variable', async () => {
    const { port } = await listen(createPlain());
    const { map, sleeps } = read('https://cp.example.net', `http://127.0.0.1:${port === 1 ? 2 : 1}`);
    const failure = await failureOf(map);
    expect(failure.message).toContain(
      'the proxy http://127.0.0.1:1 (HTTPS_PROXY) is unreachable: the connection was refused',
    );
    expect(sleeps).toEqual([]);
  });

  test('the deadline ends a CONNECT without an answer', async () => {
    const proxy = await serveProxy({ status: 0 });
    const address = { url: 'https://cp.example.net', insecureHttp: false, proxy: parseProxy(proxy.url(), '--proxy') };
    const failure = await failureOf(connectPeerService(address, { deadlineMs: 300 }).readMap(7, token, null));
    expect(failure.message).toContain('within 0.3 s');
  });
});
