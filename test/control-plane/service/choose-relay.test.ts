import { describe, expect, test } from 'vitest';
import { chooseRelay, findObstacle, type RelayCandidate } from '../../../src/control-plane/service/choose-relay.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';

const range = parsePrefix('10.77.0.0/24');

describe('a connector relays', () => {
  const able: Parameters<typeof findObstacle>[1] = {
    ...{ peer_type: 'connector', endpoint: '203.0.113.1:51820', withdrawn: '["192.168.1.0/24"]' },
    ...{ suspended_at: null, expired: 0 },
  };

  test.each([
    ['that has an endpoint and serves no route', {}, null],
    ['without an endpoint', { endpoint: null }, 'has no endpoint'],
    ['that is drained', { withdrawn: '["192.168.1.0/24","10.77.0.0/24"]' }, 'is out of service'],
    ['that is suspended', { suspended_at: '2030-01-01T00:00:00.000Z' }, 'is suspended'],
    ['that has expired', { expired: 1 }, 'has expired'],
    ['that is an origin now', { peer_type: 'origin' }, 'is not a connector'],
  ] as const)('%s: %o gives %s', (_what, fields, obstacle) => {
    expect(findObstacle(range, { ...able, ...fields })).toBe(obstacle);
  });
});

describe('the relay', () => {
  const candidate = (id: number, announced: RelayCandidate['announced'], fields: object = {}): RelayCandidate => ({
    ...{ id, announced, keepsRules: true, priority: 0, serving_since: `2030-01-0${id}T00:00:00.000Z` },
    ...fields,
  });
  /** Ten minutes after the second candidate began to serve. */
  const now = Date.parse('2030-01-02T00:10:00.000Z');
  const [online, offline, unknown] = ['online', 'offline', null] as const;

  test.each([
    ['is none without a candidate', null, [], null],
    ['is the only candidate, also one that is offline', null, [candidate(1, offline)], 1],
    ['is the connector of the longest service', null, [candidate(2, online), candidate(1, online)], 1],
    [
      'is the connector of the highest priority',
      null,
      [candidate(1, online), candidate(2, online, { priority: 1 })],
      2,
    ],
    ['is rather online than not observed', null, [candidate(1, unknown), candidate(2, online)], 2],
    ['is rather not observed than offline', null, [candidate(1, offline), candidate(2, unknown)], 2],
    ['is another one if the current one is no candidate', 7, [candidate(1, online)], 1],
    ['is none if the current one was the last candidate', 7, [], null],
  ])('%s', (_what, current, candidates, relay) => {
    expect(chooseRelay(current, candidates, now)).toBe(relay);
  });

  test.each([
    ['has a lower rank', [candidate(2, online), candidate(1, online, { priority: 9 })]],
    ['was not observed yet', [candidate(2, unknown), candidate(1, online)]],
    ['is offline like all others', [candidate(2, offline), candidate(1, offline)]],
    ['is offline and no other was observed', [candidate(2, offline), candidate(1, unknown)]],
  ])('stays if it %s', (_what, candidates) => {
    expect(chooseRelay(2, candidates, now)).toBe(2);
  });

  test.each([
    ['is rather one that enforces the rules', null, candidate(1, online), 2],
    ['is rather one that is online than one that enforces the rules', null, candidate(1, online), 1, offline],
    ['yields to one that is online and enforces the rules', 1, candidate(1, online), 2],
    ['stays while the one that enforces the rules is not online', 1, candidate(1, online), 1, unknown],
  ] as const)('of a closed network %s', (_what, current, older, relay, state: RelayCandidate['announced'] = online) => {
    const candidates = [{ ...older, keepsRules: false, priority: 1 }, candidate(2, state)];
    expect(chooseRelay(current, candidates, now)).toBe(relay);
  });

  test('is the best one that is online, if the current one is offline', () => {
    const others = [candidate(3, online), candidate(4, online, { priority: 1 }), candidate(1, unknown)];
    expect(chooseRelay(2, [candidate(2, offline), ...others], now)).toBe(4);
  });

  test.each([
    ['yields after ten minutes to one that is online', candidate(1, online), 1],
    ['stays while no other is online', candidate(1, unknown), 2],
  ])('that was never online %s', (_what, other, relay) => {
    expect(chooseRelay(2, [candidate(2, unknown), other], now + 1)).toBe(relay);
  });
});
