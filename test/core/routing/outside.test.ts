import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { remedyOutside } from '../../../src/core/explain/find-target.ts';
import type { RoutedPrefix, Underlay } from '../../../src/core/host-state/actual.ts';
import { rulePriority } from '../../../src/core/host-state/marks.ts';
import { formatRule } from '../../../src/core/host-state/policy-rule.ts';
import { findHollowing, listOutside, strictlyOutside } from '../../../src/core/routing/outside.ts';
import { findOutsideRoute, reportOutside } from '../../../src/core/routing/outside-report.ts';
import { rulePairOf } from '../../../src/core/routing/route-table.ts';
import { findAcceptedTables, strictRules } from '../../../src/core/routing/strict-rules.ts';
import { tunnelRules } from '../../../src/core/routing/tunnel-rules.ts';
import { address, prefix, prefixes, underlay } from '../samples.ts';

const rogue = address('192.168.1.66');
const by = (text: string, changes: Partial<RoutedPrefix> = {}): RoutedPrefix => ({
  ...{ prefix: prefix(text), link: 'eth0', gateway: rogue, protocol: 'dhcp' },
  ...changes,
});
const onLink = (text: string, protocol = 'dhcp'): RoutedPrefix => ({ prefix: prefix(text), link: 'eth0', protocol });

/** A laptop in a private LAN. */
function laptop(routed: readonly RoutedPrefix[], connected: readonly string[] = []): Underlay {
  return {
    ...underlay,
    addresses: [address('192.168.1.22')],
    gateways: [address('192.168.1.1')],
    connected: ['192.168.1.0/24', ...connected].map((text) => ({ prefix: prefix(text), link: 'eth0' })),
    routed,
  };
}

const hollowing = (underlay: Underlay) =>
  [...findHollowing(listOutside(underlay))].map((route) => String(route.prefix));
const strictly = (underlay: Underlay) => strictlyOutside(underlay).map(String);

describe('what hollows a full tunnel out', () => {
  it.each([
    ['nothing of a private LAN', laptop([]), []],
    [
      'both halves of the internet, by any program',
      laptop([by('0.0.0.0/1', { protocol: 'boot' }), by('128.0.0.0/1', { protocol: 'boot' })]),
      ['0.0.0.0/1', '128.0.0.0/1'],
    ],
    ['a public range of DHCP', laptop([by('8.8.8.0/24')]), ['8.8.8.0/24']],
    ['such a range on the link', laptop([onLink('8.8.8.0/24')]), ['8.8.8.0/24']],
    ['a subnet as wide as a /8', laptop([], ['8.0.0.0/8']), ['8.0.0.0/8']],
    [
      'many ranges that are a /8 together',
      laptop(['20', '21'].flatMap((n) => [by(`${n}.0.0.0/9`, { protocol: 'static' })])),
      ['20.0.0.0/9', '21.0.0.0/9'],
    ],
    ['a public range of router advertisements', laptop([by('8.8.8.0/24', { protocol: 'ra' })]), ['8.8.8.0/24']],
    [
      'ranges just short of a /8',
      laptop([by('20.0.0.0/9', { protocol: 'static' }), by('20.128.0.0/10', { protocol: 'static' })]),
      [],
    ],
    ['no private range', laptop([by('10.0.0.0/8'), by('172.16.0.0/12')]), []],
    [
      'no host route, as DHCP clients make to servers of names and time',
      laptop([by('8.8.8.8/32'), by('169.254.169.254/32')]),
      [],
    ],
    ['no static route to one public range', laptop([by('8.8.8.0/24', { protocol: 'static' })]), []],
    ['no subnet of a server on the internet', laptop([], ['203.0.113.0/24']), []],
    [
      'nothing of IPv6, for which there are rules of its own',
      laptop([by('2000::/3', { protocol: 'ra' })], ['2001:db8::/32']),
      [],
    ],
  ])('is %s', (_what, underlay, expected) => {
    expect(hollowing(underlay)).toEqual(expected);
  });

  it('is no route of our own networks', () => {
    const ours = {
      ...laptop([by('20.0.0.0/7', { protocol: '157' }), by('22.0.0.0/7', { link: 'cpn1' })]),
      tunnels: ['cpn1'],
    };
    expect(listOutside(ours).map((route) => route.prefix)).toEqual(['192.168.1.0/24']);
  });
});

describe('what a strict tunnel leaves outside', () => {
  it.each([
    [
      'the LAN and the gateway in it',
      laptop([by('0.0.0.0/1'), by('10.0.0.0/8')]),
      ['192.168.1.0/24', '192.168.1.1/32'],
    ],
    [
      'a gateway outside the LAN',
      { ...laptop([onLink('51.38.1.1/32')]), gateways: [address('51.38.1.1')] },
      ['51.38.1.1/32', '192.168.1.0/24'],
    ],
    [
      'private subnets up to a /16',
      laptop([], ['172.17.0.0/16', '10.0.0.0/15', '8.8.8.0/24']),
      ['172.17.0.0/16', '192.168.1.0/24', '192.168.1.1/32'],
    ],
    [
      'containers of this host',
      laptop([onLink('10.244.1.7/32', 'boot')]),
      ['10.244.1.7/32', '192.168.1.0/24', '192.168.1.1/32'],
    ],
    [
      'no on-link routes that are more than a /16 together',
      laptop([onLink('10.1.0.0/16'), onLink('10.2.0.0/16')]),
      ['192.168.1.0/24', '192.168.1.1/32'],
    ],
    [
      'the ranges of our other networks',
      { ...laptop([]), connected: [{ prefix: prefix('10.8.0.0/13'), link: 'cpn1' }], tunnels: ['cpn1'] },
      ['10.8.0.0/13', '192.168.1.1/32'],
    ],
    [
      'a public gateway that is an address of a subnet',
      { ...laptop([], ['51.38.1.1/32']), gateways: [address('51.38.1.1')] },
      ['51.38.1.1/32', '192.168.1.0/24'],
    ],
    ['no private prefix behind another router', laptop([by('172.16.5.0/24')]), ['192.168.1.0/24', '192.168.1.1/32']],
    [
      'on-link routes that are a /16 together, and no more than 256',
      laptop([onLink('172.16.0.0/17'), onLink('172.16.128.0/17')]),
      ['172.16.0.0/17', '172.16.128.0/17', '192.168.1.0/24', '192.168.1.1/32'],
    ],
    [
      'the routes of our own networks in the main table',
      laptop([by('20.0.0.0/8', { protocol: '157', link: 'cpn1' })]),
      ['20.0.0.0/8', '192.168.1.0/24', '192.168.1.1/32'],
    ],
    ['nothing of IPv6', laptop([onLink('fd00::/64')], ['fd01::/64']), ['192.168.1.0/24', '192.168.1.1/32']],
    [
      'no gateway and no other network of IPv6',
      {
        ...laptop([onLink('fd02::/64', '157')], ['fd01::/64']),
        gateways: [address('192.168.1.1'), address('fe80::1')],
        tunnels: ['cpn1'],
        connected: ['192.168.1.0/24', 'fd03::/64'].map((text) => ({
          ...{ prefix: prefix(text), link: text.startsWith('fd') ? 'cpn1' : 'eth0' },
        })),
      },
      ['192.168.1.0/24', '192.168.1.1/32'],
    ],
  ])('is %s', (_what, underlay, expected) => {
    expect(strictly(underlay)).toEqual(expected);
  });

  it('is never public or wider than a /16 but for a gateway, whatever routes there are', () => {
    fc.assert(
      fc.property(fc.array(prefixes), fc.array(prefixes), (routed, connected) => {
        const underlay = laptop(
          routed.map((each) => onLink(each)),
          connected,
        );
        for (const each of strictly(underlay))
          expect(each).toMatch(/^(10\.|172\.|192\.168\.|100\.).*\/(1[6-9]|2\d|3[0-2])$/);
      }),
    );
  });
});

describe('the rules of a strict tunnel', () => {
  const api = [address('198.51.100.80')];
  const rules = tunnelRules({ underlay: { ...laptop([]), resolvers: [address('9.9.9.9')] }, api }, false);
  const strict = strictRules(rules, { prefixes: [prefix('192.168.1.0/24')], tables: ['8350', '8351'] });

  it('lead to the main table for the exceptions alone, before any other rule of ours that leads to it', () => {
    expect(strict.map((rule) => `${rule.priority} ${formatRule(rule)}`)).toEqual([
      '31575 from all nop',
      '31462 from 192.168.1.22/32 goto 31575',
      '31463 from all to 198.51.100.80/32 goto 31575',
      '31464 from all to 9.9.9.9/32 goto 31575',
      '31460 from all to 192.168.1.0/24 lookup main suppress_prefixlength 0',
      '31461 from all lookup 8350',
      '31461 from all lookup 8351',
      '31465 not from all fwmark 0x209d lookup 8349',
      '2147483647 not from all fwmark 0x209d lookup 8349',
    ]);
    const before = strict.filter(({ priority }) => priority < rulePriority.end).map(({ priority }) => priority);
    expect(Math.max(...before)).toBeLessThan(rulePairOf('8350')[0].priority);
  });

  it('lead to the tables of all networks of this host, and not to those that only they lead to', () => {
    expect(findAcceptedTables([...rulePairOf('8352'), ...strict], '8350')).toEqual(['8350', '8352']);
    expect(findAcceptedTables(strict, null)).toEqual([]);
  });

  it('leave out of the report what loses', () => {
    const underlay = laptop([by('0.0.0.0/1')]);
    const report = (given: typeof rules) =>
      reportOutside('cpn0', { rules: given, ipv6: null }, underlay).entries.map((entry) => String(entry.prefix));
    expect(report(rules)).toEqual(['0.0.0.0/1', '198.51.100.80/32', '9.9.9.9/32', '192.168.1.0/24']);
    expect(report(strict)).toEqual(['198.51.100.80/32', '9.9.9.9/32', '192.168.1.0/24']);
    expect(report([])).toEqual([]);
    expect(findOutsideRoute(address('8.8.8.8'), rules, underlay)?.prefix).toBe('0.0.0.0/1');
    expect(findOutsideRoute(address('8.8.8.8'), strict, underlay)).toBeNull();
  });
});

describe('the report of what goes outside', () => {
  const rules = tunnelRules({ underlay: { ...underlay, resolvers: [] }, api: [address('8.8.8.8')] }, false);

  it('has the widest of each kind first', () => {
    const routes = laptop([by('20.0.0.0/24', { protocol: 'static' }), by('30.0.0.0/16', { protocol: 'static' })]);
    const listed = reportOutside('cpn0', { rules, ipv6: null }, routes).entries.map((entry) => String(entry.prefix));
    expect(listed).toEqual(['30.0.0.0/16', '20.0.0.0/24', '8.8.8.8/32', '192.168.1.0/24']);
  });

  it('has no problem with a route to what is kept outside anyway, or to the gateway', () => {
    const gateways = [address('51.38.1.1')];
    const wide = [by('0.0.0.0/1', { protocol: 'static' }), by('8.8.8.8/32'), by('51.38.1.1/32', { gateway: rogue })];
    const { entries } = reportOutside('cpn0', { rules, ipv6: null }, { ...laptop(wide), gateways });
    expect(entries.filter(({ problem }) => problem !== null).map((entry) => String(entry.prefix))).toEqual([
      '0.0.0.0/1',
    ]);
  });

  it.each([
    ['no IPv6 in the kernel', { exceptions: null, isAllowed: false, isThere: false }, []],
    ['IPv6 that is let out', { exceptions: null, isAllowed: true, isThere: true }, [null]],
    [
      'IPv6 that cannot be rejected',
      { exceptions: null, isAllowed: false, isThere: true },
      [expect.stringMatching(/^it cannot be rejected/)],
    ],
    ['IPv6 that is rejected', { exceptions: { prefixes: [] }, isAllowed: false, isThere: true }, []],
  ])('has all of IPv6 where it goes outside: %s', (_, ipv6, problems) => {
    const { entries } = reportOutside('cpn0', { rules, ipv6 }, laptop([]));
    const six = entries.filter((entry) => entry.prefix.includes(':'));
    expect(six.map(({ problem }) => problem)).toEqual(problems);
  });
});

it('a report names the proxy to the control plane where there is one', () => {
  const rules = tunnelRules({ underlay: { ...underlay, resolvers: [] }, api: [address('198.51.100.80')] }, false);
  const why = (isProxied?: boolean) =>
    reportOutside('cpn0', { rules, ipv6: null }, laptop([]), isProxied).entries.find(
      (entry) => entry.prefix === '198.51.100.80/32',
    )?.why;
  expect([why(), why(true)]).toEqual(['the control plane', 'the proxy to the control plane']);
});

it('a strict tunnel is suggested for an address outside a full tunnel, and nowhere else', () => {
  const rules = tunnelRules({ underlay, api: [] }, false);
  const on = (given: typeof rules) =>
    ({ desired: { link: 'cpn0', rules: given }, actual: { underlay: laptop([], ['203.0.113.0/24']) } }) as never;
  const wan = address('203.0.113.9');
  expect(remedyOutside(wan, [on([]), on(rules)])).toBe(
    '"cpn set cpn0 --strict-tunnel" sends these addresses into the tunnel',
  );
  expect(remedyOutside(wan, [on([])])).toBeNull();
});

it('a report of very many routes lists the widest, and counts the others', () => {
  const many = Array.from({ length: 300 }, (_, index) =>
    by(`20.${index % 250}.${Math.floor(index / 250)}.0/24`, { protocol: 'bgp' }),
  );
  const { entries, omitted } = reportOutside(
    'cpn0',
    { rules: tunnelRules({ underlay, api: [] }, false), ipv6: null },
    laptop(many),
  );
  expect(entries.length + omitted).toBe(302);
  expect(entries).toHaveLength(100);
});

it('a report has a public route first, however many private or special ones a DHCP server adds', () => {
  const many = Array.from({ length: 300 }, (_, index) => by(`${index % 2 ? '10.1' : '169.254'}.${index >> 1}.0/25`));
  const { entries } = reportOutside(
    'cpn0',
    { rules: tunnelRules({ underlay: { ...underlay, resolvers: [] }, api: [] }, false), ipv6: null },
    laptop([...many, by('198.41.0.4/32')]),
  );
  expect(entries[0]?.prefix).toBe('198.41.0.4/32');
});

describe('routes of a link', () => {
  const routesOf = (host: Underlay) =>
    listOutside(host).map(({ prefix: each, gateway, isExpected }) => [each, gateway, isExpected]);

  it('to its own subnet count once, unless they have a gateway', () => {
    expect(routesOf(laptop([onLink('192.168.1.0/24', 'kernel'), by('192.168.1.0/24')]))).toEqual([
      ['192.168.1.0/24', null, true],
      ['192.168.1.0/24', rogue, false],
    ]);
  });

  it('to nested ranges count their addresses once', () => {
    const nested = ['20.0.0.0/9', '20.0.0.0/10', '20.64.0.0/10'].map((text) => by(text, { protocol: 'static' }));
    expect(hollowing(laptop(nested))).toEqual([]);
    expect(hollowing(laptop([...nested, by('20.128.0.0/9', { protocol: 'static' })]))).toHaveLength(4);
  });

  it('are unexpected if they are more than 256, however narrow', () => {
    const many = (count: number) =>
      laptop(Array.from({ length: count }, (_, at) => onLink(`10.9.${at >> 6}.${(at & 63) * 4}/30`)));
    const expected = (count: number) => listOutside(many(count)).filter(({ isExpected }) => isExpected).length;
    expect([expected(256), expected(257)]).toEqual([257, 1]);
  });
});

it('what is wrong comes first in the report of a full tunnel, then public ranges, then the widest', () => {
  const routes = laptop([
    by('8.8.8.0/24'),
    by('9.9.9.0/24', { protocol: 'static' }),
    by('9.9.8.0/23', { protocol: 'static' }),
    by('10.8.0.0/24'),
  ]);
  const rules = tunnelRules({ underlay: { ...routes, resolvers: [] }, api: [] }, false);
  const listed = reportOutside('cpn0', { rules, ipv6: null }, routes).entries;
  expect(listed.map((entry) => [entry.prefix, entry.problem !== null])).toEqual([
    ['8.8.8.0/24', true],
    ['9.9.8.0/23', false],
    ['9.9.9.0/24', false],
    ['192.168.1.0/24', false],
    ['10.8.0.0/24', false],
  ]);
  const unsafe = { exceptions: null, isAllowed: false, isThere: true };
  expect(
    reportOutside('cpn0', { rules, ipv6: unsafe }, laptop([by('9.9.9.0/24', { protocol: 'static' })])).entries[0],
  ).toMatchObject({
    prefix: '::/0',
    problem: expect.stringContaining('nft'),
  });
});
