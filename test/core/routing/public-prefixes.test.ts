import { describe, expect, it } from 'vitest';
import { findRefusal, type RouteConstraints } from '../../../src/core/routing/guard.ts';
import { prefix, usualConstraints } from '../samples.ts';

const on = (changes: Partial<RouteConstraints>): RouteConstraints => ({ ...usualConstraints, ...changes });

describe('public ranges that are the default route in pieces', () => {
  const judge = (routes: readonly string[], changes: Partial<RouteConstraints> = {}) => {
    const around = on({ advertised: routes.map(prefix), ...changes });
    return new Map(routes.map((each) => [each, findRefusal(prefix(each), around)]));
  };
  const blocks = (count: number) => Array.from({ length: count }, (_, index) => `${20 + index}.0.0.0/8`);
  const pieces = [
    ...['1.0.0.0/8', '2.0.0.0/7', '4.0.0.0/6', '8.0.0.0/7', '11.0.0.0/8', '12.0.0.0/6', '16.0.0.0/4', '32.0.0.0/3'],
    ...['64.0.0.0/3', '96.0.0.0/4', '128.0.0.0/3', '160.0.0.0/5', '172.0.0.0/6', '176.0.0.0/4', '208.0.0.0/4'],
  ];

  it('are refused together, in any order, and nothing private with them', () => {
    const routes = [...pieces, '192.168.50.0/24', '10.0.0.0/9', 'fd00::/8', '2001:db8::/32'];
    for (const order of [routes, routes.toReversed()]) {
      const reasons = judge(order);
      for (const each of pieces)
        expect(reasons.get(each)).toBe(
          "is one of the network's public ranges, which are 85 % of the IPv4 internet: more than 6 % counts as the default route",
        );
      for (const each of routes.slice(pieces.length)) expect(reasons.get(each)).toBeNull();
    }
  });

  it.each([
    ['thirteen blocks of /8, as the largest holder has', blocks(13), null],
    ['one more', blocks(14), /are 7 % of/],
    ['the same many times over', [...blocks(13), '20.0.0.0/9', '20.1.0.0/16', '20.0.0.0/8'], null],
    ['one range alone', ['16.0.0.0/4'], /are 8 % of/],
    ['all of IPv6', ['2000::/3'], /are 100 % of the IPv6/],
    ['the IPv6 of a continent', ['2a00::/12'], /are 13 % of the IPv6/],
    ['the IPv6 of many providers', ['2a01::/16', '2600:1f00::/24', '2606:4700::/32'], null],
  ])('are judged by their sum: %s', (_, routes, reason) => {
    for (const found of judge(routes).values()) {
      if (reason === null) expect(found).toBeNull();
      else expect(found).toMatch(reason);
    }
  });

  it('do not count where a person lets them through, or where they are the default route itself', () => {
    expect(judge(['0.0.0.0/0', '20.0.0.0/8']).get('20.0.0.0/8')).toBeNull();
    const most = judge(blocks(14), { allowed: [prefix('20.0.0.0/8')] });
    expect([...most.values()]).toEqual(blocks(14).map(() => null));
    const full = judge(['0.0.0.0/0', ...pieces], { allowed: [prefix('0.0.0.0/0'), prefix('16.0.0.0/4')] });
    expect([full.get('0.0.0.0/0'), full.get('16.0.0.0/4')]).toEqual([null, null]);
    expect(full.get('32.0.0.0/3')).toContain('77 %');
  });

  it('may be the range of the network itself, which is refused then', () => {
    const range = prefix('64.0.0.0/4');
    const inside = { ...usualConstraints.tunnelPrefixes, range };
    expect(findRefusal(range, on({ advertised: [range], tunnelPrefixes: inside }))).toMatch(/default route/);
    expect(findRefusal(prefix('64.1.2.3/32'), on({ advertised: [range], tunnelPrefixes: inside }))).toBeNull();
  });
});

it('a wide public range is refused also if the network does not advertise it, and a narrow one counts alone', () => {
  const blocks = Array.from({ length: 14 }, (_, index) => prefix(`${20 + index}.0.0.0/8`));
  const judge = (text: string) => findRefusal(prefix(text), on({ advertised: blocks }));
  expect(judge('16.0.0.0/4')).toMatch(/are 8 % of the IPv4 internet/);
  expect(judge('40.0.0.0/8')).toBeNull();
  expect(judge('20.0.0.0/8')).toMatch(/are 7 % of the IPv4 internet/);
});
