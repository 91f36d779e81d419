import { expect, test } from 'vitest';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { forwardingKey, isForwardingKey, sourceFilterKey } from '../../../src/core/host-state/sysctl-keys.ts';
import { hasPathTo, namePlace } from '../../../src/core/host-state/underlay.ts';
import { address, prefix, underlay } from '../samples.ts';

const far = address('198.51.100.7');
const without = { ...underlay, gateways: [], uplinks: [], connected: [], routed: [] };

const down = { ...underlay, links: underlay.links.map((link) => ({ ...link, isDown: true as const })) };

test.each([
  ['a default route', underlay, far, true],
  ['neither a default route nor a subnet', without, far, false],
  ['a subnet that has it', { ...without, connected: [{ prefix: prefix('198.51.100.0/24'), link: 'eth0' }] }, far, true],
  ['a route to it', { ...without, routed: [{ prefix: prefix('198.51.100.0/24'), link: 'eth1' }] }, far, true],
  [
    'a route that only the kernel reports',
    { ...without, reached: [{ prefix: prefix('198.51.100.0/24'), link: 'eth1' }] },
    far,
    true,
  ],
  [
    'such a route by a link that is down',
    { ...down, uplinks: [], reached: [{ prefix: prefix('198.51.100.0/24'), link: 'eth1' }] },
    far,
    false,
  ],
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
  [
    'a forwarder of its own, and bridges of containers alone',
    {
      ...without,
      links: [{ name: 'br-1', kind: 'bridge' as const, isInternal: true as const }],
      paths: { [far]: 'lo - 127.0.0.1' },
    },
    far,
    false,
  ],
  ['no IPv6 default route', { ...underlay, uplinks6: [] }, address('2001:db8::7'), false],
  ['unknown IPv6 routes', underlay, address('2001:db8::7'), true],
])('a host with %s', (_, underlay, to, has) => {
  expect(hasPathTo(to, underlay)).toBe(has);
});

test.each<[string, Partial<Underlay>, boolean]>([
  ['another gateway', { gateways: [address('203.0.113.253')] }, true],
  ['another address in its subnet', { addresses: [address('203.0.113.23')] }, true],
  ['another subnet at its uplink', { connected: [{ prefix: prefix('203.0.113.0/25'), link: 'eth0' }] }, true],
  ['another path to the control plane', { paths: { [far]: 'eth1 192.0.2.1 192.0.2.7' } }, true],
  ['a cable that is unplugged', { links: [{ name: 'eth0', kind: 'card', isDown: true }] }, true],
  ['an address elsewhere', { addresses: [address('203.0.113.22'), address('172.18.0.1')] }, false],
  [
    'a bridge of containers',
    { connected: [...underlay.connected, { prefix: prefix('172.18.0.0/16'), link: 'br-1' }] },
    false,
  ],
  ['other resolvers', { resolvers: [] }, false],
])('a host is at another place with %s: %s', (_, changes, isOther) => {
  expect(namePlace({ ...underlay, ...changes }) !== namePlace(underlay)).toBe(isOther);
});

test.each(['eth0', 'eth0.7', 'wan.10.20', 'br-lan'])('a sysctl of %s has the dots of the name as slashes', (link) => {
  const words = link.replaceAll('.', '/');
  expect(forwardingKey(link)).toBe(`net.ipv4.conf.${words}.forwarding`);
  expect(sourceFilterKey(link)).toBe(`net.ipv4.conf.${words}.rp_filter`);
  expect([isForwardingKey(forwardingKey(link)), isForwardingKey(sourceFilterKey(link))]).toEqual([true, false]);
});
