import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Peer } from '../../../src/contract/peer.ts';
import { SerializedNetwork } from '../../../src/control-plane/push/serialized-network.ts';

const peer = (id: number, name: string): Peer => ({
  ...{ id, name, peer_type: 'origin', public_key: `${'A'.repeat(43)}=`, address: '10.77.0.2', endpoint: null },
  created_at: '2030-01-01T00:00:00.000Z',
});
const summary = (revision: number) => ({
  ...{ id: 1, name: 'office "ü"', description: '', private_cidr: '10.77.0.0/24', routes: [], revision },
  ...{ vpn_type: 'wireguard' as const, etag: `"${revision}-nonce"` },
});
const read = (network: SerializedNetwork) => JSON.parse(String(network.bytes())).data;

test('an updated network has the same JSON as one that is serialized from scratch', () => {
  const step = fc.record({ changed: fc.array(fc.nat(400)), removed: fc.array(fc.nat(400)), added: fc.nat(200) });
  fc.assert(
    fc.property(fc.nat(400), fc.array(step, { maxLength: 6 }), (count, steps) => {
      const there = new Map(Array.from({ length: count }, (_, id) => [id + 1, peer(id + 1, 'first')]));
      const network = new SerializedNetwork(summary(1), [...there.values()]);
      let last = count;
      for (const [index, { changed, removed, added }] of steps.entries()) {
        const revision = index + 2;
        const gone = removed.filter((id) => there.delete(id));
        const fresh = Array.from({ length: added }, () => peer(++last, 'new'));
        const other = [...new Set(changed)].filter((id) => there.has(id)).map((id) => peer(id, `in ${revision}`));
        for (const each of [...other, ...fresh]) there.set(each.id, each);
        network.update(summary(revision), [...other, ...fresh], gone);
        expect(read(network)).toEqual({ ...summary(revision), peers: [...there.values()] });
      }
      const scratch = new SerializedNetwork(summary(steps.length + 1), [...there.values()]);
      expect(network.bytes().equals(scratch.bytes())).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test('a closed network keeps its list of rules until it gets another, and an open one has none', () => {
  const rules = [{ name: 'web', from: ['peer:1'], to: ['any'], protocol: 'tcp' as const, ports: ['443'] }];
  const network = new SerializedNetwork({ ...summary(1), rules: { mode: 'closed', rules } }, [peer(1, 'first')]);
  expect(read(network).rules).toEqual({ mode: 'closed', rules });
  const required = { mode: 'closed', require_enforcement: true } as const;
  network.update({ ...summary(2), rules: required }, [], []);
  expect(read(network)).toMatchObject({ revision: 2, rules: { ...required, rules }, peers: [{ id: 1 }] });
  network.update({ ...summary(3), rules: { mode: 'closed', rules: [] } }, [], []);
  expect(read(network).rules).toEqual({ mode: 'closed', rules: [] });
  network.update(summary(4), [], []);
  expect(read(network)).not.toHaveProperty('rules');
});

test('a peer that breaks the contract is not serialized, nor is a field outside it', () => {
  const wrong = { ...peer(1, 'edge'), address: 'nowhere', token_hash: 'secret' };
  expect(() => new SerializedNetwork(summary(1), [wrong])).toThrow(/address/);
  const network = new SerializedNetwork(summary(1), [{ ...wrong, address: '10.77.0.2' }]);
  expect(String(network.bytes())).not.toContain('secret');
});
