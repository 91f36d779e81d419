import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatEndpoint } from '../../../src/core/net/endpoint.ts';
import { listKinds, scheduleCandidates } from '../../../src/core/paths/schedule-candidates.ts';
import { address, prefix, underlay } from '../samples.ts';

const limits = {
  underlay: { ...underlay, uplinks6: ['eth0'] },
  tunnel: { range: prefix('10.77.0.0/24'), routes: [prefix('192.168.50.0/24'), prefix('0.0.0.0/0')] },
};
const schedule = (...endpoints: string[]) => scheduleCandidates({ endpoints }, limits);
const slots = (...endpoints: string[]) =>
  schedule(...endpoints).candidates.map(({ endpoint, at }) => [formatEndpoint(endpoint), at]);

describe('a schedule of candidates', () => {
  it('refuses an endpoint in an overlay, whose packets may travel in the tunnel itself', () => {
    const around = {
      ...limits.underlay,
      connected: [...underlay.connected, { prefix: prefix('172.30.0.0/24'), link: 'vx0' }],
      links: [...underlay.links, { name: 'vx0', kind: 'other', isOverlay: true } as const],
    };
    const { candidates, refused } = scheduleCandidates(
      { endpoints: ['172.30.0.2:1'] },
      { ...limits, underlay: around },
    );
    expect([candidates, refused.map(formatEndpoint)]).toEqual([[], ['172.30.0.2:1']]);
  });

  it('tries observed endpoints at the same moments on both sides, whatever else there is', () => {
    expect(slots('203.0.113.9:1')).toEqual([['203.0.113.9:1', 800]]);
    expect(slots('192.168.1.9:1', '[2001:db8::9]:1', '203.0.113.9:1', '203.0.113.10:1')).toEqual([
      ['192.168.1.9:1', 0],
      ['[2001:db8::9]:1', 300],
      ['203.0.113.9:1', 800],
      ['203.0.113.10:1', 1_900],
    ]);
  });

  it('leaves no time for kinds that neither side has', () => {
    const kinds = listKinds(['203.0.113.9:1', '[2001:db8::9]:1']);
    expect([kinds, listKinds(['host.example:1'])]).toEqual([['ipv6', 'observed'], []]);
    const times = (endpoints: string[]) =>
      scheduleCandidates({ endpoints, kinds }, limits).candidates.map(({ at }) => at);
    expect([times(['203.0.113.9:1']), times(['[2001:db8::9]:1', '203.0.113.9:1'])]).toEqual([[500], [0, 500]]);
    // One of a kind that the message does not name.
    expect(times(['192.168.1.9:1', '203.0.113.9:1'])).toEqual([1_600, 500].toSorted((a, b) => a - b));
  });

  it('tries the LAN candidates that do not fit into their window after all others', () => {
    const lan = [1, 2, 3, 4].map((each) => `192.168.1.${each}:1`);
    expect(slots(...lan, '203.0.113.9:1').map(([, at]) => at)).toEqual([0, 100, 200, 800, 1_900]);
    expect(slots(...lan, '203.0.113.9:1').at(-1)?.[0]).toBe('192.168.1.4:1');
  });

  it.each([
    ['loopback', '127.0.0.1:1'],
    ['multicast', '224.0.0.1:1'],
    ['link-local', '[fe80::1]:1'],
    ['in the range of the network', '10.77.0.9:1'],
    ['behind a route into the tunnel', '192.168.50.9:1'],
    ['of this host itself', `${underlay.addresses[0]}:1`],
    ['of the router of this host', `${underlay.gateways[0]}:1`],
  ])('refuses an endpoint that is %s, and keeps the moments of the others', (_, refused) => {
    const { candidates, refused: left } = schedule(refused, '203.0.113.9:1');
    expect(left.map(formatEndpoint)).toEqual([refused]);
    expect(candidates.map(({ endpoint }) => endpoint.host)).toEqual([address('203.0.113.9')]);
  });

  it('refuses an address to which the host has no route', () => {
    const without = { ...limits, underlay: { ...underlay, uplinks6: [] } };
    expect(scheduleCandidates({ endpoints: ['[2001:db8::9]:1'] }, without).candidates).toEqual([]);
  });

  it('ends each candidate within 1.5 s, and all within 12 s, one after another', () => {
    const endpoints = fc
      .constantFrom('192.168.1', '203.0.113', '2001:db8::')
      .chain((start) =>
        fc
          .integer({ min: 1, max: 250 })
          .map((end) => (start.includes(':') ? `[${start}${end}]:1` : `${start}.${end}:1`)),
      );
    fc.assert(
      fc.property(fc.uniqueArray(endpoints, { maxLength: 12 }), (given) => {
        const { candidates, refused } = schedule(...given);
        expect(candidates.length + refused.length).toBe(Math.min(8, given.length));
        let last = 0;
        for (const { at, until } of candidates) {
          expect(at).toBeGreaterThanOrEqual(last);
          expect(until - at).toBeLessThanOrEqual(1_500);
          last = until;
        }
        expect(last).toBeLessThanOrEqual(12_000);
      }),
    );
  });
});
