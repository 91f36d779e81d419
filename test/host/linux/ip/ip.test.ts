import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CpnError, InvalidValue } from '../../../../src/core/errors/index.ts';
import { routeTables } from '../../../../src/core/host-state/marks.ts';
import { formatRule } from '../../../../src/core/host-state/policy-rule.ts';
import { parseAddress, parsePrefix } from '../../../../src/core/net/cidr.ts';
import type { LinkCommand } from '../../../../src/core/reconcile/step.ts';
import { mainRule, tunnelRule } from '../../../../src/core/routing/tunnel-rules.ts';
import { describeFailedLines, renderBatch } from '../../../../src/host/linux/ip/batch.ts';
import { parseShown } from '../../../../src/host/linux/ip/show.ts';

/** Printed by iproute2 6.1.0 for a wireguard-go interface with addresses, an alias and routes. */
const links =
  '[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"qdisc":"noqueue","operstate":"UNKNOWN","group":"0","txqlen":1000,"link_type":"[772]","address":"00:00:00:00:00:00","broadcast":"00:00:00:00:00:00","promiscuity":0,"allmulti":0,"min_mtu":0,"max_mtu":0,"num_tx_queues":1,"num_rx_queues":1,"gso_max_size":65536,"gso_max_segs":65535,"tso_max_size":524280,"tso_max_segs":65535,"gro_max_size":65536,"addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"254","label":"lo","valid_life_time":4294967295,"preferred_life_time":4294967295},{"family":"inet6","local":"::1","prefixlen":128,"scope":"254","valid_life_time":4294967295,"preferred_life_time":4294967295}]},{"ifindex":2,"ifname":"wg0","flags":["POINTOPOINT","MULTICAST","NOARP","UP","LOWER_UP"],"mtu":1420,"qdisc":"pfifo_fast","operstate":"UNKNOWN","group":"0","txqlen":500,"link_type":"[65534]","promiscuity":0,"allmulti":0,"min_mtu":68,"max_mtu":65535,"linkinfo":{"info_kind":"tun","info_data":{"type":"tun","pi":true,"vnet_hdr":false,"multi_queue":false,"persist":false}},"num_tx_queues":1,"num_rx_queues":1,"gso_max_size":65536,"gso_max_segs":65535,"tso_max_size":65536,"tso_max_segs":65535,"gro_max_size":65536,"ifalias":"cpn \'q\' x","addr_info":[{"family":"inet","local":"10.77.0.5","prefixlen":24,"scope":"0","label":"wg0","valid_life_time":4294967295,"preferred_life_time":4294967295},{"family":"inet6","local":"fd00:1::5","prefixlen":64,"scope":"0","valid_life_time":4294967295,"preferred_life_time":4294967295},{"family":"inet6","local":"fe80::6f8b:20b0:3c58:3a2e","prefixlen":64,"scope":"253","stable-privacy":true,"valid_life_time":4294967295,"preferred_life_time":4294967295}]}]';
const routes4 =
  '[{"type":"1","dst":"10.98.0.0/16","dev":"wg0","table":"200","protocol":"157","scope":"253","flags":[]},{"type":"1","dst":"default","dev":"wg0","table":"254","protocol":"157","scope":"253","flags":[]},{"type":"1","dst":"10.77.0.0/24","dev":"wg0","table":"254","protocol":"2","scope":"253","prefsrc":"10.77.0.5","flags":[]},{"type":"1","dst":"10.99.0.0/16","dev":"wg0","table":"254","protocol":"157","scope":"253","flags":[]}]';
const routes6 =
  '[{"type":"1","dst":"fd00:1::/64","dev":"wg0","table":"254","protocol":"2","scope":"0","metric":256,"flags":[],"pref":"medium"},{"type":"1","dst":"fd00:9::/64","dev":"wg0","table":"254","protocol":"157","scope":"0","metric":1024,"flags":[],"pref":"medium"},{"type":"1","dst":"fe80::/64","dev":"wg0","table":"254","protocol":"2","scope":"0","metric":256,"flags":[],"pref":"medium"},{"type":"1","dst":"default","dev":"wg0","table":"254","protocol":"3","scope":"0","metric":1024,"flags":[],"pref":"medium"}]';
/** Printed by iproute2 6.1.0. */
const rules4 =
  '[{"priority":0,"src":"all","table":"255","protocol":"2"},{"priority":3,"src":"all","table":"254","suppress_prefixlen":0,"protocol":"0"},{"priority":4,"not":null,"src":"all","fwmark":"0x209d","table":"8349","protocol":"0"},{"priority":5,"src":"10.0.0.0","srclen":8,"iif":"v0","table":"8349","protocol":"0"},{"priority":6,"src":"10.0.0.0","srclen":8,"fwmark":"0x1","fwmask":"0xff","table":"8349","protocol":"0"},{"priority":8,"src":"all","goto":32766,"protocol":"0"},{"priority":9,"src":"1.2.3.4","action":"7","protocol":"0"},{"priority":31570,"src":"203.0.113.5","table":"254","protocol":"157"},{"priority":31571,"src":"all","dst":"198.51.100.0","dstlen":24,"table":"254","protocol":"157"},{"priority":32766,"src":"all","table":"254","protocol":"2"}]';

describe('parseShown', () => {
  test('reads links and their addresses', () => {
    const shown = parseShown(`${links}\n[]\n[]\n[]\n`);
    expect(shown.routes).toEqual([]);
    expect(shown.links.map(({ name, up, loopback, mtu, alias }) => ({ name, up, loopback, mtu, alias }))).toEqual([
      { name: 'lo', up: true, loopback: true, mtu: 65536, alias: null },
      { name: 'wg0', up: true, loopback: false, mtu: 1420, alias: "cpn 'q' x" },
    ]);
    expect(shown.links[1]?.addresses).toEqual([
      { address: '10.77.0.5', length: 24, subnet: '10.77.0.0/24' },
      { address: 'fd00:1::5', length: 64, subnet: 'fd00:1::/64' },
      { address: 'fe80::6f8b:20b0:3c58:3a2e', length: 64, subnet: 'fe80::/64' },
    ]);
  });

  test('reads routes, tells the families apart and gives known protocols their names', () => {
    const { routes } = parseShown(`[]\n${routes4}\n${routes6}\n[]\n`);
    expect(routes.map(({ prefix, table, protocol }) => [prefix, table, protocol])).toEqual([
      ['10.98.0.0/16', '200', '157'],
      ['0.0.0.0/0', 'main', '157'],
      ['10.77.0.0/24', 'main', 'kernel'],
      ['10.99.0.0/16', 'main', '157'],
      ['fd00:1::/64', 'main', 'kernel'],
      ['fd00:9::/64', 'main', '157'],
      ['fe80::/64', 'main', 'kernel'],
      ['::/0', 'main', 'boot'],
    ]);
  });

  test.each([
    ['{"dst":"10.1.2.3","dev":"a","protocol":"4"}', { prefix: '10.1.2.3/32', protocol: 'static', links: ['a'] }],
    [
      '{"dst":"default","gateway":"192.0.2.1","dev":"a","protocol":"16"}',
      { gateways: ['192.0.2.1'], protocol: 'dhcp' },
    ],
    ['{"dst":"default","via":{"family":"10","host":"fe80::1"},"dev":"a"}', { gateways: ['fe80::1'] }],
    ['{"dst":"default","dev":"a","table":"254","metrics":[{"mtu":1400}]}', { table: 'main', mtu: 1400 }],
    [
      '{"dst":"default","nexthops":[{"gateway":"192.0.2.1","dev":"a"},{"gateway":"192.0.2.2","dev":"b"}]}',
      { gateways: ['192.0.2.1', '192.0.2.2'], links: ['a', 'b'] },
    ],
  ])('reads %s', (entry, expected) => {
    expect(parseShown(`[]\n[${entry}]\n[]\n[]\n`).routes).toEqual([expect.objectContaining(expected)]);
  });

  test('leaves out the routes of our own echoes, and no other', () => {
    const route = (protocol: number) =>
      `{"type":"1","dst":"10.77.0.2","tos":"0x04","dev":"wg0","table":"254","protocol":"${protocol}","metrics":[{"mtu":1420}]}`;
    const { routes } = parseShown(`[]\n[${route(157)},${route(4)}]\n[]\n[]\n`);
    expect(routes.map(({ protocol }) => protocol)).toEqual(['static']);
  });

  test('reads policy rules, and names what of a rule it does not read', () => {
    const { rules } = parseShown(`[]\n[]\n[]\n${rules4}\n`);
    expect(rules.map((rule) => [rule.priority, formatRule(rule), rule.protocol, ...rule.more])).toEqual([
      [0, 'from all lookup 255', 'kernel'],
      [3, 'from all lookup main suppress_prefixlength 0', '0'],
      [4, 'not from all fwmark 0x209d lookup 8349', '0'],
      [5, 'from 10.0.0.0/8 lookup 8349', '0', 'iif'],
      [6, 'from 10.0.0.0/8 fwmark 0x1/0xff lookup 8349', '0'],
      [8, 'from all goto 32766', '0'],
      [9, 'from 1.2.3.4/32', '0', 'action'],
      [31570, 'from 203.0.113.5/32 lookup main', '157'],
      [31571, 'from all to 198.51.100.0/24 lookup main', '157'],
      [32766, 'from all lookup main', 'kernel'],
    ]);
  });

  test('knows that a rule has a target that is not there, or none, and names no more of it', () => {
    const rules = [
      { priority: 8, src: 'all', goto: 32766, unresolved: null, protocol: '0' },
      { priority: 9, src: 'all', nop: null, protocol: '0' },
      { priority: 10, src: 'all', tos: '0x10', ipproto: '17', table: '254', protocol: '0' },
    ];
    const { rules: shown } = parseShown(`[]\n[]\n[]\n${JSON.stringify(rules)}\n`);
    expect(shown.map(({ more }) => more)).toEqual([[], [], ['tos', 'ipproto']]);
  });

  test.each(['6', '7', '8', 'blackhole', 'unreachable', 'prohibit'])(
    'a route of type %s refuses its prefix',
    (type) => {
      const routes = [
        { type, dst: '10.9.0.0/16' },
        { type, dst: '10.8.0.0/16', table: '254' },
        { type, dst: 'default' },
        { type, dst: '10.7.0.0/16', table: '77' },
        { type: '1', dst: '10.6.0.0/16', dev: 'wg0' },
      ];
      expect(parseShown(`[]\n${JSON.stringify(routes)}\n[]\n[]\n`).refusing).toEqual([
        ...['10.9.0.0/16', '10.8.0.0/16', '0.0.0.0/0'],
      ]);
    },
  );

  test.each([
    [{ type: '9', protocol: '157' }, true],
    [{ type: 'throw', protocol: '157' }, true],
    [{ type: '9', protocol: '4' }, false],
    [{ type: '7', protocol: '157' }, false],
  ])('a throw route is ours by type and protocol: %j', (route, isOurs) => {
    const table = String(routeTables.first);
    const routes = [
      { ...route, dst: '10.9.0.0/16', table },
      { ...route, dst: '10.8.0.0/16', table: '254' },
    ];
    const { throwRoutes } = parseShown(`[]\n${JSON.stringify(routes)}\n[]\n[]\n`);
    expect(throwRoutes).toEqual(isOurs ? [{ prefix: '10.9.0.0/16', table }] : []);
  });

  test('a link has a carrier unless it says otherwise, and its kind, master and other end', () => {
    const link = {
      ...{ ifindex: 7, ifname: 'v0', mtu: 1500, flags: ['UP'], master: 'br0', link: 'v1', addr_info: [] },
      linkinfo: { info_kind: 'tun', info_data: { type: 'tap', vnet_hdr: true } },
    };
    const without = { ifindex: 2, ifname: 'eth0', mtu: 1500, flags: ['UP', 'NO-CARRIER'] };
    const { links } = parseShown(`${JSON.stringify([link, without])}\n[]\n[]\n[]\n`);
    expect(links).toMatchObject([
      { carrier: true, kind: 'tun', master: 'br0', lower: 'v1', isTap: true, hasVirtioHeader: true },
      { carrier: false, kind: null, master: null, lower: null, isTap: false, hasVirtioHeader: false },
    ]);
  });

  test('leaves out routes that lead to no other host', () => {
    const others = ['2', '3', '5', 'local', 'unreachable'].map((type) => ({ type, dst: '10.0.0.1', dev: 'wg0' }));
    expect(parseShown(`[]\n${JSON.stringify(others)}\n[]\n[]\n`).routes).toEqual([]);
  });

  test('reads the subnet around the other end of a point-to-point link', () => {
    const link = {
      ifindex: 3,
      ifname: 'ppp0',
      mtu: 1492,
      flags: [],
      addr_info: [{ local: '10.0.0.1', address: '10.0.0.9', prefixlen: 32 }],
    };
    const [shown] = parseShown(`${JSON.stringify([{}, link])}\n[]\n[]\n[]\n`).links;
    expect(shown?.addresses).toEqual([{ address: '10.0.0.1', length: 32, subnet: '10.0.0.9/32' }]);
  });

  test('reads an alias with control characters, which ip does not escape', () => {
    const text = '[{"ifindex":4,"ifname":"a","mtu":1,"flags":[],"ifalias":"x\u0001\ty"}]';
    expect(parseShown(`${text}\n[]\n[]\n[]\n`).links[0]?.alias).toBe('x  y');
  });

  test.each([
    '',
    '[]',
    '[]\n[]',
    '[]\n[]\n[]',
    '[]\n[]\n[]\n[]\n[]',
    '{}\n[]\n[]\n[]',
    'x\n[]\n[]\n[]',
    '[{"ifname":"a"}]\n[]\n[]\n[]',
    '[]\n[{"dst":"x"}]\n[]\n[]',
    '[]\n[]\n[]\n[{"src":"all"}]',
    '[]\n[]\n[]\n[{"priority":1,"src":"x"}]',
    '[]\n[]\n[]\n[{"priority":1,"fwmark":"x"}]',
  ])('refuses %j', (text) => {
    expect(() => parseShown(text)).toThrow(InvalidValue);
  });

  test('throws nothing but a CpnError', () => {
    const entry = fc.dictionary(
      fc.constantFrom(
        'ifname',
        'mtu',
        'flags',
        'addr_info',
        'dst',
        'dev',
        'via',
        'nexthops',
        'metrics',
        'table',
        'local',
        'priority',
        'src',
        'srclen',
        'fwmark',
      ),
      fc.oneof(fc.jsonValue(), fc.constantFrom('10.0.0.0/8', 'default', '::ffff:1.2.3.4/99')),
    );
    const line = fc.oneof(
      fc.array(entry, { maxLength: 3 }).map((entries) => JSON.stringify(entries)),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(line, { minLength: 3, maxLength: 5 }), (lines) => {
        try {
          parseShown(lines.join('\n'));
        } catch (error) {
          expect(error).toBeInstanceOf(CpnError);
        }
      }),
    );
  });
});

describe('renderBatch', () => {
  const render = (...commands: LinkCommand[]) => renderBatch({ do: 'configure-link', link: 'cpn0', commands });

  test('writes a line for each command, in their order', () => {
    const address = { address: parseAddress('10.77.0.5'), length: 24 };
    expect(
      render(
        { set: 'mtu', value: 1420 },
        { set: 'alias', value: 'cpn:7' },
        { add: 'address', address },
        { set: 'up' },
        { add: 'route', prefix: parsePrefix('fd00::/64') },
        { add: 'route', prefix: parsePrefix('10.9.0.0/16'), metric: 10_000, replaces: 10_000 },
        { add: 'route', prefix: parsePrefix('10.8.0.0/16'), metric: 10_000, replaces: 0 },
        { add: 'route', prefix: parsePrefix('10.77.0.0/24'), source: address.address },
        { add: 'route', prefix: parsePrefix('10.77.0.0/24'), source: address.address, replaces: 0 },
        { remove: 'route', prefix: parsePrefix('0.0.0.0/0'), protocol: 'boot' },
        { remove: 'address', address },
      ),
    ).toEqual([
      'link set dev cpn0 mtu 1420',
      'link set dev cpn0 alias "cpn:7"',
      'address add 10.77.0.5/24 dev cpn0',
      'link set dev cpn0 up',
      'route add fd00::/64 dev cpn0 proto 157',
      'route replace 10.9.0.0/16 dev cpn0 proto 157 metric 10000',
      'route replace 10.8.0.0/16 dev cpn0 proto 157',
      'route append 10.8.0.0/16 dev cpn0 proto 157 metric 10000',
      'route delete 10.8.0.0/16 dev cpn0 proto 157',
      'route append 10.77.0.0/24 dev cpn0 proto kernel scope link src 10.77.0.5',
      'route replace 10.77.0.0/24 dev cpn0 proto kernel scope link src 10.77.0.5',
      'route delete 0.0.0.0/0 dev cpn0 proto boot',
      'address delete 10.77.0.5/24 dev cpn0',
    ]);
  });

  test('writes policy rules, and routes of a table of their own', () => {
    const prefix = parsePrefix('0.0.0.0/0');
    expect(
      render(
        { add: 'route', prefix, table: '8349' },
        { add: 'rule', rule: mainRule },
        { remove: 'rule', rule: { ...tunnelRule, priority: 32765, protocol: '0' } },
        { remove: 'route', prefix, protocol: 'boot', table: '8349' },
      ),
    ).toEqual([
      'route add 0.0.0.0/0 dev cpn0 table 8349 proto 157',
      'rule add from all lookup main suppress_prefixlength 0 priority 31573 protocol 157',
      'rule delete not from all fwmark 0x209d lookup 8349 priority 32765 protocol 0',
      'route delete 0.0.0.0/0 dev cpn0 table 8349 proto boot',
    ]);
  });

  test.each(['', 'a"b', 'a#b', 'a\\', 'a\nlink delete dev eth0', 'ä'.repeat(128)])('refuses the alias %j', (value) => {
    expect(() => render({ set: 'alias', value })).toThrow(InvalidValue);
  });

  test.each(['', 'x y', '4\nlink delete dev eth0'])('refuses the protocol %j', (protocol) => {
    expect(() => render({ remove: 'route', prefix: parsePrefix('10.0.0.0/8'), protocol })).toThrow(InvalidValue);
  });
});

test('a line that failed is quoted', () => {
  expect(describeFailedLines('File exists; Command failed -:2; Command failed -:9', ['first', 'route add x'])).toBe(
    'File exists; from "ip route add x"; from "ip ?"',
  );
});
