import { expect, it } from 'vitest';
import { isTakenByTunnel, type KernelRoute } from '../../../src/core/host-state/kernel-route.ts';
import { address } from '../samples.ts';

const by = (link: string, local = false): KernelRoute => ({
  ...{ link, local, source: null, gateway: null, table: 'main', prefix: null, protocol: 'static' },
});
const none: KernelRoute = { link: null, why: 'none' };

it.each<[string, route: KernelRoute, outside: KernelRoute, isTaken: boolean]>([
  ['into the tunnel instead of by another interface', by('cpn0'), by('eth0'), true],
  ['to an address of this host, which leave by no interface', by('cpn0', true), by('eth0'), false],
  ['by another interface', by('eth0'), by('eth0'), false],
  ['by another interface than without the tunnel', by('eth1'), by('eth0'), false],
  ['into the tunnel, which also has them without its rules', by('cpn0'), by('cpn0'), false],
  ['into the tunnel, without which they have no route', by('cpn0'), none, false],
  ['nowhere', none, by('eth0'), false],
])('replies that go %s: taken by the full tunnel, or not', (_, route, outside, isTaken) => {
  expect(isTakenByTunnel({ from: address('203.0.113.22'), route, outside }, 'cpn0')).toBe(isTaken);
});
