import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { call } from '../../control-plane/harness.ts';
import { connectRaw, type RawConnection } from '../../control-plane/raw.ts';
import { eventually } from '../../lab/eventually.ts';
import { makeFolder, owner, startServing } from './served-process.ts';

const readiness = 'GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n';

/** A request of which the server waits for the body. */
async function beginLogin(url: string, body: string): Promise<RawConnection> {
  const begun = await connectRaw(url);
  const head = ['POST /api/auth/login HTTP/1.1', 'Host: x', 'Expect: 100-continue', 'Content-Type: application/json'];
  begun.send([...head, `Content-Length: ${body.length}`, '', ''].join('\r\n'));
  await begun.until('100 Continue');
  return begun;
}

/** Waits until new connections are refused. */
function untilRefused(url: string): Promise<unknown> {
  return eventually('the port is closed', async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const outcome = await Promise.race([
      once(socket, 'connect').then(() => 'open'),
      once(socket, 'error').then(() => 'closed'),
    ]).catch(() => 'closed');
    socket.destroy();
    return outcome === 'closed';
  });
}

test('SIGTERM: refuses new connections, answers running requests and long polls, and closes the database', async () => {
  const folder = makeFolder();
  const served = await startServing(folder);
  const body = JSON.stringify(owner);
  const { access_token: token } = (await call(served.url, 'POST', '/api/auth/login', { body: owner })).body.data;
  const created = await call(served.url, 'POST', '/api/networks', {
    token,
    body: { name: 'office', private_cidr: '10.77.0.0/24' },
  });
  const network = created.body.data.id;
  const { headers } = await call(served.url, 'GET', `/api/networks/${network}`, { token });

  const login = await beginLogin(served.url, body);
  const waiting = await connectRaw(served.url);
  const head = [`GET /api/networks/${network} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`];
  waiting.send([...head, `If-None-Match: ${headers.get('etag')}`, 'Prefer: wait=60', '', ''].join('\r\n'));
  // A balancer that had asked before, and has begun to ask again.
  const balancer = await connectRaw(served.url);
  balancer.send(`${readiness}\r\n`);
  await balancer.until('{"status":"ready"}');
  balancer.send(readiness);
  await eventually('a long poll waits', async () => {
    const metrics = await call(served.url, 'GET', '/metrics');
    return String(metrics.body).includes('cpn_waiting_connectors 1');
  });

  served.child.kill('SIGTERM');
  expect(await waiting.ended()).toMatch(/^HTTP\/1.1 304 /);
  await untilRefused(served.url);
  balancer.send('\r\n');
  expect(await balancer.ended()).toMatch(/HTTP\/1.1 503 .*retry-after: 1\r\n.*the control plane is shutting down/s);
  login.send(body);
  expect(await login.ended()).toMatch(/HTTP\/1.1 200 .*connection: close\r\n.*"access_token":"cpu_/s);
  expect(await served.ended()).toBe(0);
  expect(existsSync(join(folder, 'data', 'control-plane.db-wal'))).toBe(false);
  expect(served.said()).not.toContain('request failed');
});

test.each(['SIGTERM', 'SIGINT'] as const)('a second signal, %s, ends it at once', async (second) => {
  const served = await startServing(makeFolder());
  const held = await beginLogin(served.url, 'x'.repeat(10));
  served.child.kill('SIGTERM');
  await untilRefused(served.url);
  expect(served.child.exitCode).toBe(null);
  served.child.kill(second);
  expect(await served.ended()).toBe(second);
  await held.ended();
});

test('a log that is read no more holds up neither requests nor SIGTERM', async () => {
  const served = await startServing(makeFolder());
  served.child.stderr?.pause();
  // Each is a line of the log, of which a pipe and its reader take some hundred.
  const wrong = { ...owner, email: 'x'.repeat(200) };
  for (let sent = 0; sent < 2_000; sent += 50) {
    const replies = Array.from({ length: 50 }, () => call(served.url, 'POST', '/api/auth/login', { body: wrong }));
    for (const { status } of await Promise.all(replies)) expect(status).toBe(422);
  }
  const exited = once(served.child, 'exit');
  served.child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
  served.child.stderr?.resume();
});

test('health checks leave no line in the log', async () => {
  const served = await startServing(makeFolder());
  for (const path of ['/healthz', '/readyz', '/metrics', '/api/networks']) await call(served.url, 'GET', path);
  await served.says('"route":"/api/networks"');
  expect(served.said()).not.toMatch(/healthz|readyz|metrics"/);
});
