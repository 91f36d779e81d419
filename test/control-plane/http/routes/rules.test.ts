import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mostRules, mostSelectors } from '../../../../src/contract/rules.ts';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane, publicKey } from '../../harness.ts';

let plane: Plane;
let token: string;
let network: number;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('admin');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  token = await plane.signIn('admin');
  network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24', '192.168.2.0/24'] });
});

const path = () => `/api/networks/${network}`;
const read = (by = token) => plane.call('GET', `${path()}/rules`, { token: by });
const readMap = (headers = {}) => plane.call('GET', path(), { token, headers });
const set = (body: object, headers = {}, by = token) =>
  plane.call('PUT', `${path()}/rules`, { token: by, body: { mode: 'closed', ...body }, headers });
const add = async (name: string, fields: object = {}, key: object = {}) =>
  (await enroll(plane, await makeKey(plane, token, network, key), { name, ...fields })).body.data;
const rule = (fields: object = {}) => ({
  ...{ name: 'web', from: ['peer:laptop'], to: ['peer:db'], protocol: 'tcp', ports: ['443', '8000-8080'], ...fields },
});
const any = (name: string, fields: object = {}) => ({ ...rule(fields), name, protocol: 'any', ports: [] });

test('a network without rules is open', async () => {
  await add('db', { enforces_rules: true });
  const reply = await read();
  const enforcement = [{ peer: { id: expect.any(Number), name: 'db' }, by: 'destination' }];
  expect(reply.body).toEqual({
    data: { mode: 'open', rules: [], tests: [], require_enforcement: false, enforcement, warnings: [] },
  });
  expect(reply.headers.get('etag')).toBe('"0-none"');
  expect((await readMap()).body.data).not.toHaveProperty('rules');
});

describe('rules', () => {
  test('are stored by id, and are read by the names that peers have now', async () => {
    const { peer: db } = await add('db');
    const { peer: laptop } = await add('laptop');
    const selectors = ['tag:ops', 'route:192.168.1.0/24', 'cidr:192.168.2.16/28', 'cidr:192.168.2.7', 'any'];
    const tests = [{ from: 'peer:laptop', to: 'peer:db', protocol: 'tcp', port: 443, expect: 'allow' }];
    const reply = await set({ rules: [rule({ to: ['peer:db', ...selectors] })], tests });
    const shown = ['tag:ops', 'route:192.168.1.0/24', 'cidr:192.168.2.16/28', 'cidr:192.168.2.7/32', 'any'];
    expect([reply.status, reply.body.data]).toEqual([
      200,
      expect.objectContaining({ mode: 'closed', rules: [rule({ to: ['peer:db', ...shown] })], tests }),
    ]);
    expect((await readMap()).body.data.rules).toEqual({
      mode: 'closed',
      rules: [rule({ from: [`peer:${laptop.id}`], to: [`peer:${db.id}`, ...shown] })],
    });
    await plane.call('PATCH', `${path()}/peers/${db.id}`, { token, body: { name: 'postgres' } });
    expect((await read()).body.data.rules[0].to[0]).toBe('peer:postgres');
  });

  test('keep a removed peer as gone, and never select a later one of its name', async () => {
    await add('laptop');
    const { peer } = await add('db');
    await set({ rules: [rule()], tests: [{ from: 'any', to: 'peer:db', protocol: 'udp', expect: 'deny' }] });
    await plane.call('DELETE', `${path()}/peers/${peer.id}`, { token });
    const { peer: later } = await add('db');
    const { body, headers } = await read();
    expect(body.data.rules).toEqual([rule({ to: ['gone:db'] })]);
    expect(body.data.tests[0].to).toBe('gone:db');
    expect((await readMap()).body.data.rules.rules[0].to).toEqual([`peer:${peer.id}`]);
    const { enforcement: _, warnings: __, ...same } = body.data;
    const again = await set({ ...same, rules: [...same.rules, any('all', { to: ['peer:db'] })] });
    expect(again.body.data.rules.map(({ to }: { to: string[] }) => to)).toEqual([['gone:db'], ['peer:db']]);
    expect((await readMap()).body.data.rules.rules[1].to).toEqual([`peer:${later.id}`]);
    expect(again.headers.get('etag')).not.toBe(headers.get('etag'));
    const unknown = await set({ rules: [rule({ to: ['gone:web'] })] });
    expect([unknown.status, Object.keys(unknown.body.errors)]).toEqual([422, ['rules.0.to.0']]);
  });

  test('keep a route that the network lost, and refuse another', async () => {
    await add('laptop');
    const rules = [rule({ to: ['route:192.168.2.0/24', 'cidr:192.168.2.16/28'] })];
    await set({ rules });
    await plane.call('PATCH', path(), { token, body: { routes: ['192.168.1.0/24'] } });
    expect((await read()).body.data.rules).toEqual(rules);
    expect((await set({ rules: [...rules, any('all', { to: ['route:192.168.2.0/24'] })] })).status).toBe(200);
    expect((await set({ rules: [rule({ to: ['route:192.168.3.0/24'] })] })).status).toBe(422);
  });

  test('are kept in an open network, and its map has none', async () => {
    await add('laptop');
    await add('db');
    expect((await set({ mode: 'open', rules: [rule()] })).body.data).toMatchObject({ mode: 'open', rules: [rule()] });
    expect((await readMap()).body.data).not.toHaveProperty('rules');
  });

  test('of an empty list deny all in a closed network', async () => {
    await set({});
    expect((await readMap()).body.data.rules).toEqual({ mode: 'closed', rules: [] });
    await set({ require_enforcement: true });
    expect((await readMap()).body.data.rules).toEqual({ mode: 'closed', require_enforcement: true, rules: [] });
  });
});

describe('a change of rules', () => {
  test('is one revision, with an entry in the audit and an event; unchanged rules are none', async () => {
    await add('laptop');
    await add('db');
    const { revision } = (await readMap()).body.data;
    const first = await set({ rules: [rule()] });
    const again = await set({ rules: [rule()] }, { 'if-match': '"0-none"' });
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.headers.get('etag')).toBe(first.headers.get('etag'));
    expect((await readMap()).body.data.revision).toBe(revision + 1);
    const audit = await plane.call('GET', '/api/audit?action=rules.update', { token });
    expect(audit.body.data[0]).toMatchObject({
      target: { kind: 'network', id: network, name: 'office' },
      details: { mode: 'closed', rules: 1, tests: 0 },
    });
    const events = (await plane.call('GET', `${path()}/events`, { token })).body.data;
    expect(events.filter(({ type }: { type: string }) => type === 'rules.changed')).toHaveLength(1);
  });

  test('with If-Match of other rules is a 412, and changes nothing', async () => {
    const first = await set({});
    const etag = first.headers.get('etag') ?? '';
    expect(etag).toMatch(/^"1-[\w-]{12}"$/);
    const stale = await set({ mode: 'open' }, { 'if-match': '"0-none"' });
    expect([stale.status, stale.body.message]).toEqual([
      412,
      'the rules have changed since they were read; read them again',
    ]);
    expect((await read()).body.data.mode).toBe('closed');
    expect((await set({ mode: 'open' }, { 'if-match': `W/${etag}` })).status).toBe(200);
  });

  test.each([
    ['owner', 200],
    ['member', 403],
    ['viewer', 403],
  ] as const)('by an %s is answered with %i', async (role, status) => {
    const by = await plane.signIn(role);
    expect((await read(by)).status).toBe(200);
    expect((await set({}, {}, by)).status).toBe(status);
  });

  test('with a test that fails is a 422 that names it, unless nothing changes', async () => {
    await add('laptop', {}, { tags: ['ops'] });
    await add('db');
    const failing = { from: 'tag:ops', to: 'peer:db', protocol: 'tcp', port: 22, expect: 'allow' };
    const passing = { ...failing, port: 443 };
    const refused = await set({ rules: [rule()], tests: [passing, failing] });
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      { 'tests.1': ['tag:ops to peer:db must be allow: peer:laptop to peer:db: no rule allows it'] },
    ]);
    expect((await set({ rules: [rule()], tests: [passing] })).status).toBe(200);
    const { id } = (await readMap()).body.data.peers[0];
    await plane.call('PATCH', `${path()}/peers/${id}`, { token, body: { tags: [] } });
    await add('other', {}, { tags: ['ops'] });
    expect((await set({ rules: [rule()], tests: [passing] })).status).toBe(200);
    expect((await set({ rules: [rule({ name: 'http' })], tests: [passing] })).status).toBe(422);
  });

  test.each([
    [{ mode: 'shut' }, 'mode'],
    [{ rules: [rule({ from: [] })] }, 'rules'],
    [{ rules: [rule({ name: '' })] }, 'rules'],
    [{ rules: [rule(), rule()] }, 'rules.1.name'],
    [{ rules: [rule({ from: ['laptop'] })] }, 'rules.0.from.0'],
    [{ rules: [rule({ from: ['any', 'peer:stranger'] })] }, 'rules.0.from.1'],
    [{ rules: [rule({ to: ['tag:Web'] })] }, 'rules.0.to.0'],
    [{ rules: [rule({ to: ['route:192.168.3.0/24'] })] }, 'rules.0.to.0'],
    [{ rules: [rule({ to: ['route:192.168.1.1/24'] })] }, 'rules.0.to.0'],
    [{ rules: [rule({ to: ['cidr:192.168.3.7'] })] }, 'rules.0.to.0'],
    [{ rules: [rule({ to: ['cidr:10.77.0.1'] })] }, 'rules.0.to.0'],
    [{ rules: [rule({ ports: ['0'] })] }, 'rules.0.ports.0'],
    [{ rules: [rule({ ports: ['443', '80-22'] })] }, 'rules.0.ports.1'],
    [{ rules: [rule({ protocol: 'icmp' })] }, 'rules.0.ports'],
    [{ tests: [{ from: 'any', to: 'peer:stranger', expect: 'deny' }] }, 'tests.0.to'],
    [{ tests: [{ from: 'any', to: 'any', protocol: 'icmp', port: 1, expect: 'deny' }] }, 'tests.0.port'],
    [{ confirm_within_seconds: 9 }, 'confirm_within_seconds'],
  ])('to %j is a 422 that names %s', async (body, field) => {
    await add('laptop');
    await add('db');
    const { status, body: refusal } = await set(body);
    expect([status, Object.keys(refusal.errors)]).toEqual([422, [field]]);
    if (field.startsWith('rules.0')) expect(refusal.errors[field][0]).toMatch(/\(rule "web"\)$/);
    expect((await read()).headers.get('etag')).toBe('"0-none"');
  });

  test('that needs too many elements on a host names the rule', async () => {
    const ports = (from: number) => Array.from({ length: 64 }, (_, index) => String(from + 2 * index));
    const parts = Array.from({ length: 256 }, (_, index) => `cidr:192.168.1.${index}`);
    const wide = (name: string, from: number) => ({
      ...rule({ to: ['peer:db'], from: parts, ports: ports(from) }),
      name,
    });
    const many = Array.from({ length: 5 }, (_, index) => wide(`wide-${index}`, 1 + 200 * index));
    await add('laptop');
    await add('db');
    expect((await set({ rules: many.slice(0, 4) })).status).toBe(200);
    const { status, body } = await set({ rules: many });
    expect([status, body.errors]).toEqual([
      422,
      { 'rules.4': [expect.stringMatching(/^"wide-4" brings db to 81920 elements; a host has at most 65536; /)] },
    ]);
  });

  test('warns of a tag that no peer has, and of a limit that later peers exceed', async () => {
    const ports = Array.from({ length: 64 }, (_, index) => String(1 + 2 * index));
    const wide = Array.from({ length: 255 }, (_, index) => ({
      ...rule({ from: ['tag:ops'], to: ['tag:ops'], ports }),
      name: `wide-${index}`,
    }));
    const warnings = async () => (await read()).body.data.warnings;
    await add('db', {}, { tags: ['ops'] });
    await add('web', {}, { tags: ['ops'] });
    const tests = [{ from: 'tag:admn', to: 'tag:ops', expect: 'deny' }];
    expect(
      (await set({ rules: [...wide, rule({ from: ['tag:admn', 'tag:adm'] })], tests })).body.data.warnings,
    ).toEqual(['no peer has the tag admn (rule "web" and 1 more)', 'no peer has the tag adm (rule "web")']);
    await add('admin', {}, { tags: ['adm', 'admn'] });
    expect(await warnings()).toEqual([]);
    await add('last', {}, { tags: ['ops'] });
    expect(await warnings()).toEqual([
      expect.stringMatching(/^the rule "wide-\d+" brings db to \d+ elements; a host has at most 65536$/),
    ]);
  });

  test('takes 1,000 rules, and a body of 4 MiB', async () => {
    await add('laptop');
    const names = (count: number) => Array.from({ length: count }, () => 'tag:a-tag-that-no-peer-of-this-network-has');
    const rules = Array.from({ length: mostRules }, (_, index) => any(`${index}`, { from: names(40), to: names(40) }));
    expect((await set({ rules })).status).toBe(200);
    expect((await set({ rules: [...rules, any('one more')] })).body.errors).toEqual({
      rules: ['must be at most 1000'],
    });
    expect((await set({ rules: [any('one', { from: names(mostSelectors + 1) })] })).status).toBe(422);
    const tooLarge = await plane.call('PUT', `${path()}/rules`, { token, raw: ' '.repeat(4 * 1024 * 1024 + 1) });
    expect([tooLarge.status, tooLarge.body.message]).toEqual([413, 'the body of the request is larger than 4096 KiB']);
  });
});

describe('maps', () => {
  const since = async (etag: string) => (await readMap({ 'a-im': 'cpn-delta', 'if-none-match': etag })).body.data.rules;

  test('have the rules; changes since a map with the same rules leave out the list', async () => {
    await add('laptop');
    const open = (await readMap()).body.data.etag;
    await set({ rules: [any('all', { to: ['tag:db'] })] });
    const closed = (await readMap()).body.data.etag;
    await add('db');
    const list = (await readMap()).body.data.rules.rules;
    expect(list).toEqual([any('all', { from: [expect.stringMatching(/^peer:\d+$/)], to: ['tag:db'] })]);
    expect(await since(open)).toEqual({ mode: 'closed', rules: list });
    expect(await since(closed)).toEqual({ mode: 'closed' });
    await set({ rules: [], require_enforcement: true });
    expect(await since(closed)).toEqual({ mode: 'closed', require_enforcement: true, rules: [] });
    await set({ mode: 'open', rules: [] });
    expect(await since(closed)).toBeUndefined();
    expect((await readMap()).body.data).not.toHaveProperty('rules');
  });
});

test('a member makes keys for connectors, and gives peers what rules allow, only in an open network; an admin always', async () => {
  const { peer } = await add('edge', { peer_type: 'connector' });
  const member = await plane.signIn('member');
  let turn = 0;
  const statuses = async (by: string) => {
    turn += 1;
    const makeKey = (peer_types?: string[]) =>
      plane.call('POST', `${path()}/enrollment-keys`, { token: by, body: { name: 'k', peer_types } });
    const change = (body: object, as = by) => plane.call('PATCH', `${path()}/peers/${peer.id}`, { token: as, body });
    const serve = (...routes: string[]) => change({ routes });
    await change({ suspended: true }, token);
    const resumed = await change({ suspended: false });
    await change({ suspended: false }, token);
    const replies = [
      await makeKey(),
      await makeKey(['connector']),
      await makeKey(['origin', 'admin_device']),
      await serve(`192.168.${1 + (turn % 2)}.0/24`),
      await change({ priority: turn }),
      await change({ expires_at: `2099-01-0${turn}T00:00:00Z` }),
      resumed,
    ];
    return replies.map(({ status }) => status);
  };
  expect(await statuses(member)).toEqual([201, 201, 201, 200, 200, 200, 200]);
  const preview = () => plane.call('POST', `${path()}/rules/preview`, { token, body: { mode: 'closed' } });
  expect((await preview()).body.data.warnings).toEqual([
    'enrolment keys let hosts enrol as connectors, which send with any address of their routes: rack, k, k; revoke those that you do not need',
  ]);
  await set({ rules: [] });
  expect((await preview()).body.data.warnings).toEqual([]);
  expect(await statuses(member)).toEqual([403, 403, 201, 403, 403, 403, 403]);
  expect(await statuses(token)).toEqual([201, 201, 201, 200, 200, 200, 200]);
  const refused = await plane.call('POST', `${path()}/enrollment-keys`, { token: member, body: { name: 'k' } });
  expect(refused.body.message).toBe(
    'in a closed network, a member may not create keys for connectors; ask an owner or admin',
  );
});

test('a member sets the public key of a peer only in an open network, and an admin and the peer itself always', async () => {
  const { peer, access_token: own } = await add('db');
  const member = await plane.signIn('member');
  const change = (by: string) =>
    plane.call('PATCH', `${path()}/peers/${peer.id}`, { token: by, body: { public_key: publicKey() } });
  const statuses = async () => {
    const replies = [];
    for (const by of [member, token, own]) replies.push((await change(by)).status);
    return replies;
  };
  expect(await statuses()).toEqual([200, 200, 200]);
  await set({ rules: [] });
  expect(await statuses()).toEqual([403, 200, 200]);
});
