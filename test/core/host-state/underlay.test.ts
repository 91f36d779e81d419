import { expect, test } from 'vitest';
import { hasPathTo } from '../../../src/core/host-state/underlay.ts';
import { address, prefix, underlay } from '../samples.ts';

const far = address('198.51.100.7');
const without = { ...underlay, gateways: [], uplinks: [], connected: [], routed: [] };

const down = { ...underlay, links: underlay.links.map((link) => ({ ...link, isDown: true as const })) };

test.each([
  ['a default route', underlay, far, true],
  ['neither a default route nor a subnet', without, far, false],
  ['a subnet that has it', { ...without, connected: [{ prefix: prefix('198.51.100.0/24'), link: 'eth0' }] }, far, true],
  ['a route to it', { ...without, routed: [{ prefix: prefix('198.51.100.0/24'), link: 'eth1' }] }, far, true],
  ['other subnets', { ...without, connected: [{ prefix: prefix('10.1.0.0/16'), link: 'eth0' }] }, far, false],
  ['a default route in another table', { ...without, paths: { [far]: 'eth1 192.0.2.1 192.0.2.7' } }, far, true],
  ['a control plane of its own', { ...without, paths: { [far]: 'lo - 127.0.0.1' } }, far, true],
  [
    'a forwarder of its own, and no live link',
    { ...down, uplinks: [], paths: { [far]: 'lo - 127.0.0.1' } },
    far,
    false,
  ],
  ['a default route by a link that is down', down, far, false],
  ['the subnet of a link that is down', { ...down, uplinks: [] }, address('203.0.113.7'), false],
  ['the subnet of a live link', { ...underlay, uplinks: [] }, address('203.0.113.7'), true],
  ['a refusal of the kernel', { ...without, paths: { [far]: 'Network is unreachable' } }, far, false],
  ['a path through a tunnel alone', { ...without, paths: { [far]: 'cpn0 - 10.77.0.3' } }, far, false],
  ['no IPv6 default route', { ...underlay, uplinks6: [] }, address('2001:db8::7'), false],
  ['unknown IPv6 routes', underlay, address('2001:db8::7'), true],
])('a host with %s', (_, underlay, to, has) => {
  expect(hasPathTo(to, underlay)).toBe(has);
});
