/** The domains behind the routes of a network. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { closePlane, makeNetwork, openPlane, type Plane, withDatabase } from '../../harness.ts';

let plane: Plane;
let token: string;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const [lan, lab] = ['192.168.50.0/24', '192.168.60.0/24'] as const;
const office = { route: lan, dns_servers: ['192.168.50.53'], domains: ['corp.example'] };
const shop = { route: lab, dns_servers: ['192.168.60.1', '192.168.60.2'], domains: ['shop.example'] };

const read = (id: number, headers = {}) => plane.call('GET', `/api/networks/${id}`, { token, headers });
const change = (id: number, body: unknown) => plane.call('PATCH', `/api/networks/${id}`, { token, body });
const make = (fields: object = {}) => makeNetwork(plane, token, { routes: [lan, lab], ...fields });

describe('domains behind routes', () => {
  test('are set and removed, make revisions, and are in whole maps, changes, lists and the audit', async () => {
    const id = await make({ route_dns: [office] });
    const created = await plane.call('GET', '/api/audit?per_page=1', { token });
    expect(created.body.data[0]).toMatchObject({ action: 'network.create', details: { route_dns: [office] } });
    const whole = await read(id);
    expect([whole.body.data.route_dns, whole.body.data.revision]).toEqual([[office], 1]);
    const both = await change(id, { route_dns: [office, shop] });
    expect([both.status, both.body.data.route_dns, both.body.data.revision]).toEqual([200, [office, shop], 2]);
    expect((await change(id, { route_dns: [office, shop] })).body.data.revision).toBe(2);
    const updated = await plane.call('GET', '/api/audit?per_page=1', { token });
    expect(updated.body.data[0]).toMatchObject({
      action: 'network.update',
      details: { route_dns: [office, shop] },
    });
    const etag = whole.headers.get('etag') ?? '';
    const delta = await read(id, { 'a-im': 'cpn-delta', 'if-none-match': etag });
    expect([delta.status, delta.body.data.route_dns]).toEqual([226, [office, shop]]);
    const { body } = await plane.call('GET', '/api/networks', { token });
    expect(body.data.find((each: { id: number }) => each.id === id).route_dns).toEqual([office, shop]);
    const renamed = await change(id, { name: 'other' });
    expect(renamed.body.data.route_dns).toEqual([office, shop]);
    const none = await change(id, { route_dns: [] });
    expect(['route_dns' in none.body.data, none.body.data.revision]).toEqual([false, 4]);
    const gone = await read(id, { 'a-im': 'cpn-delta', 'if-none-match': etag });
    expect([gone.status, 'route_dns' in gone.body.data]).toEqual([226, false]);
  });

  test('are in their canonical form', async () => {
    const id = await make({ route_dns: [{ ...office, domains: ['Corp.EXAMPLE.', 'bücher.example'], more: 1 }] });
    expect((await read(id)).body.data.route_dns).toEqual([
      { ...office, domains: ['corp.example', 'xn--bcher-kva.example'] },
    ]);
  });

  test.each<[string, object]>([
    ['remove_routes', { remove_routes: [lan] }],
    ['routes', { routes: [lab] }],
  ])('go with a route that %s removes, and do not return with it', async (_, removal) => {
    const id = await make({ route_dns: [office, shop] });
    const removed = await change(id, removal);
    expect([removed.status, removed.body.data.route_dns]).toEqual([200, [shop]]);
    const { body } = await plane.call('GET', '/api/audit?per_page=1', { token });
    expect(body.data[0].details).toEqual({ routes: [lab], route_dns: [shop] });
    expect((await change(id, { add_routes: [lan] })).body.data.route_dns).toEqual([shop]);
  });

  test('are left out where an earlier version removed their route', async () => {
    const id = await make({ route_dns: [office, shop] });
    await withDatabase(plane.dataDir, (db) =>
      db
        .updateTable('networks')
        .set({ routes: JSON.stringify([lab]) })
        .where('id', '=', id)
        .execute(),
    );
    expect((await read(id)).body.data.route_dns).toEqual([shop]);
  });

  test('may have each address of a /31 and of a /32 as DNS servers', async () => {
    const [pair, single] = ['192.168.50.2/31', '192.168.60.7/32'];
    const route_dns = [
      { ...office, route: pair, dns_servers: ['192.168.50.2', '192.168.50.3'] },
      { ...shop, route: single, dns_servers: ['192.168.60.7'] },
    ];
    const id = await make({ routes: [pair, single], route_dns });
    expect((await read(id)).body.data.route_dns).toEqual(route_dns);
  });

  test('may come with their route in one change', async () => {
    const id = await makeNetwork(plane, token);
    const { status, body } = await change(id, { add_routes: [lan], route_dns: [office] });
    expect([status, body.data.route_dns]).toEqual([200, [office]]);
  });

  test('are as many and as long as the limits allow', async () => {
    const routes = Array.from({ length: 17 }, (_, index) => `192.168.${index}.0/24`);
    const label = 'a'.repeat(63);
    const longest = `${`${label}.`.repeat(3)}${'b'.repeat(61)}`;
    const full = routes.map((route, index) => ({
      route,
      dns_servers: [1, 2, 3].map((host) => `192.168.${index}.${host}`),
      domains: Array.from({ length: 16 }, (_, domain) => `d${domain}.site-${index}.example`),
    }));
    const id = await makeNetwork(plane, token, { routes });
    const route_dns = full.slice(0, 16);
    route_dns[0]?.domains.splice(0, 1, longest);
    expect(longest).toHaveLength(253);
    const { status, body } = await change(id, { route_dns });
    expect([status, body.data.route_dns]).toEqual([200, route_dns]);
    const past = await change(id, { route_dns: full });
    expect([past.status, past.body.errors]).toEqual([422, { route_dns: ['must be at most 16 entries'] }]);
  });
});

describe('a 422 names the entry and the value', () => {
  const long = `${'a'.repeat(64)}.example`;
  test.each<[string, object[], string, string]>([
    [
      'a route of another network',
      [{ ...office, route: '10.1.0.0/16' }],
      'route_dns.0.route',
      '"10.1.0.0/16" is not a route of the network; its routes are 192.168.50.0/24, 192.168.60.0/24; add the route, or leave this entry out',
    ],
    ['host bits', [{ ...office, route: '192.168.50.1/24' }], 'route_dns.0.route', '"192.168.50.1/24" has host bits'],
    [
      'a route twice',
      [office, shop, { ...office, domains: ['b.example'] }],
      'route_dns.2.route',
      '"192.168.50.0/24" has an entry already, route_dns.0; put its servers and domains into one',
    ],
    [
      'a server outside the route',
      [office, { ...shop, dns_servers: ['192.168.60.1', '192.168.50.53'] }],
      'route_dns.1.dns_servers.1',
      '"192.168.50.53" is outside the route 192.168.60.0/24; give a DNS server in the route',
    ],
    [
      'a server twice',
      [{ ...office, dns_servers: ['192.168.50.53', '192.168.50.53'] }],
      'route_dns.0.dns_servers.1',
      '"192.168.50.53" is listed twice; list it once',
    ],
    [
      'a server by name',
      [{ ...office, dns_servers: ['ns.example'] }],
      'route_dns.0.dns_servers.0',
      '"ns.example" is not an IP address',
    ],
    [
      'a server with IPv6',
      [{ ...office, dns_servers: ['fd00::53'] }],
      'route_dns.0.dns_servers.0',
      '"fd00::53" is not an IPv4 address; give a DNS server in the route',
    ],
    [
      'a server with a port',
      [{ ...office, dns_servers: ['192.168.50.53:53'] }],
      'route_dns.0.dns_servers.0',
      '"192.168.50.53:53" has a port; write 192.168.50.53; hosts send queries to port 53',
    ],
    [
      'the network address',
      [{ ...office, dns_servers: ['192.168.50.53', '192.168.50.0'] }],
      'route_dns.0.dns_servers.1',
      '"192.168.50.0" is the network address of 192.168.50.0/24; give a DNS server in the route',
    ],
    [
      'the broadcast address',
      [{ ...office, dns_servers: ['192.168.50.255'] }],
      'route_dns.0.dns_servers.0',
      '"192.168.50.255" is the broadcast address of 192.168.50.0/24; give a DNS server in the route',
    ],
    [
      'a wildcard',
      [{ ...office, domains: ['*.corp.example'] }],
      'route_dns.0.domains.0',
      '"*.corp.example" is a wildcard; write corp.example, which includes all names below it',
    ],
    [
      'a domain twice',
      [office, { ...shop, domains: ['a.example', 'CORP.example'] }],
      'route_dns.1.domains.1',
      '"CORP.example" is a domain of 192.168.50.0/24 already; list it once in the network',
    ],
    [
      'a domain twice in an entry',
      [{ ...office, domains: ['a.example', 'a.example.'] }],
      'route_dns.0.domains.1',
      '"a.example." is a domain of 192.168.50.0/24 already; list it once in the network',
    ],
    [
      'one label',
      [{ ...office, domains: ['corp'] }],
      'route_dns.0.domains.0',
      '"corp" has one label; give a domain of two labels or more, such as corp.example',
    ],
    [
      'a reserved name',
      [{ ...office, domains: ['printer.test'] }],
      'route_dns.0.domains.0',
      '"printer.test" ends in "test", which is reserved; give a domain of the DNS',
    ],
    [
      'the domain of peers',
      [{ ...office, domains: ['x.cpn.internal'] }],
      'route_dns.0.domains.0',
      '"x.cpn.internal" is reserved; give a domain that the DNS servers of the LAN have',
    ],
    [
      'a public suffix',
      [office, { ...shop, domains: ['a.example', 'CO.UK.'] }],
      'route_dns.1.domains.1',
      '"CO.UK." is a public suffix, under which anyone may register names; give a domain below it, such as corp.co.uk',
    ],
    [
      'a label too long',
      [{ ...office, domains: [long] }],
      'route_dns.0.domains.0',
      `"${long}" is no domain: labels of 1 to 63 letters`,
    ],
    [
      'a name too long',
      [{ ...office, domains: ['a.'.repeat(127)] }],
      'route_dns',
      'item 0.domains.0 must be at most 253 characters',
    ],
    ['no server', [{ ...office, dns_servers: [] }], 'route_dns', 'item 0.dns_servers must name a DNS server'],
    [
      'four servers',
      [{ ...office, dns_servers: [1, 2, 3, 4].map((host) => `192.168.50.${host}`) }],
      'route_dns',
      'item 0.dns_servers must be at most 3 DNS servers',
    ],
    ['no domain', [{ ...office, domains: [] }], 'route_dns', 'item 0.domains must name a domain'],
    [
      '17 domains',
      [{ ...office, domains: Array.from({ length: 17 }, (_, index) => `d${index}.example`) }],
      'route_dns',
      'item 0.domains must be at most 16 domains',
    ],
    ['no route', [{ ...office, route: undefined }], 'route_dns', 'item 0.route is required'],
  ])('of %s', async (_, route_dns, field, rule) => {
    const id = await make({ route_dns: [office] });
    for (const refused of [
      await change(id, { route_dns }),
      await plane.call('POST', '/api/networks', {
        token,
        body: { name: 'n', private_cidr: '10.77.0.0/24', routes: [lan, lab], route_dns },
      }),
    ]) {
      expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, [field]]);
      expect(refused.body.errors[field][0].slice(0, rule.length)).toBe(rule);
    }
    expect((await read(id)).body.data.route_dns).toEqual([office]);
  });

  test('of a route that the same change removes', async () => {
    const id = await make({ route_dns: [office, shop] });
    const { status, body } = await change(id, { remove_routes: [lab], route_dns: [office, shop] });
    expect([status, Object.keys(body.errors)]).toEqual([422, ['route_dns.1.route']]);
  });

  test('of each wrong entry, and of other fields', async () => {
    const id = await make();
    const wrong = [
      { ...office, domains: ['corp'] },
      { ...shop, dns_servers: ['10.1.1.1'] },
    ];
    const { body } = await change(id, { name: '', remove_routes: ['10.9.0.0/16'], route_dns: wrong });
    expect(Object.keys(body.errors).sort()).toEqual([
      'name',
      'remove_routes',
      'route_dns.0.domains.0',
      'route_dns.1.dns_servers.0',
    ]);
  });
});
