/** Servers whose certificates a private CA issued, and programs on machines that trust it. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { type Issued, ofAuthority, openAuthority } from '../../api/certificate-authority.ts';
import { listen } from '../../api/server.ts';
import { call } from '../../control-plane/harness.ts';
import { signingSecret } from '../../control-plane/health/receiver.ts';
import { makeFolder, owner, runProgram, startServing } from './served-process.ts';

let folder: string;
let root: Issued;
let leaf: Issued;

beforeEach(() => {
  folder = makeFolder();
  const { issue } = openAuthority();
  root = issue({ name: 'Office Root', extensions: ofAuthority });
  leaf = issue({ name: 'localhost', issuer: root, extensions: ['subjectAltName=DNS:localhost,DNS:cp.example.net'] });
  vi.stubEnv('NODE_EXTRA_CA_CERTS', undefined);
  return () => void vi.unstubAllEnvs();
});

async function serve(name = 'localhost'): Promise<string> {
  const { url } = await startServing(folder, '--tls-cert', leaf.certFile, '--tls-key', leaf.keyFile);
  return url.replace('127.0.0.1', name);
}

function login(url: string, environment: Record<string, string>, ...flags: string[]) {
  const password = ['--email', owner.email, '--password-file', join(folder, 'password')];
  const where = ['--api', url, ...flags];
  return runProgram(['login', ...where, ...password], { XDG_CONFIG_HOME: folder, ...environment });
}

/** An HTTP proxy over TLS by which every name is this machine. */
async function startProxy(): Promise<{ url: string; targets: readonly string[] }> {
  const targets: string[] = [];
  const server: Server = createServer({ cert: leaf.cert, key: leaf.key });
  server.on('connect', (request, client: Socket) => {
    const [host, port] = (request.url ?? '').split(':');
    targets.push(`${host}:${port}`);
    const origin = connect(Number(port), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      origin.pipe(client).pipe(origin);
    });
    for (const [one, other] of [
      [client, origin],
      [origin, client],
    ] as const) {
      one.on('error', () => other.destroy());
    }
  });
  const { port } = await listen(server);
  return { url: `https://localhost:${port}`, targets };
}

test('a login accepts a control plane of a CA in the store of the machine, and no other one', async () => {
  const url = await serve();
  const stranger = await login(url, {});
  expect([stranger.code, stranger.stderr]).toEqual([5, expect.stringContaining('"Office Root"')]);
  const known = await login(url, { SSL_CERT_FILE: root.certFile });
  expect([known.stdout, known.code]).toEqual([expect.stringContaining('logged in'), 0]);
});

test('connections that begin at once all accept it', async () => {
  const url = await serve();
  const environment = { XDG_CONFIG_HOME: folder, SSL_CERT_FILE: root.certFile };
  expect((await login(url, environment)).code).toBe(0);
  // Reads the tokens and the sessions at once.
  const { code, stdout, stderr } = await runProgram(['token', 'list'], environment);
  expect([code, stdout], stderr).toEqual([0, expect.stringContaining('session')]);
});

test('a login goes through a proxy whose certificate is of that CA too', async () => {
  const url = await serve('cp.example.net');
  const proxy = await startProxy();
  const stranger = await login(url, {}, '--proxy', proxy.url);
  expect([stranger.code, stranger.stderr]).toEqual([5, expect.stringContaining(`the proxy ${proxy.url}`)]);
  expect(proxy.targets).toEqual([]);
  const known = await login(url, { SSL_CERT_FILE: root.certFile }, '--proxy', proxy.url);
  expect([known.stdout, known.code]).toEqual([expect.stringContaining('logged in'), 0]);
  expect(proxy.targets).toContain(new URL(url).host);
});

test('the control plane sends webhooks to a receiver of that CA', async () => {
  const received: string[] = [];
  const receiver = createServer({ cert: leaf.cert, key: leaf.key }, (request, response) => {
    received.push(request.url ?? '');
    response.writeHead(204).end();
    receiver.emit('received');
  });
  const { port } = await listen(receiver);
  const secret = join(folder, 'webhook-secret');
  writeFileSync(secret, `${signingSecret}\n`, { mode: 0o600 });
  vi.stubEnv('SSL_CERT_FILE', root.certFile);
  const hook = ['--webhook', `https://localhost:${port}/hook`, '--webhook-secret-file', secret];
  const allowed = ['--webhook-allow', '127.0.0.1,::1', '--webhook-events', 'network.updated'];
  const { url } = await startServing(folder, ...hook, ...allowed);
  const delivered = once(receiver, 'received');
  const token = (await call(url, 'POST', '/api/auth/login', { body: owner })).body.data.access_token;
  const body = { name: 'office', private_cidr: '10.77.0.0/24' };
  const { id } = (await call(url, 'POST', '/api/networks', { token, body })).body.data;
  await call(url, 'PATCH', `/api/networks/${id}`, { token, body: { name: 'lab' } });
  await delivered;
  expect(received).toEqual(['/hook']);
});
