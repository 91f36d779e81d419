import { describe, expect, test } from 'vitest';
import { decodeMap } from '../../src/api/decode/map.ts';
import { connectPeerService } from '../../src/api/peer-service.ts';
import type { PeerDescription, PeerService } from '../../src/api/service.ts';
import { parsePublicKey } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { CannotReport, CannotWithdraw } from '../../src/core/errors/index.ts';
import { type Feature, features } from '../../src/core/map/features.ts';
import { type Address, parsePrefix } from '../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../src/core/net/endpoint.ts';
import {
  enrollmentBody,
  enrollmentRequest,
  failureOf,
  keyOf,
  networkBody,
  peerBody,
  source,
  unhurried,
} from './samples.ts';
import { hungUp, json, serve, silent } from './server.ts';

const token = new Secret('token-sample');
const endpoint = parseEndpoint('203.0.113.9:51820');
const lan = parsePrefix('192.168.10.0/24');
const without = (feature: Feature) => features.filter((each) => each !== feature);

describe('an operation that the service describes and does not have', () => {
  const operations: [string, (service: PeerService) => Promise<unknown>][] = [
    ['withdraw', (it) => it.withdraw(7, 3, token, [lan])],
    ['announceMasquerading', (it) => it.announceMasquerading(7, 3, token, true)],
    ['announceSecret', (it) => it.announceSecret(7, 3, token, null)],
    ['changeKey', (it) => it.changeKey(7, 3, token, parsePublicKey(keyOf(9)), null)],
    ['describePeer', (it) => it.describePeer(7, 3, token, { name: 'edge' })],
    ['removePeer', (it) => it.removePeer(7, 3, token)],
    ['report', (it) => it.report(7, 3, token, {})],
    ['sendPathSignals', (it) => it.sendPathSignals(7, token, {})],
  ];

  test.each(operations)('is noticed: %s', async (_, operation) => {
    for (const [status, absent] of [
      ...([404, 405].map((each) => [each, 1]) as [number, number][]),
      ...([200, 401, 403, 409, 410, 422].map((each) => [each, 0]) as [number, number][]),
    ]) {
      let noticed = 0;
      const { address } = await serve(json(status, { data: null }));
      const onAbsent = () => {
        noticed += 1;
      };
      await Promise.allSettled([operation(connectPeerService(address, features, { onAbsent }))]);
      expect([status, noticed]).toEqual([status, absent]);
    }
  });

  test('is not an enrolment or a map, which each service has', async () => {
    const { address } = await serve(json(404, {}));
    const service = connectPeerService(address, features, { onAbsent: () => expect.unreachable() });
    await failureOf(service.enroll(enrollmentRequest()));
    await failureOf(service.readMap(7, token, null));
  });
});

describe('a request for a map', () => {
  const headersOf = async (options: object) => {
    const { address, asked } = await serve(json(200, { data: networkBody() }));
    await connectPeerService(address, features, options).readMap(7, token, '"12"');
    return asked[0]?.headers;
  };

  test.each([
    [{}, 'follow'],
    [{ isDeleted: false }, 'follow'],
    [{ isDeleted: true }, 'applied'],
  ])('of a host with %j says of a deletion: %s', async (options, deletion) => {
    expect(await headersOf(options)).toMatchObject({ 'network-deletion': deletion });
  });

  test('has the id of this start of a daemon alone', async () => {
    expect((await headersOf({ instance: 'a' }))?.['peer-instance']).toBe('a');
    for (const options of [{}, { instance: null }])
      expect(await headersOf(options)).not.toHaveProperty('peer-instance');
  });

  test.each([
    [features, { takesPaths: true }, 'probe, observe, candidates, try, switch, return'],
    [without('peer-paths'), { takesPaths: true }, 'probe'],
    [features, {}, 'probe'],
    [without('map-messages'), { takesPaths: true }, undefined],
  ])('names the kinds of messages that host and service have in common (%#)', async (described, options, kinds) => {
    const { address, asked } = await serve(json(200, { data: networkBody() }));
    const known = decodeMap(networkBody(), source, { network: 7, etag: '"12"' });
    await connectPeerService(address, described, { instance: 'a', ...options }).readMap(7, token, known);
    expect(asked[0]?.headers['peer-messages']).toBe(kinds);
  });

  test('states the receipt of the last messages, or that it has none', async () => {
    const { address, asked } = await serve(json(200, { data: networkBody() }));
    const known = decodeMap(networkBody(), source, { network: 7, etag: '"12"' });
    for (const described of [features, without('map-messages')]) {
      const service = connectPeerService(address, described, { instance: 'a' });
      // A whole map too: the host has the messages.
      for (const [each, receipt] of [[known], [known, '41.42'], [null, '41.42']] as const)
        await service.readMap(7, token, each, undefined, receipt);
    }
    const stated = asked.map(({ headers }) => headers['peer-messages-receipt']);
    expect(stated).toEqual(['none', '41.42', '41.42', undefined, undefined, undefined]);
  });

  test.each(features)('ends with its signal, also where the service does not describe %s', async (feature) => {
    const stop = new AbortController();
    const { address } = await serve((response, asked) => {
      silent(response, asked);
      setImmediate(() => stop.abort(new Error('the daemon stops')));
    });
    const reading = connectPeerService(address, without(feature)).readMap(7, token, '"12"', {
      ...{ seconds: 20, signal: stop.signal },
    });
    expect(await failureOf(reading)).toBe(stop.signal.reason);
  });
});

describe('of a service that does not describe it', () => {
  test('nothing is withdrawn, and nothing put back needs no request', async () => {
    const { address, asked } = await serve(json(200, {}));
    const service = connectPeerService(address, without('peer-withdrawn'));
    expect(await failureOf(service.withdraw(7, 3, token, [lan]))).toBeInstanceOf(CannotWithdraw);
    await service.withdraw(7, 3, token, []);
    expect(asked).toEqual([]);
  });

  test.each<[Feature, PeerDescription, boolean]>([
    ['peer-name', { name: 'edge' }, false],
    ['peer-name', { endpoint }, true],
    ['peer-name', { endpoint: null }, true],
    ['peer-name', { name: 'edge', endpoint }, false],
    ['peer-endpoint', { name: 'edge' }, true],
    ['peer-endpoint', { endpoint }, false],
    ['peer-endpoint', { endpoint: null }, false],
    ['peer-endpoint', { name: 'edge', endpoint }, false],
  ])('%s: of %j is sent all or nothing', async (feature, description, isSent) => {
    const shown = peerBody(3, { name: 'edge', endpoint: description.endpoint ? '203.0.113.9:51820' : null });
    const { address, asked } = await serve(json(200, { data: shown }));
    const change = connectPeerService(address, without(feature)).describePeer(7, 3, token, description);
    if (isSent) await change;
    else expect(await failureOf(change)).toBeInstanceOf(CannotReport);
    expect(asked).toHaveLength(isSent ? 1 : 0);
  });

  test.each([
    [{ name: 'edge' }, { name: 'other' }, 'it ignores name'],
    [{ endpoint }, { endpoint: '203.0.113.8:51820' }, 'it ignores endpoint'],
    [{ endpoint }, { endpoint: null }, 'it ignores endpoint'],
    [{ endpoint: null }, { endpoint: '203.0.113.8:51820' }, 'it ignores endpoint'],
  ])('%j is ignored where the reply has %j', async (description, reply, problem) => {
    const { address } = await serve(json(200, { data: peerBody(3, reply) }));
    const change = connectPeerService(address, features).describePeer(7, 3, token, description);
    expect(await failureOf(change)).toMatchObject({ name: 'CannotReport', message: expect.stringContaining(problem) });
  });
});

describe('an enrolment', () => {
  const enrolled = json(201, { data: enrollmentBody() });

  test('names at most a hundred networks and peers of others', async () => {
    const { address, asked } = await serve(enrolled);
    const peers = Array.from({ length: 101 }, (_, n) => {
      return { publicKey: parsePublicKey(keyOf(n)), address: `10.78.0.${n}` as Address };
    });
    const networks = peers.map((_, n) => n);
    await connectPeerService(address, features).enroll(
      enrollmentRequest({ currentPeers: peers, currentNetworks: networks }),
    );
    for (const name of ['current-networks', 'current-peers'])
      expect(String(asked[0]?.headers[name]).split(', ')).toHaveLength(100);
    expect(asked[0]?.headers['current-networks']).toMatch(/^0, 1, .*, 99$/);
  });

  test.each([
    [20, 'it has 24 characters, and a key of a cpn control plane has 47: check whether part of it is missing, or'],
    [42, 'it has 46 characters, .*: check whether part of it is missing, or'],
    [43, 'check that the whole key was given, or'],
    [44, 'it has 48 characters, .*: check whether more than a key was given, or'],
  ])('that is refused says of a key of %i characters more: %s', async (length, remedy) => {
    const { address } = await serve(json(401, {}));
    const request = enrollmentRequest({ token: new Secret(`cpn_${'a'.repeat(length)}`) });
    const { message } = await failureOf(connectPeerService(address, features).enroll(request));
    expect(message).toMatch(new RegExp(`; ${remedy} make a new key with "cpn key create"$`));
    expect(message).not.toContain('aaa');
  });

  test('without an Idempotency-Key is sent once, and says what its lost reply may have cost', async () => {
    const { address, asked } = await serve(hungUp, enrolled);
    const service = connectPeerService(address, without('enroll-idempotently'), unhurried().options);
    const failure = await failureOf(service.enroll(enrollmentRequest()));
    expect(failure.message).toContain('one use of the enrolment key may be spent, and cpn does not retry');
    expect(failure.message).not.toContain('try again');
    expect([failure, asked.length]).toMatchObject([{ perhapsDone: true }, 1]);
  });

  test('of a device has its connector and its routes', async () => {
    const { address, asked } = await serve(enrolled);
    const profile = { connector: 4, routes: [lan] };
    await connectPeerService(address, features).enroll(enrollmentRequest({ type: 'admin_device', profile }));
    expect(JSON.parse(asked[0]?.body ?? '')).toMatchObject({ peer_type: 'admin_device', profile });
  });

  test('does not show its Idempotency-Key, should the service repeat it', async () => {
    const { address } = await serve(json(422, { message: 'no idempotency-sample, no cpn_sample' }));
    const { message } = await failureOf(connectPeerService(address, features).enroll(enrollmentRequest()));
    expect(message).not.toMatch(/idempotency-sample|cpn_sample/);
  });
});
