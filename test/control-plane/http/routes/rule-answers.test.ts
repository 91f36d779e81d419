import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane } from '../../harness.ts';

let plane: Plane;
let token: string;
let network: number;
const ids: Record<string, number> = {};
const [office, lab] = ['192.168.1.0/24', '192.168.2.0/24'];
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('admin');
  network = await makeNetwork(plane, token, { routes: [office, lab] });
  const add = async (name: string, fields: object = {}, key: object = {}) => {
    const { body } = await enroll(plane, await makeKey(plane, token, network, key), { name, ...fields });
    ids[name] = body.data.peer.id;
    return body.data;
  };
  const current = { enforces_rules: true, follows_relay: true };
  await add('box', { ...current, peer_type: 'connector', endpoint: '203.0.113.1:51820' });
  await add('db', { ...current, endpoint: '203.0.113.2:51820' });
  await add('laptop', current, { tags: ['ops'] });
  await add('old', {}, { tags: ['ops'] });
  const profile = { connector: ids.box, routes: [office] };
  await add('phone', { peer_type: 'admin_device', profile });
  await plane.call('PUT', `${path()}/rules`, { token, body: { mode: 'closed', rules } });
});
afterAll(() => closePlane(plane));

const path = () => `/api/networks/${network}`;
const rules = [
  { name: 'web', from: ['tag:ops'], to: ['peer:db'], protocol: 'tcp', ports: ['443'] },
  { name: 'scan', from: [`cidr:192.168.1.0/28`], to: ['tag:ops'], protocol: 'any', ports: [] },
  { name: 'office', from: ['peer:db'], to: [`route:${office}`], protocol: 'udp', ports: ['53'] },
];
const preview = async (body: object, by = token) => plane.call('POST', `${path()}/rules/preview`, { token: by, body });
const ask = (answer: string, query: Record<string, string>) =>
  plane.call('GET', `${path()}/rules/${answer}?${new URLSearchParams(query)}`, { token });
const change = (from: string, to: string, protocol: string, ports: string[] = []) => ({ from, to, protocol, ports });

describe('a preview', () => {
  test('lists who gains and who loses, the tests, and what cannot be enforced, and changes nothing', async () => {
    const before = (await plane.call('GET', `${path()}/rules`, { token })).body.data;
    const tests = [
      { from: 'tag:ops', to: 'peer:db', protocol: 'tcp', port: 22, expect: 'allow' },
      { from: 'peer:phone', to: 'any', protocol: 'udp', expect: 'deny' },
    ];
    const next = { ...rules[0], ports: ['22', '443'] };
    const { status, body } = await preview(
      { mode: 'closed', rules: [next, rules[1]], tests },
      await plane.signIn('member'),
    );
    expect([status, body.data]).toEqual([
      200,
      {
        gained: [change('peer:laptop', 'peer:db', 'tcp', ['22']), change('peer:old', 'peer:db', 'tcp', ['22'])],
        lost: [
          change('peer:db', `route:${office}`, 'udp', ['53']),
          change('peer:db', 'cidr:192.168.1.0/28', 'udp', ['53']),
        ],
        ...{ gained_count: 2, lost_count: 2, complete: true },
        tests: [
          { ...tests[0], passed: true, why: 'rule "web" allows it' },
          { ...tests[1], passed: true, why: 'no rule allows it' },
        ],
        enforcement: [{ peer: { id: ids.old, name: 'old' }, by: 'nothing' }],
        refused: [
          {
            ...{ from: 'cidr:192.168.1.0/28', to: 'peer:old' },
            why: 'its host does not take packets with sources in routes; update cpn there',
          },
        ],
        warnings: [],
      },
    ]);
    expect((await plane.call('GET', `${path()}/rules`, { token })).body.data).toEqual(before);
  });

  test('of a network that opens is one entry, and so is one that closes', async () => {
    const opened = (await preview({ mode: 'open' })).body.data;
    expect([opened.lost, opened.lost_count]).toEqual([[], 0]);
    const all = (await preview({ mode: 'closed', rules: [{ name: 'all', from: ['any'], to: ['any'] }] })).body.data;
    expect(all.gained).toEqual(opened.gained);
    expect(opened.gained).toContainEqual(change('peer:phone', 'any', 'any'));
  });

  test('of rules that are not valid is a 422, and of a viewer a 403', async () => {
    expect((await preview({ mode: 'closed', rules: [{ ...rules[0], to: ['peer:x'] }] })).status).toBe(422);
    expect((await preview({ mode: 'closed' }, await plane.signIn('viewer'))).status).toBe(403);
  });
});

describe('why', () => {
  test.each<[Record<string, string>, object]>([
    [
      { from: 'peer:laptop', to: 'db', port: '443' },
      { from: 'peer:laptop', to: 'peer:db', port: 443, verdict: 'allow', rule: 'web', why: 'rule "web" allows it' },
    ],
    [
      { from: 'laptop', to: '10.77.0.2', port: '22' },
      { to: 'peer:db', verdict: 'deny', rule: null, why: 'peer:laptop to peer:db: no rule allows it' },
    ],
    [
      { from: '192.168.1.7', to: 'tag:ops', protocol: 'icmp' },
      { from: '192.168.1.7', to: 'tag:ops', protocol: 'icmp', verdict: 'allow', rule: 'scan' },
    ],
    [
      { from: '192.168.1.77', to: 'laptop', protocol: 'icmp' },
      { verdict: 'deny', why: 'cidr:192.168.1.77/32 to peer:laptop: no rule allows it' },
    ],
    [
      { from: 'laptop', to: 'db', protocol: 'icmp' },
      { verdict: 'deny', why: expect.stringMatching(/; echo requests between peers are always allowed$/) },
    ],
    [
      { from: 'laptop', to: 'db', port: '9' },
      { verdict: 'allow', rule: null, why: expect.stringMatching(/^TCP 9 /) },
    ],
    [
      { from: 'laptop', to: 'db' },
      {
        ...{ verdict: 'deny', rule: null, ports: ['443'] },
        why: 'peer:laptop to peer:db: the rules allow port 443 alone (first: rule "web")',
      },
    ],
    [
      { from: 'tag:ops', to: 'db' },
      { verdict: 'deny', ports: ['443'], why: expect.stringMatching(/allow port 443 alone/) },
    ],
    [
      { from: 'any', to: 'db' },
      { verdict: 'deny', why: expect.stringMatching(/: no rule allows it$/) },
    ],
    [
      { from: 'tag:none', to: 'db', port: '443' },
      { verdict: 'deny', why: 'no peer has the tag none' },
    ],
    [
      { from: 'laptop', to: 'laptop', port: '443' },
      { verdict: 'allow', rule: null, why: 'rules do not concern connections of a peer to itself' },
    ],
  ])('%j is %j', async (query, decision) => {
    const { status, body } = await ask('why', query);
    expect([status, body.data]).toEqual([200, expect.objectContaining(decision)]);
  });

  test('without a port names the ports that are allowed for each of the pairs', async () => {
    const other = await makeNetwork(plane, token, { name: 'other', private_cidr: '10.78.0.0/24' });
    for (const name of ['a', 'b', 'db'])
      await enroll(plane, await makeKey(plane, token, other, { tags: ['all'] }), { name });
    const allow = (name: string, from: string, ports: string[]) => ({
      ...{ name, to: ['peer:db'], protocol: 'tcp' },
      from: [from],
      ports,
    });
    const path = `/api/networks/${other}/rules`;
    const set = async (...from: object[]) => plane.call('PUT', path, { token, body: { mode: 'closed', rules: from } });
    const why = async () => (await plane.call('GET', `${path}/why?from=tag:all&to=db`, { token })).body.data;
    await set(allow('1', 'peer:a', ['22', '8000-8080']), allow('2', 'peer:b', ['8050-8090', '443']));
    expect(await why()).toMatchObject({
      ...{ verdict: 'deny', ports: ['8050-8080'] },
      why: 'peer:a to peer:db: the rules allow ports 22, 8000-8080 alone (first: rule "1")',
    });
    await set(allow('1', 'peer:a', ['22']), allow('2', 'peer:b', ['443']));
    expect(await why()).toMatchObject({ verdict: 'deny', ports: [] });
    await set(allow('1', 'peer:a', ['22']), allow('2', 'tag:all', []));
    expect(await why()).toMatchObject({ verdict: 'allow' });
    await plane.call('DELETE', `/api/networks/${other}`, { token });
  });

  test('names the hosts that decide', async () => {
    const points = async (from: string, to: string) => (await ask('why', { from, to })).body.data.points;
    const box = { peer: { id: ids.box, name: 'box' }, by: 'connector' };
    expect(await points('laptop', 'db')).toEqual([{ peer: { id: ids.db, name: 'db' }, by: 'destination' }]);
    expect(await points('192.168.1.7', 'old')).toEqual([box, { peer: { id: ids.old, name: 'old' }, by: 'nothing' }]);
    expect(await points('db', `route:${lab}`)).toEqual([box]);
    expect(await points('db', 'phone')).toEqual([box]);
  });

  test.each([
    [{ from: 'laptop' }, 'to'],
    [{ from: 'stranger', to: 'db' }, 'from'],
    [{ from: '192.168.9.1', to: 'db' }, 'from'],
    [{ from: 'db', to: 'db', protocol: 'gre' }, 'protocol'],
    [{ from: 'db', to: 'laptop', protocol: 'icmp', port: '1' }, 'port'],
    [{ from: 'db', to: 'laptop', port: '0' }, 'port'],
  ])('%j is a 422 that names %s', async (query, field) => {
    const { status, body } = await ask('why', query as Record<string, string>);
    expect([status, Object.keys(body.errors)]).toEqual([422, [field]]);
  });
});

describe('who reaches what', () => {
  const pair = (from: string, to: string, rule: string | null) => ({ from, to, rule });
  test('lists the pairs, with the first rule that allows some', async () => {
    const { body } = await ask('reach', {});
    expect(body.data.complete).toBe(true);
    expect(body.data.pairs).toHaveLength(6);
    expect(body.data.pairs).toEqual(
      expect.arrayContaining([
        ...['peer:laptop', 'peer:old'].map((from) => pair(from, 'peer:db', 'web')),
        ...['peer:laptop', 'peer:old'].map((to) => pair('cidr:192.168.1.0/28', to, 'scan')),
        ...[`route:${office}`, 'cidr:192.168.1.0/28'].map((to) => pair('peer:db', to, 'office')),
      ]),
    );
  });

  test('lists those of one protocol and port, and of one destination', async () => {
    const to = async (query: Record<string, string>) => (await ask('reach', query)).body.data.pairs;
    expect(await to({ port: '443', to: 'db' })).toEqual([
      pair('peer:laptop', 'peer:db', 'web'),
      pair('peer:old', 'peer:db', 'web'),
    ]);
    expect(await to({ protocol: 'udp', port: '53' })).toHaveLength(4);
    expect(await to({ port: '22', to: 'peer:db' })).toEqual([]);
    expect(await to({ to: `route:${lab}` })).toEqual([]);
    expect((await ask('reach', { protocol: 'icmp', port: '1' })).status).toBe(422);
  });
});
