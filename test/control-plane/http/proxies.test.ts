import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { eventually } from '../../lab/eventually.ts';
import { call, closePlane, makeNetwork, openPlane, owner, type Plane, startPlane } from '../harness.ts';
import { connectRaw, refusalIn } from '../raw.ts';

const proxies = [parsePrefix('127.0.0.1/32'), parsePrefix('10.20.0.0/16')];

let plane: Plane;
beforeAll(async () => {
  plane = await openPlane({ proxies, limits: { failedLogins: 2 } });
});
afterAll(() => closePlane(plane));

function linesOf(log: string): { readonly level: number; readonly msg: string; readonly address: string }[] {
  const lines = log.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}

/** Sends a request from an address of this machine, and returns the client's address in the log. */
async function seenAs(on: Plane, from: string, headers: Record<string, string>): Promise<string> {
  const before = on.log().length;
  const client = await connectRaw(on.url, from);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  client.send(`GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines.join('')}\r\n`);
  await client.ended();
  const answered = () => linesOf(on.log().slice(before)).find(({ msg }) => msg === 'request answered');
  return (await eventually('a line of the log', answered)).address;
}

test.each([
  ['alone', '203.0.113.7', '203.0.113.7'],
  ['after what the client claims', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
  ['before another trusted proxy', '203.0.113.7, 10.20.0.3', '203.0.113.7'],
  ['as IPv6', '2001:db8::7', '2001:db8::7'],
  ['with a port', '203.0.113.7:4711', '203.0.113.7'],
  ['as IPv6 in brackets', '[2001:db8::7]', '2001:db8::7'],
  ['as IPv6 in brackets with a port', '[2001:db8::7]:4711', '2001:db8::7'],
  ['before another trusted proxy with a port', '203.0.113.7:4711, 10.20.0.3:80', '203.0.113.7'],
])('a trusted proxy says who calls: %s', async (_where, forwarded, address) => {
  expect(await seenAs(plane, '127.0.0.1', { 'X-Forwarded-For': forwarded })).toBe(address);
});

test('the last address that is no trusted proxy counts, however many a client claims to be', async () => {
  expect(await seenAs(plane, '127.0.0.1', { 'X-Forwarded-For': '127.0.0.1, 10.20.0.1, 203.0.113.7' })).toBe(
    '203.0.113.7',
  );
});

test.each([
  ['X-Forwarded-For', { 'X-Forwarded-For': '203.0.113.7' }],
  ['Forwarded', { Forwarded: 'for=203.0.113.7' }],
  ['X-Real-IP', { 'X-Real-IP': '203.0.113.7' }],
])('the header of any other client is ignored: %s', async (_name, headers) => {
  expect(await seenAs(plane, '127.0.0.2', headers)).toBe('127.0.0.2');
});

test('without trusted proxies the header is ignored, on this machine too', async () => {
  const trusting = await startPlane();
  expect(await seenAs(trusting, '127.0.0.1', { 'X-Forwarded-For': '203.0.113.7' })).toBe('127.0.0.1');
});

test.each([
  ['without --trust-proxy', []],
  ['next to a trusted proxy', proxies],
])('the log names an address that sends the headers of a proxy once: %s', async (_which, trusted) => {
  const warned = await startPlane({ proxies: trusted });
  if (trusted.length > 0) await seenAs(warned, '127.0.0.1', { 'X-Forwarded-For': '203.0.113.7' });
  await seenAs(warned, '127.0.0.2', {});
  expect(warned.log()).not.toContain('X-Forwarded');
  await seenAs(warned, '127.0.0.3', { 'X-Forwarded-For': 'canary' });
  await seenAs(warned, '127.0.0.4', { 'X-Forwarded-Proto': 'canary' });
  const warnings = linesOf(warned.log()).filter(({ msg }) => msg.includes('X-Forwarded'));
  expect(warnings).toMatchObject([{ level: 40, address: '127.0.0.3' }]);
  expect(warnings[0]?.msg).toContain('use --trust-proxy ADDRESS');
  expect(warned.log()).not.toContain('canary');
});

test('X-Forwarded-Proto alone is a header of a proxy too', async () => {
  const warned = await startPlane();
  await seenAs(warned, '127.0.0.2', { 'X-Forwarded-Proto': 'https' });
  expect(warned.log()).toContain('use --trust-proxy ADDRESS');
});

test.each(['unknown', '203.0.113.7:x', '[2001:db8::7', '_hidden'])(
  'a trusted proxy that says %j of who calls is refused',
  async (forwarded) => {
    const { status, body } = await plane.call('GET', '/healthz', {
      headers: { 'x-forwarded-for': `203.0.113.7, ${forwarded}` },
    });
    expect([status, body.errors]).toEqual([422, { 'x-forwarded-for': ['must end in the IP address of the client'] }]);
  },
);

test('limits hold for each address behind the proxy, whatever else the header claims', async () => {
  const login = async (forwarded: string) => {
    const headers = { 'x-forwarded-for': forwarded };
    return (await plane.call('POST', '/api/auth/login', { body: { ...owner, password: 'wrong' }, headers })).status;
  };
  const claims = [1, 2, 3, 4].map((last) => `198.51.100.${last}, 203.0.113.8`);
  const statuses: number[] = [];
  for (const claim of claims) statuses.push(await login(claim));
  expect(statuses).toEqual([401, 401, 429, 429]);
  expect(await login('203.0.113.9')).toBe(401);
});

test('limits hold for a direct client that claims another address each time', async () => {
  const body = JSON.stringify({ ...owner, password: 'wrong' });
  const statuses: number[] = [];
  for (const last of [1, 2, 3]) {
    const client = await connectRaw(plane.url, '127.0.0.3');
    const head = ['POST /api/auth/login HTTP/1.1', 'Host: x', 'Connection: close', 'Content-Type: application/json'];
    const headers = [`Content-Length: ${body.length}`, `X-Forwarded-For: 198.51.100.${last}`];
    client.send([...head, ...headers, '', body].join('\r\n'));
    statuses.push(refusalIn(await client.ended()).status);
  }
  expect(statuses).toEqual([401, 401, 429]);
});

test('the audit names who is behind the proxy', async () => {
  const token = await plane.signIn('owner');
  const from = { 'x-forwarded-for': '203.0.113.10' };
  const behind = {
    call: (method: string, path: string, options: object) => plane.call(method, path, { ...options, headers: from }),
  };
  await makeNetwork(behind, token);
  const { body } = await plane.call('GET', '/api/audit?limit=1', { token });
  expect(body.data[0]).toMatchObject({ action: 'network.create', address: '203.0.113.10' });
});

test('who comes by a proxy on this machine may be anywhere: a peer at loopback is refused', async () => {
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token, { name: 'lab' });
  const keys = await plane.call('POST', `/api/networks/${network}/enrollment-keys`, { token, body: { name: 'rack' } });
  const body = {
    enrollment_token: keys.body.data.enrollment_token,
    name: 'edge',
    public_key: Buffer.alloc(32, 1).toString('base64'),
    endpoint: '127.0.0.1:51820',
  };
  const reply = await plane.call('POST', '/api/networks/enroll', { body });
  expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['endpoint']]);
});

describe('a listener of each family, or of both', () => {
  const [client4, client6] = ['203.0.113.7', '2001:db8::7'];
  test.each<[string, string, string, string[], string, string]>([
    ['a trusted proxy', '127.0.0.1', '127.0.0.1', ['127.0.0.1/32'], client6, client6],
    ['a trusted proxy over IPv6', '::1', '[::1]', ['::1/128'], client4, client4],
    ['a trusted proxy over IPv4, at a listener of both', '::', '127.0.0.1', ['127.0.0.1/32'], client6, client6],
    ['a trusted proxy over IPv6, at a listener of both', '::', '[::1]', ['::/64'], client6, client6],
    ['a trusted proxy that writes IPv4 as IPv6', '::1', '[::1]', ['::1/128'], `::ffff:${client4}`, client4],
    [
      'one behind another in a range of IPv6',
      '::1',
      '[::1]',
      ['::/64', 'fd00:7::/32'],
      `${client4}, fd00:7::3`,
      client4,
    ],
    ['one behind a stranger of IPv6', '::1', '[::1]', ['::/64', 'fd00:7::/32'], `${client4}, fd00:8::3`, 'fd00:8::3'],
    ['a client that is no proxy', '127.0.0.1', '127.0.0.1', ['::1/128'], client4, '127.0.0.1'],
    ['a client over IPv6 that is no proxy', '::1', '[::1]', ['127.0.0.1/32', '2001:db8::/32'], client4, '::1'],
    ['a client over IPv4, at a listener of both', '::', '127.0.0.1', [], client6, '127.0.0.1'],
  ])('%s: %s by %s, trusting %j, with %s, is %s', async (_, host, by, trusted, forwarded, address) => {
    const on = await startPlane({
      host,
      proxies: trusted.map((each) => parsePrefix(each)),
      limits: { failedLogins: 1 },
    });
    const url = `http://${by}:${new URL(on.url).port}`;
    const headers = { 'x-forwarded-for': forwarded };
    const login = (password: string) => call(url, 'POST', '/api/auth/login', { body: { ...owner, password }, headers });
    const { access_token: token } = (await login(owner.password)).body.data;
    const [entry] = (await call(url, 'GET', '/api/audit?limit=1', { token })).body.data;
    const [session] = (await call(url, 'GET', '/api/auth/sessions', { token })).body.data;
    const { status } = await call(url, 'GET', '/metrics');
    const warnings = linesOf(on.log()).filter(({ msg }) => msg.includes('X-Forwarded'));
    expect(warnings.map((line) => line.address)).toEqual(['127.0.0.1', '::1'].includes(address) ? [address] : []);
    // A proxy on this machine would show the metrics to its clients.
    expect([entry.address, session.address, status]).toEqual([address, address, trusted.length > 0 ? 403 : 200]);
    expect([(await login('wrong')).status, (await login('wrong')).status]).toEqual([401, 429]);
  });
});
