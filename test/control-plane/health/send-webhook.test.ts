import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { createSend, type Send } from '../../../src/control-plane/health/send-webhook.ts';
import { makeCertificate } from '../../api/certificate.ts';
import { startFailingServers } from '../../api/tls-servers.ts';
import { ignore, type Received, signingSecret, startReceiver, webhookAt } from './receiver.ts';

const message = { id: 'evt_1', body: '{}' };
const never = new AbortController().signal;
const attempt = (send: Send, signal = never) => send(message, new Date(), signal);

/** A webhook at a name that only this resolver knows. */
function named(port: number, findAddresses: () => string[]) {
  const webhook = webhookAt(`http://hooks.example.invalid:${port}/`);
  return { ...webhook, findAddresses: async () => findAddresses().map((address) => ({ address, family: 4 })) };
}

test('it connects to the address that was checked, and resolves the name no second time', async () => {
  const receiver = await startReceiver();
  let asked = 0;
  const send = createSend(named(receiver.port, () => (asked++ === 0 ? ['10.255.255.1', '127.0.0.1'] : ['10.0.0.1'])));
  expect(await attempt(send)).toBeNull();
  expect(asked).toBe(1);
  expect(receiver.received[0]?.headers.host).toBe(`hooks.example.invalid:${receiver.port}`);
  expect((await attempt(send))?.reason).toBe('10.0.0.1 is private; --webhook-allow has the addresses that may be used');
  expect(receiver.received).toHaveLength(1);
});

test('each secret signs, so that the receiver may have either while it is replaced', async () => {
  const receiver = await startReceiver();
  const secrets = [signingSecret, `whsec_${Buffer.alloc(32, 'new').toString('base64')}`];
  expect(await attempt(createSend(webhookAt(receiver.url, [], undefined, secrets)))).toBeNull();
  const [{ body, headers }] = receiver.received as [Received];
  for (const secret of secrets) new Webhook(secret).verify(body, headers as Record<string, string>);
  const other = new Webhook(Buffer.alloc(32, 'other').toString('base64'));
  expect(() => other.verify(body, headers as Record<string, string>)).toThrow();
});

test('a name of this machine is refused', async () => {
  const receiver = await startReceiver();
  const send = createSend(webhookAt(`http://localhost:${receiver.port}/`, [], ['10.0.0.0/8']));
  expect((await attempt(send))?.reason).toMatch(/127\.0\.0\.1 is loopback|::1 is loopback/);
  expect(receiver.received).toEqual([]);
});

test('a certificate that is not trusted is refused', async () => {
  const { cert, key } = makeCertificate();
  const server = createServer({ cert, key }, () => expect.unreachable()).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const outcome = await attempt(createSend(webhookAt(`https://127.0.0.1:${port}/`)));
  expect(outcome?.reason).toMatch(/is self-signed.* \(DEPTH_ZERO_SELF_SIGNED_CERT\); .* to the CAs of this machine/);
});

test('each error of TLS has its own reason and remedy, and no message is sent', async () => {
  const { servers, requests } = await startFailingServers();
  for (const { what, port, problem, remedy } of servers) {
    const findAddresses = async () => [{ address: '127.0.0.1', family: 4 }];
    const send = createSend({ ...webhookAt(`https://localhost:${port}/T0P-S3CRET`), findAddresses });
    const reason = (await attempt(send))?.reason ?? '';
    const [, before = '', after = ''] = /^(.*?\)?[^;]*); (.*)$/.exec(reason) ?? [];
    expect(before, what).toMatch(problem);
    expect(after, what).toMatch(remedy);
    expect(reason, what).not.toMatch(/this host|systemctl edit cpn|--api|T0P-S3CRET/);
  }
  expect(requests()).toBe(0);
});

test('a redirect is not followed, and not accepted', async () => {
  const target = await startReceiver();
  const receiver = await startReceiver((response) => response.writeHead(307, { location: target.url }).end());
  expect(await attempt(createSend(webhookAt(receiver.url)))).toMatchObject({ reason: 'status 307' });
  expect(target.received).toEqual([]);
});

test.each([
  ['7', 7_000],
  ['999999999', 3_600_000],
  ['soon', 0],
])('of a refusal with Retry-After: %s the wait is %i ms', async (header, retryAfterMs) => {
  const receiver = await startReceiver((response) => response.writeHead(503, { 'retry-after': header }).end());
  expect(await attempt(createSend(webhookAt(receiver.url)))).toEqual({
    ...{ reason: 'status 503', retryAfterMs, isRefusal: false },
  });
});

test.each([
  [413, true],
  [400, true],
  [429, false],
  [408, false],
  [500, false],
])('a status %i refuses this message: %s', async (status, isRefusal) => {
  const receiver = await startReceiver((response) => response.writeHead(status).end());
  expect(await attempt(createSend(webhookAt(receiver.url)))).toMatchObject({ reason: `status ${status}`, isRefusal });
});

test('a body without end is not read', async () => {
  let sent = 0;
  const closed = Promise.withResolvers<void>();
  const receiver = await startReceiver((response) => {
    response.writeHead(200).on('close', closed.resolve);
    const more = () => {
      sent += 65_536;
      if (!response.destroyed) response.write(Buffer.alloc(65_536), () => setImmediate(more));
    };
    more();
  });
  expect(await attempt(createSend(webhookAt(receiver.url)))).toBeNull();
  await closed.promise;
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

test('a receiver that does not answer, in whatever way, is left after ten seconds', async () => {
  const silent = await startReceiver(ignore);
  const slow = await startReceiver((response) => {
    response.writeProcessing();
    const timer = setInterval(() => response.writeProcessing(), 500);
    response.on('close', () => clearInterval(timer));
  });
  const unresolved = {
    ...webhookAt('http://hooks.example.invalid/'),
    findAddresses: () => new Promise<never>(() => {}),
  };
  const webhooks = [webhookAt(silent.url), webhookAt(slow.url), unresolved];
  const outcomes = await Promise.all(webhooks.map((webhook) => attempt(createSend(webhook))));
  expect(outcomes.map((outcome) => outcome?.reason)).toEqual(Array(3).fill('no reply in 10 seconds'));
});

test('an attempt ends with the control plane', async () => {
  const silent = await startReceiver(ignore);
  const end = new AbortController();
  const outcome = attempt(createSend(webhookAt(silent.url)), end.signal);
  await silent.has(1);
  end.abort();
  expect((await outcome)?.reason).toBe('the control plane stops');
});

test('names no more than the code of an error', async () => {
  const receiver = await startReceiver((response) => response.socket?.end('T0P S3CRET\r\n\r\n'));
  expect((await attempt(createSend(webhookAt(receiver.url))))?.reason).toMatch(/^(HPE_[A-Z_]+|no HTTP reply)$/);
  expect((await attempt(createSend(webhookAt('http://127.0.0.1:1/T0P'))))?.reason).toBe(
    'ECONNREFUSED; check that the receiver runs, and the port of the URL',
  );
});
