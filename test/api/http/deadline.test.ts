import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Unreachable } from '../../../src/core/errors/index.ts';
import { connectPeerService } from '../described-service.ts';
import { failureOf, networkBody } from '../samples.ts';
import { brokenOff, json, listen, type Reply, serve, silent, slowLoris } from '../server.ts';

const token = new Secret('token-sample');
/** Long enough for a connection on a machine with much else to do. */
const deadlineMs = 600;

const hanging: [string, Reply][] = [
  ['never answers', silent],
  ['sends its body a byte at a time', slowLoris(200)],
];

describe('one deadline bounds the whole call', () => {
  test.each(hanging)('to a server that %s', async (_, reply) => {
    const { address, asked } = await serve(reply);
    const failure = await failureOf(connectPeerService(address, { deadlineMs }).readMap(7, token, null));
    expect(failure).toBeInstanceOf(Unreachable);
    expect(failure.message).toContain('no complete answer came within 0.6 s (1 attempt in');
    expect(asked).toHaveLength(1);
  });

  test.each(hanging)('with the attempts before it, and to a server that then %s', async (_, reply) => {
    const { address, asked } = await serve(brokenOff, reply);
    const options = { deadlineMs, random: () => 0 };
    const failure = await failureOf(connectPeerService(address, options).readMap(7, token, null));
    expect(failure.message).toMatch(/no complete answer .*; before that, the connection .* \(2 attempts in/);
    expect(asked).toHaveLength(2);
  });

  test('it ends a TLS handshake, when nothing was delivered', async () => {
    const { port, connections } = await listen(createServer(() => {}));
    const address = { url: `https://127.0.0.1:${port}`, insecureHttp: false };
    const failure = await failureOf(connectPeerService(address, { deadlineMs }).readMap(7, token, null));
    expect(failure).toMatchObject({ name: 'Unreachable', delivered: false });
    expect(failure.message).toContain('no complete answer came within');
    expect(connections()).toBe(1);
  });

  test('it leaves a request that must not be sent twice in doubt', async () => {
    const { address } = await serve(silent);
    const failure = await failureOf(connectAdminService(address, token, { deadlineMs }).listNetworks());
    expect(failure.message).not.toContain('carried out');
    const service = connectAdminService(address, token, { deadlineMs });
    const unconfirmed = await failureOf(service.createNetwork({ name: 'n', private_cidr: '10.77.0.0/16' }));
    expect(unconfirmed.message).toContain('it may have succeeded');
  });

  test('it closes the connection', async () => {
    let closed = () => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const { address } = await serve((response) => response.on('close', closed));
    await failureOf(connectPeerService(address, { deadlineMs }).readMap(7, token, null));
    await gone;
  });
});

describe('the signal of the options', () => {
  const reason = new Error('stopped by SIGTERM');

  test.each(hanging)('ends a call to a server that %s', async (_, reply) => {
    const stop = new AbortController();
    const { address } = await serve((response, asked) => {
      reply(response, asked);
      setImmediate(() => stop.abort(reason));
    });
    const call = connectPeerService(address, { signal: stop.signal }).readMap(7, token, null);
    expect(await failureOf(call)).toBe(reason);
  });

  test('ends a wait between two attempts', async () => {
    const stop = new AbortController();
    const { address, asked } = await serve(json(503, {}, { 'retry-after': '20' }));
    const options = { signal: stop.signal, onRetry: () => setImmediate(() => stop.abort(reason)) };
    expect(await failureOf(connectPeerService(address, options).readMap(7, token, null))).toBe(reason);
    expect(asked).toHaveLength(1);
  });

  test('that is aborted already lets nothing out', async () => {
    const { address, asked } = await serve(json(200, { data: networkBody() }));
    const options = { signal: AbortSignal.abort(reason) };
    expect(await failureOf(connectPeerService(address, options).readMap(7, token, null))).toBe(reason);
    expect(asked).toHaveLength(0);
  });
});
