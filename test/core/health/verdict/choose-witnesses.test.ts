import { describe, expect, it } from 'vitest';
import type { PathState } from '../../../../src/contract/health.ts';
import { chooseWitnesses } from '../../../../src/core/health/verdict/choose-witnesses.ts';

function host(id: number, paths: Readonly<Record<number, PathState>> = {}) {
  return { id, paths: new Map(Object.entries(paths).map(([to, path]) => [Number(to), path])) };
}

type Host = ReturnType<typeof host>;

const pick = (choice: (below: number) => number) => (below: number) => {
  // As randomInt() of Node does.
  if (below < 1) throw new RangeError('nothing to choose from');
  return choice(below);
};
const firstOf = pick(() => 0);
const lastOf = pick((below) => below - 1);
const lost = (...ids: number[]) => ids.map((id) => host(id));
const choose = (peers: readonly Host[], hosts: readonly Host[], { most = 32, random = firstOf } = {}) =>
  Object.fromEntries(chooseWitnesses(peers, hosts, most, random));

describe('chooseWitnesses', () => {
  it('takes a host that reaches the peer directly, the one of those with a path that enrolled first, and any other', () => {
    const hosts = [host(2), host(3, { 1: 'stale' }), host(4, { 1: 'direct' }), host(5, { 1: 'direct' }), host(6)];
    expect(choose(lost(1), hosts)).toEqual({ 4: [1], 3: [1], 2: [1] });
    expect(choose(lost(1), hosts, { random: lastOf })).toEqual({ 4: [1], 3: [1], 6: [1] });
  });

  it('prefers a host that the peer reported to reach directly too', () => {
    const hosts = [host(2), host(3, { 1: 'down' }), host(4, { 1: 'direct' }), host(5, { 1: 'direct' }), host(6)];
    expect(choose([host(1, { 5: 'direct' })], hosts, { random: lastOf })).toEqual({ 5: [1], 3: [1], 6: [1] });
  });

  it.each(['stale', 'down', 'direct'] as const)(
    'takes a host that enrolled earlier, where three later ones claim the best paths and its path is %s',
    (path) => {
      const honest = [2, 3, 4, 5, 6].map((id) => host(id, { 1: path }));
      const liars = [11, 12, 13].map((id) => host(id, { 1: 'direct' }));
      // The peer reaches the liars directly too: they send to it all the time.
      const peer = host(1, { 11: 'direct', 12: 'direct', 13: 'direct' });
      for (const random of [firstOf, lastOf]) {
        const asked = Object.keys(choose([peer], [...honest, ...liars], { random })).map(Number);
        expect(asked).toHaveLength(3);
        expect(asked).toContain(2);
      }
    },
  );

  it('takes all of three hosts or fewer', () => {
    expect(choose(lost(1), [host(2), host(3, { 1: 'down' }), host(4)])).toEqual({ 2: [1], 3: [1], 4: [1] });
    expect(choose(lost(1), [host(2)])).toEqual({ 2: [1] });
  });

  it.each(['relayed', 'never'] as const)('takes no host whose path is %s, where silence proves nothing', (path) => {
    expect(choose(lost(1), [host(2, { 1: path }), host(3)])).toEqual({ 3: [1] });
  });

  it('shares the work, and gives no host more than it takes', () => {
    const hosts = [2, 3, 4, 5].map((id) => host(id, { 1: 'direct', 8: 'direct' }));
    expect(choose(lost(1, 8), hosts, { random: lastOf })).toEqual({ 2: [1, 8], 3: [1], 4: [8], 5: [1, 8] });
    expect(choose(lost(1, 8, 9), [host(2)], { most: 2 })).toEqual({ 2: [1, 8] });
  });

  it('has no host probe itself', () => {
    expect(choose(lost(1), [host(1)])).toEqual({});
  });
});
