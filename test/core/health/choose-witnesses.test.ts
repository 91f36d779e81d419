import { describe, expect, it } from 'vitest';
import type { PathState } from '../../../src/contract/health.ts';
import { chooseWitnesses } from '../../../src/core/health/choose-witnesses.ts';

function host(id: number, paths: Readonly<Record<number, PathState>> = {}) {
  return { id, paths: new Map(Object.entries(paths).map(([to, path]) => [Number(to), path])) };
}

const choose = (peers: readonly number[], hosts: readonly ReturnType<typeof host>[], most = 32) =>
  Object.fromEntries(chooseWitnesses(peers, hosts, most));

describe('chooseWitnesses', () => {
  it('prefers hosts that reach the peer directly, then those with an old session, and takes three', () => {
    const hosts = [host(2), host(3, { 1: 'stale' }), host(4, { 1: 'direct' }), host(5, { 1: 'direct' })];
    expect(choose([1], hosts)).toEqual({ 4: [1], 5: [1], 3: [1] });
  });

  it.each(['relayed', 'never'] as const)('takes no host whose path is %s, where silence proves nothing', (path) => {
    expect(choose([1], [host(2, { 1: path }), host(3)])).toEqual({ 3: [1] });
  });

  it('shares the work, and gives no host more than it takes', () => {
    const hosts = [2, 3, 4, 5, 6, 7].map((id) => host(id));
    expect(choose([1, 8], hosts)).toEqual({ 2: [1], 3: [1], 4: [1], 5: [8], 6: [8], 7: [8] });
    expect(choose([1, 8, 9], [host(2)], 2)).toEqual({ 2: [1, 8] });
  });

  it('has no host probe itself', () => {
    expect(choose([1], [host(1)])).toEqual({});
  });
});
