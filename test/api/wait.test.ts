import { describe, expect, test } from 'vitest';
import { ChangeNotifier } from '../../src/control-plane/push/change-notifier.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { enroll, makeKey, makeNetwork, startPlane } from '../control-plane/harness.ts';
import { connectPeerService } from './described-service.ts';
import { failureOf, keyOf, networkBody, unhurried } from './samples.ts';
import { hungUp, json, serve, silent } from './server.ts';

const token = new Secret('token-sample');
const applied = { 'preference-applied': 'wait=20' };

describe('readMap that waits', () => {
  test('is requested from the service, and reports whether it waited', async () => {
    const body = { data: networkBody() };
    const { address, asked } = await serve(
      json(200, body, { etag: '"12"', ...applied }),
      (response) => response.writeHead(304, { etag: '"12"', ...applied }).end(),
      json(200, body, { etag: '"12"' }),
      (response) => response.writeHead(304, { 'preference-applied': 'respond-async' }).end(),
    );
    const service = connectPeerService(address);
    const read = async () => {
      const { map, waited } = await service.readMap(7, token, '"11"', { seconds: 20 });
      return [map?.revision, waited];
    };
    expect(await read()).toEqual(['"12"', true]);
    expect(await read()).toEqual([undefined, true]);
    expect(await read()).toEqual(['"12"', false]);
    expect(await read()).toEqual([undefined, false]);
    for (const { headers } of asked) expect([headers.prefer, headers['if-none-match']]).toEqual(['wait=20', '"11"']);
  });

  test('is not requested without a wait option', async () => {
    const { address, asked } = await serve(json(200, { data: networkBody() }));
    await connectPeerService(address).readMap(7, token, null);
    expect(asked[0]?.headers.prefer).toBeUndefined();
  });

  test('has so much longer until its deadline', async () => {
    const { address } = await serve((response, asked) => {
      setTimeout(() => json(200, { data: networkBody() })(response, asked), 300);
    });
    const service = connectPeerService(address, { deadlineMs: 150 });
    expect((await service.readMap(7, token, '"11"', { seconds: 5 })).map?.id).toBe(7);
    expect((await failureOf(service.readMap(7, token, '"11"'))).message).toContain('within 0.15 s');
    const hanging = connectPeerService((await serve(silent)).address, { deadlineMs: 50 });
    expect((await failureOf(hanging.readMap(7, token, null, { seconds: 1 }))).message).toContain('within 1.05 s');
  });

  test('is retried for no more than the rest of the wait', async () => {
    const { address, asked } = await serve(json(503, {}, { 'retry-after': '12' }), hungUp, json(503, {}), silent);
    const stop = new AbortController();
    const { options, retries } = unhurried({ random: () => 0 });
    const call = connectPeerService(address, options).readMap(7, token, '"11"', { seconds: 20, signal: stop.signal });
    call.catch(() => {});
    await expect.poll(() => asked.length).toBe(4);
    stop.abort();
    await failureOf(call);
    const spent = retries.map(({ attempt }) =>
      retries.slice(0, attempt).reduce((sum, { delayMs }) => sum + delayMs / 1000, 0),
    );
    const left = [0, ...spent].map((seconds) => `wait=${Math.ceil(20 - seconds)}`);
    expect(asked.map(({ headers }) => headers.prefer)).toEqual(left);
    expect(left[1]).toBe('wait=8');
  });

  test('ends immediately with the reason of its signal, without another request', async () => {
    const reason = new Error('the tunnel is taken down');
    const stop = new AbortController();
    const { address, asked } = await serve(() => setImmediate(() => stop.abort(reason)));
    const { options, retries } = unhurried();
    const wait = { seconds: 50, signal: stop.signal };
    const service = connectPeerService(address, options);
    expect(await failureOf(service.readMap(7, token, '"11"', wait))).toBe(reason);
    expect(await failureOf(service.readMap(7, token, '"11"', wait))).toBe(reason);
    expect([asked.length, retries]).toEqual([1, []]);
  });

  test('of our own control plane gets the change, or learns that there was none', async () => {
    const notifier = new ChangeNotifier();
    const plane = await startPlane({ notifier });
    const owner = await plane.signIn('owner');
    const network = await makeNetwork(plane, owner);
    const key = await makeKey(plane, owner, network);
    const service = connectPeerService({ url: plane.url, insecureHttp: false });
    const enrolled = await service.enroll({
      token: new Secret(key),
      name: 'host-1',
      type: 'origin',
      publicKey: parsePublicKey(keyOf(1)),
      endpoint: null,
      idempotencyKey: 'attempt-1',
    });
    const own = enrolled.accessToken ?? expect.unreachable();
    const read = (seconds: number, signal = new AbortController().signal) =>
      service.readMap(network, own, enrolled.map.revision, { seconds, signal });

    expect(await read(1)).toMatchObject({ map: null, waited: true, from: '127.0.0.1' });
    const leave = new AbortController();
    const left = read(50, leave.signal);
    await expect.poll(() => notifier.count(network)).toBe(1);
    leave.abort();
    await failureOf(left);
    await expect.poll(() => notifier.count(network)).toBe(0);

    const reading = read(50);
    await expect.poll(() => notifier.count(network)).toBe(1);
    await enroll(plane, key);
    const { map, waited } = await reading;
    expect([map?.peers.length, waited]).toEqual([2, true]);
  });
});
