import { expect, it } from 'vitest';
import type { PathState } from '../../../src/contract/health.ts';
import { findObservedPaths } from '../../../src/core/health/observed-path.ts';

const reporters = (paths: readonly PathState[], state: 'online' | 'offline' | 'unknown' = 'online') =>
  paths.map((path) => ({ state, paths: [{ peer: 7, path }] }));

it.each<[readonly PathState[], PathState]>([
  [['direct', 'relayed', 'relayed'], 'relayed'],
  [['relayed', 'direct'], 'direct'],
  [['down', 'direct', 'down'], 'down'],
  [['never', 'never', 'never', 'relayed'], 'relayed'],
  [['never', 'stale', 'never'], 'never'],
])('of hosts that report %j the path is %s', (paths, path) => {
  expect(findObservedPaths(reporters(paths)).get('7')).toBe(path);
});

it('a host that is not online reports what was', () => {
  const former = [...reporters(['down', 'down'], 'offline'), ...reporters(['down'], 'unknown')];
  expect(findObservedPaths([...former, ...reporters(['direct'])]).get('7')).toBe('direct');
  expect(findObservedPaths(former).size).toBe(0);
});
