import { expect, it } from 'vitest';
import { checkNat } from '../../../src/core/doctor/check-nat.ts';
import type { NatLook } from '../../../src/core/paths/nat-look.ts';
import { type AttemptRecord, addRecord } from '../../../src/core/paths/path-record.ts';
import { bare, desireFor, dialled, network, peer } from '../samples.ts';

const self = peer(3);
const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const judge = (peers = [connector, self, peer(4)], own?: NatLook, observed = ['203.0.113.1:4711']) => {
  const map = network(peers, { relay: 1 });
  const attempt: AttemptRecord | null =
    own === undefined
      ? null
      : { at: '2026-11-27T12:00:00.000Z', outcome: 'failed', tried: [], nats: { own, peer: 'unknown' }, observed };
  const before = attempt && {
    ...attempt,
    at: '2026-11-27T11:00:00.000Z',
    nats: { own: 'none', peer: 'none' } as const,
  };
  const records = addRecord(addRecord({}, 4, { attempt: before }), 5, { attempt });
  return checkNat({ map, self, enabled: true, desired: desireFor(self, map), actual: bare }, records);
};

it('the NAT is unknown without a connector that peers dial, and before an attempt', () => {
  expect(judge([self, peer(4), peer(1, { type: 'connector' })])).toMatchObject([
    { verdict: 'note', found: 'is unknown: the network has no connector that observes it' },
  ]);
  expect(judge()).toMatchObject([{ verdict: 'ok', found: expect.stringMatching(/^is unknown until /) }]);
});

it('the latest attempt shows the kind of NAT, and what connectors see', () => {
  expect(judge(undefined, 'port-kept')).toMatchObject([
    { verdict: 'ok', found: 'a NAT that keeps the port; connectors see 203.0.113.1:4711' },
  ]);
  expect(judge(undefined, 'symmetric', ['203.0.113.1:1', '203.0.113.1:2'])).toMatchObject([
    {
      verdict: 'note',
      found: expect.stringMatching(/^a symmetric NAT, .*; connectors see 203\.0\.113\.1:1 and 203\.0\.113\.1:2$/),
      remedy: expect.stringContaining('--endpoint'),
    },
  ]);
});

it('the NAT does not matter to a host that does not try direct paths', () => {
  const map = network([connector, self, peer(4)], { relay: 1 });
  const [finding] = checkNat({ map, self, enabled: true, desired: desireFor(self, map), actual: bare }, null);
  expect(finding).toMatchObject({ verdict: 'ok', found: 'does not matter: direct paths are off (--no-direct-paths)' });
});

it('a host that reaches no peer through a relay has no such finding', () => {
  expect(judge([connector, self, peer(4, { endpoint: dialled(4) })])).toEqual([]);
});
