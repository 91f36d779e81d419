import { describe, expect, it } from 'vitest';
import type { TryMessage } from '../../../src/core/paths/attempt-state.ts';
import { lookOfNat, type NatView } from '../../../src/core/paths/nat-look.ts';
import { addRecord, type PathRecords, recordAttempt, recordOf } from '../../../src/core/paths/path-record.ts';
import { address } from '../samples.ts';

const own = [{ host: address('192.168.1.7'), port: 51820 }];
const look = (view: Partial<NatView>) => lookOfNat({ own, observed: [], kind: 'unknown', ...view });

describe('lookOfNat', () => {
  it.each<[string, Partial<NatView>]>([
    ['unknown', {}],
    ['unknown', { own: [], observed: ['203.0.113.1:51820'] }],
    ['none', { own: [{ host: address('203.0.113.1'), port: 51820 }], observed: ['203.0.113.1:51820'] }],
    ['port-kept', { observed: ['203.0.113.1:51820'] }],
    ['port-changed', { observed: ['203.0.113.1:4711'] }],
    ['one-port', { own: [], observed: ['203.0.113.1:4711'], kind: 'steady' }],
    ['symmetric', { observed: ['203.0.113.1:4711', '203.0.113.1:4712'] }],
    ['symmetric', { kind: 'symmetric' }],
  ])('is %s for %j', (expected, view) => {
    expect(look(view)).toBe(expected);
  });
});

const message: TryMessage = {
  ...{ peer: 4, attempt: 1, start_in_ms: 0, first: true },
  endpoints: ['192.168.2.9:51820', '203.0.113.9:51820'],
  observed: ['203.0.113.1:4711'],
  nats: { own: 'steady', peer: 'unknown' },
};
const at = '2026-11-27T12:00:00.000Z';
const record = (tried: string[]) =>
  recordAttempt(message, {
    ...{ own, at, outcome: 'proven' },
    tried: tried.map((endpoint) => ({ endpoint, outcome: 'reached' })),
  });

describe('recordAttempt', () => {
  it('has the NATs of both hosts', () => {
    expect(record(['203.0.113.9:51820']).nats).toEqual({ own: 'port-changed', peer: 'port-kept' });
  });

  it('takes a peer that answers from a port that no connector sees for one behind a symmetric NAT', () => {
    expect(record(['203.0.113.9:40000']).nats.peer).toBe('symmetric');
    expect(record(['192.168.2.9:40000']).nats.peer).toBe('port-kept');
  });
});

describe('addRecord', () => {
  const attempt = record([]);

  it('keeps the other facts of the peer', () => {
    const switched = { to: 'direct', at, why: null } as const;
    const records = addRecord(addRecord({}, 4, { attempt }), 4, { switched });
    expect(recordOf(records, 4)).toEqual({ attempt, switched });
    expect(recordOf(records, 'constructor')).toBeNull();
  });

  it('keeps the latest records of 32 peers', () => {
    const instant = (second: number) => new Date(Date.parse(at) + second * 1000).toISOString();
    const records = Array.from({ length: 40 }, (_, index) => index + 1).reduce<PathRecords>(
      (before, peer) => addRecord(before, peer, { attempt: { ...attempt, at: instant(peer) } }),
      {},
    );
    expect(Object.keys(records).map(Number)).toEqual(Array.from({ length: 32 }, (_, index) => index + 9));
  });
});
