import { expect, it } from 'vitest';
import { parseShown } from '../../../src/host/linux/ip/show.ts';
import { findOnLink, findRoutes } from '../../../src/host/linux/link-routes.ts';

const links = JSON.stringify([
  { ifindex: 2, ifname: 'cpn0', flags: ['UP'], mtu: 1420, addr_info: [{ local: '10.77.0.5', prefixlen: 24 }] },
]);
const show = (...routes: object[]) => parseShown(`${links}\n${JSON.stringify(routes)}\n[]\n[]\n`);
const into = { dev: 'cpn0', table: '254', protocol: '3' };

it('says of a route into the interface what a plain one has not', () => {
  const shown = show(
    { ...into, dst: '10.1.0.0/16' },
    { ...into, dst: '10.2.0.0/16', metric: 50, prefsrc: '192.0.2.7' },
    { ...into, dst: '10.3.0.0/16', tos: '0x10', prefsrc: '10.77.0.5' },
    { dst: '10.4.0.0/16', table: '254', protocol: '3', nexthops: [{ dev: 'cpn0' }, { dev: 'eth0' }] },
  );
  const plain = { table: 'main', protocol: 'boot', metric: 0 };
  expect(findRoutes(shown, 'cpn0')).toEqual([
    { ...plain, prefix: '10.1.0.0/16' },
    { ...plain, prefix: '10.2.0.0/16', metric: 50, deviation: 'src 192.0.2.7' },
    { ...plain, prefix: '10.3.0.0/16', tos: '0x10' },
    { ...plain, prefix: '10.4.0.0/16', deviation: 'shared with eth0' },
  ]);
});

it('knows which of several routes to one prefix comes first, whatever interface it leads into', () => {
  const shown = show(
    { dst: 'default', gateway: '192.0.2.1', dev: 'eth0', table: '254', protocol: '16', metric: 100 },
    { ...into, dst: 'default' },
    { ...into, dst: 'default', metric: 200 },
    { ...into, dst: 'default', metric: 200, table: '77' },
    // For one type of service alone, which is another lookup.
    { ...into, dst: 'default', metric: 300, tos: '0x10' },
    { ...into, dst: '10.9.0.0/16', metric: 5 },
    { dst: '10.9.0.0/16', dev: 'eth0', table: '254', protocol: '4', metric: 1, tos: '0x10' },
  );
  expect(findRoutes(shown, 'cpn0').map(({ table, isOutdone }) => [table, isOutdone])).toEqual([
    ['main', undefined],
    ['main', true],
    ['77', undefined],
    ['main', undefined],
    ['main', undefined],
  ]);
});

it('takes a route with another source for none to the range of the address', () => {
  const range = { ...into, dst: '10.77.0.0/24' };
  expect(findOnLink(show({ ...range, protocol: '2', prefsrc: '10.77.0.5' }), 'cpn0')).toEqual(['10.77.0.0/24']);
  expect(findOnLink(show(range), 'cpn0')).toEqual(['10.77.0.0/24']);
  expect(findOnLink(show({ ...range, prefsrc: '192.0.2.7' }), 'cpn0')).toEqual([]);
  // In a VRF, the kernel's own route is in another table; that of another program there is not its.
  expect(findOnLink(show({ ...range, protocol: '2', table: '1001' }), 'cpn0')).toEqual(['10.77.0.0/24']);
  expect(findOnLink(show({ ...range, table: '1001' }), 'cpn0')).toEqual([]);
  expect(findOnLink(show({ ...range, dev: 'eth0' }), 'cpn0')).toEqual([]);
});
