import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RouteCache } from '../../../src/host/linux/route-cache.ts';
import { prefix } from '../../core/samples.ts';

const cacheOf = (...prefixes: string[]) => {
  const cache = new RouteCache();
  cache.concern('cpn0', prefixes.map(prefix));
  return cache;
};
const office = cacheOf('10.77.0.0/24', '192.168.50.0/24', '203.0.113.1/32');

describe('a change of a route', () => {
  it.each([
    'default via 203.0.113.254 dev eth0 proto bgp ',
    'Deleted default via 203.0.113.254 dev eth0 ',
    '128.0.0.0/1 dev tun0 ',
    '192.168.50.0/24 via 10.0.0.1 dev eth0 proto static ',
    'Deleted 192.168.50.128/25 via 10.0.0.1 dev eth0 proto bgp ',
    '192.168.0.0/16 via 10.0.0.1 dev eth0 proto bgp ',
    'unreachable 192.168.50.7 proto static ',
    '203.0.113.0/24 via 10.0.0.1 dev eth0 proto bgp ',
    '198.51.100.0/24 dev cpn0 table 77 proto bgp ',
    'throw 10.9.0.0/16 ',
  ])('matters where it may change what the network needs: %j', (line) => {
    expect(office.isRelevant(line)).toBe(true);
  });

  it.each([
    '20.0.1.0/24 via 10.0.0.1 dev eth0 proto bgp ',
    'Deleted 20.0.1.0/24 via 10.0.0.1 dev eth0 proto bgp ',
    '172.18.0.0/16 dev br-1 proto kernel scope link src 172.18.0.1 ',
    '2001:db8::/32 via fe80::1 dev eth0 proto bgp metric 1024 ',
    'blackhole 20.0.2.0/24 proto bird ',
    '203.0.113.9 via 10.0.0.1 dev eth0 proto bgp ',
  ])('does not matter elsewhere: %j', (line) => {
    expect(office.isRelevant(line)).toBe(false);
  });

  it.each([
    '3: eth0: <BROADCAST> mtu 1500 ',
    '3: eth0    inet 10.9.0.1/24 ',
    '32765:\tfrom all lookup 77',
    'inet eth0 forwarding on ',
  ])('is not what this line reports, which matters: %j', (line) => {
    expect(office.isRelevant(line)).toBe(true);
  });

  it('matters to a full tunnel wherever it is, unless a routing daemon made it', () => {
    const full = cacheOf('10.77.0.0/24', '0.0.0.0/0');
    expect(full.isRelevant('20.0.1.0/24 via 10.0.0.1 dev eth0 proto dhcp ')).toBe(true);
    expect(full.isRelevant('20.0.1.0/24 via 10.0.0.1 dev eth0 ')).toBe(true);
    expect(full.isRelevant('20.0.1.0/24 via 10.0.0.1 dev eth0 proto bgp ')).toBe(false);
  });

  it('matters before any network is observed', () => {
    expect(new RouteCache().isRelevant('20.0.1.0/24 via 10.0.0.1 dev eth0 proto bgp ')).toBe(true);
  });
});

describe('a listing', () => {
  const listing = { four: [], six: [], isWhole: false };

  it('is used again while events are followed, until one of them matters', async () => {
    const cache = cacheOf('10.77.0.0/24');
    let reads = 0;
    const read = async () => {
      reads += 1;
      return listing;
    };
    await cache.list('cpn0', read);
    await cache.list('cpn0', read);
    expect(reads).toBe(2);
    cache.follow(true);
    await cache.list('cpn0', read);
    await cache.list('cpn0', read);
    expect(reads).toBe(3);
    cache.invalidate();
    await cache.list('cpn0', read);
    expect(reads).toBe(4);
  });

  it('that was read while an event came is not used again: it may lack the change', async () => {
    const cache = cacheOf('10.77.0.0/24');
    cache.follow(true);
    const held = Promise.withResolvers<typeof listing>();
    const former = cache.list('cpn0', () => held.promise);
    cache.invalidate();
    held.resolve(listing);
    await former;
    const newer = { ...listing, isWhole: true };
    expect(await cache.list('cpn0', async () => newer)).toBe(newer);
  });
});

describe('with time', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('a listing is read again after a minute, whatever the events report: they are only hints', async () => {
    const cache = cacheOf('10.77.0.0/24');
    cache.follow(true);
    let reads = 0;
    const list = () =>
      cache.list('cpn0', async () => {
        reads += 1;
        return { four: [], six: [], isWhole: false };
      });
    await list();
    vi.advanceTimersByTime(59_999);
    await list();
    expect(reads).toBe(1);
    vi.advanceTimersByTime(1);
    await list();
    expect(reads).toBe(2);
  });

  it('a host with large tables is read as a whole after ten minutes, and at once where it is small', () => {
    const cache = new RouteCache();
    expect(cache.isLarge).toBe(false);
    cache.noteSize(true);
    vi.advanceTimersByTime(599_999);
    expect(cache.isLarge).toBe(true);
    vi.advanceTimersByTime(1);
    expect(cache.isLarge).toBe(false);
    // It was read, and is large still.
    cache.noteSize(true);
    expect(cache.isLarge).toBe(true);
    cache.noteSize(false);
    expect(cache.isLarge).toBe(false);
  });
});
