import { describe, expect, test } from 'vitest';
import type { AdminService } from '../../src/api/admin-service.ts';
import { connectAdminService } from '../../src/api/admin-service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply, InvalidValue, WrongUsage } from '../../src/core/errors/index.ts';
import { failureOf, networkBody, peerBody, without } from './samples.ts';
import { json, type Reply, serve } from './server.ts';

const token = new Secret('token-sample');
const key = { name: 'rack 7', max_uses: 2, expires_in_hours: 48 };

/** What a service that answers so is asked for, and what comes of it. */
async function ask<T>(reply: Reply, question: (service: AdminService) => Promise<T>, bearer: Secret | null = token) {
  const { address, asked } = await serve(reply);
  const [outcome] = await Promise.allSettled([question(connectAdminService(address, bearer))]);
  const failure = outcome.status === 'rejected' ? (outcome.reason as Error) : null;
  const value = outcome.status === 'fulfilled' ? outcome.value : null;
  return {
    value,
    failure,
    asked,
    request: asked[0] && { ...asked[0], body: asked[0].body && JSON.parse(asked[0].body) },
  };
}

describe('login', () => {
  const session = { access_token: 'cpa_1', token_type: 'Bearer', expires_at: '2026-03-02T12:00:00.000Z' };
  const login = (service: AdminService) => service.login('a@example.net', new Secret('pass word'), 'cpn on laptop');

  test('sends no bearer and gives the token', async () => {
    const { value, request } = await ask(json(200, { data: session }), login, null);
    expect(value?.token.reveal()).toBe('cpa_1');
    expect(value?.expiresAt).toBe(session.expires_at);
    expect(request).toMatchObject({ method: 'POST', path: '/api/auth/login' });
    expect(request?.headers.authorization).toBeUndefined();
    expect(request?.body).toEqual({ email: 'a@example.net', password: 'pass word', device_name: 'cpn on laptop' });
  });

  test('takes a token under another name and without an end', async () => {
    const { value } = await ask(json(200, { token: 'cpa_1' }), login);
    expect([value?.token.reveal(), value?.expiresAt]).toEqual(['cpa_1', null]);
  });

  test.each([
    [{}, 'lacks access_token'],
    [{ ...session, access_token: 7 }, 'access_token is not a string'],
    [{ ...session, token_type: 'MAC' }, 'token_type is not Bearer'],
  ])('refuses %j', async (body, problem) => {
    const { failure } = await ask(json(200, { data: body }), login);
    expect(failure).toBeInstanceOf(BadReply);
    expect(failure?.message).toContain(problem);
    expect(failure?.message).not.toMatch(/canary|cpa_1/);
  });

  test.each([
    ['email', 'unknown', 'pw', 'laptop'],
    ['password', 'a@example.net', '', 'laptop'],
  ])('refuses a bad %s before anything is sent', async (field, email, password, device) => {
    const { failure, asked } = await ask(json(200, {}), (it) => it.login(email, new Secret(password), device));
    expect(failure).toBeInstanceOf(InvalidValue);
    expect((failure as InvalidValue).field).toBe(field);
    if (field === 'password') expect(failure?.message).toBe('password must not be empty');
    expect(asked).toHaveLength(0);
  });
});

describe('profile', () => {
  const profile = { id: 3, email: 'a@example.net', role: 'admin', organization: { id: 1, name: 'Example' } };

  test('is decoded', async () => {
    const { value, request } = await ask(json(200, { data: profile }), (it) => it.profile());
    expect(value).toEqual(without(profile, 'id'));
    expect(request).toMatchObject({
      method: 'GET',
      path: '/api/auth/me',
      headers: { authorization: 'Bearer token-sample' },
    });
  });

  test.each([
    [without(profile, 'email'), { email: null }],
    [without(profile, 'role'), { role: null }],
    [without(profile, 'organization'), { organization: null }],
    [{ ...profile, role: 'king' }, { role: 'king' }],
    [{ ...profile, role: 7 }, { role: null }],
    [{ ...profile, organization: { id: 'x', name: 'y' } }, { organization: { id: 'x', name: 'y' } }],
  ])('says of %j what it says', async (body, said) => {
    const { value } = await ask(json(200, { data: body }), (it) => it.profile());
    expect(value).toEqual({ ...without(profile, 'id'), ...said });
  });
});

describe('networks', () => {
  const summary = without(networkBody(), 'peers');

  test('are listed', async () => {
    const { value, request } = await ask(json(200, { data: [summary], meta: {} }), (it) => it.listNetworks());
    expect(value).toEqual([summary]);
    expect(request).toMatchObject({ method: 'GET', path: '/api/networks' });
  });

  test('are listed without the envelope, and with what a service need not tell left open', async () => {
    const bare = { id: 7, name: 'office', cidr: '10.77.0.0/16', routes: [] };
    const { value } = await ask(json(200, [bare]), (it) => it.listNetworks());
    expect(value).toEqual([
      {
        id: 7,
        name: 'office',
        description: '',
        private_cidr: '10.77.0.0/16',
        routes: [],
        vpn_type: 'wireguard',
        revision: null,
      },
    ]);
  });

  test('are none where the list is empty, and a BadReply where there is no list', async () => {
    expect((await ask(json(200, { data: [] }), (it) => it.listNetworks())).value).toEqual([]);
    const { failure } = await ask(json(200, { data: {} }), (it) => it.listNetworks());
    expect(failure?.message).toContain('networks is not a list');
  });

  test('one bad network in a list is named', async () => {
    const { failure } = await ask(json(200, { data: [summary, {}] }), (it) => it.listNetworks());
    expect(failure?.message).toContain('lacks networks[1].id (it has: nothing)');
  });

  test('are read with their peers, in the names of the contract', async () => {
    const { value, request } = await ask(json(200, { data: networkBody() }), (it) => it.readNetwork(7));
    expect(value).toEqual(networkBody());
    expect(request).toMatchObject({ method: 'GET', path: '/api/networks/7' });
  });

  test('are read from a service that tells less', async () => {
    const peer = without(without(peerBody(1), 'created_at'), 'endpoint');
    const { value } = await ask(json(200, networkBody({ peers: [peer] })), (it) => it.readNetwork(7));
    expect(value?.peers).toEqual([peerBody(1, { created_at: null, endpoint: null })]);
  });

  test('are read under the same checks as a map', async () => {
    const twins = networkBody({ peers: [peerBody(1), peerBody(1)] });
    const { value } = await ask(json(200, { data: twins }), (it) => it.readNetwork(7));
    expect(value).toMatchObject({ peers: [], skipped_peers: [{ id: 1 }, { id: 1 }] });
  });

  test('are made', async () => {
    const wanted = { name: 'office', private_cidr: '10.77.0.0/16', description: 'd', routes: ['192.168.10.0/24'] };
    const { value, request } = await ask(json(201, { data: summary }), (it) => it.createNetwork(wanted));
    expect(value).toEqual({ ...summary, peers: [] });
    expect(request).toMatchObject({ method: 'POST', path: '/api/networks', body: wanted });
  });

  test.each([
    ['name', { name: '' }, 'must not be empty'],
    ['name', { name: 'a'.repeat(121) }, 'must be at most 120 characters'],
    ['private_cidr', { private_cidr: '1'.repeat(33) }, 'must be at most 32 characters'],
    ['description', { description: 'a'.repeat(1001) }, 'must be at most 1000 characters'],
    ['routes', { routes: Array(51).fill('192.168.10.0/24') }, 'must be at most 50 routes'],
    ['routes[1]', { routes: ['192.168.10.0/24', '1'.repeat(33)] }, 'must be at most 32 characters'],
    [
      'route_dns[0].domains',
      { route_dns: [{ route: '192.168.10.0/24', dns_servers: ['192.168.10.1'], domains: [] }] },
      'must name a domain',
    ],
    ['vpn_type', { vpn_type: 'openvpn' as 'wireguard' }, 'must be wireguard'],
    ['name', { name: 7 as unknown as string }, 'must be of type string'],
  ])('are not made with a bad %s', async (field, changes, rule) => {
    const wanted = { name: 'office', private_cidr: '10.77.0.0/16', ...changes };
    const { failure, asked } = await ask(json(201, { data: summary }), (it) => it.createNetwork(wanted));
    expect(failure).toBeInstanceOf(InvalidValue);
    expect(failure).toMatchObject({ field, rule });
    expect(asked).toHaveLength(0);
  });

  test('are deleted', async () => {
    const { failure, request } = await ask(json(200, {}), (it) => it.deleteNetwork(7));
    expect(failure).toBeNull();
    expect(request).toMatchObject({ method: 'DELETE', path: '/api/networks/7' });
  });
});

describe('keys', () => {
  const made = {
    id: 5,
    name: 'rack 7',
    enrollment_token: 'cpn_new',
    max_uses: 2,
    uses: 0,
    expires_at: '2026-03-02T12:00:00.000Z',
  };

  test('are made', async () => {
    const { value, request } = await ask(json(201, { data: made }), (it) => it.createKey(7, key));
    expect(value).toEqual(made);
    expect(request).toMatchObject({ method: 'POST', path: '/api/networks/7/enrollment-keys', body: key });
  });

  test('are limited where the service says so, and are not lost for a limit that cannot be read', async () => {
    const limits = { peer_types: ['connector' as const], routes: ['192.168.1.0/24'] };
    const limited = await ask(json(201, { data: { ...made, ...limits } }), (it) =>
      it.createKey(7, { ...key, ...limits }),
    );
    expect([limited.value, limited.request?.body]).toEqual([
      { ...made, ...limits },
      { ...key, ...limits },
    ]);
    const odd = await ask(json(201, { data: { ...made, peer_types: 'all', routes: 3 } }), (it) => it.createKey(7, key));
    expect(odd.value).toEqual(made);
  });

  test('need only their token, which is shown this once', async () => {
    const { value } = await ask(json(201, { key: 'cpn_new' }), (it) => it.createKey(7, key));
    expect(value).toEqual({ ...made, id: null, expires_at: null });
  });

  test('without a token are refused', async () => {
    const { failure } = await ask(json(201, { data: without(made, 'enrollment_token') }), (it) => it.createKey(7, key));
    expect(failure?.message).toContain('lacks enrollment_token (it has: id, name, max_uses, uses, expires_at)');
  });

  test.each([
    ['max_uses', { max_uses: 0 }, 'must be at least 1'],
    ['max_uses', { max_uses: 11 }, 'must be at most 10'],
    ['max_uses', { max_uses: 1.5 }, 'must be a whole number'],
    ['max_uses', { max_uses: Number.NaN }, 'must be of type number'],
    ['expires_in_hours', { expires_in_hours: 0 }, 'must be at least 1'],
    ['expires_in_hours', { expires_in_hours: 169 }, 'must be at most 168'],
    ['name', { name: '' }, 'must not be empty'],
    ['name', { name: 'a'.repeat(121) }, 'must be at most 120 characters'],
  ])('are not made with a bad %s: %j', async (field, changes, rule) => {
    const { failure, asked } = await ask(json(201, { data: made }), (it) => it.createKey(7, { ...key, ...changes }));
    expect(failure).toBeInstanceOf(InvalidValue);
    expect(failure).toMatchObject({ field, rule });
    expect(asked).toHaveLength(0);
  });

  test('are made with the limits at their ends', async () => {
    for (const ends of [
      { max_uses: 1, expires_in_hours: 1 },
      { max_uses: 10, expires_in_hours: 168 },
    ]) {
      expect((await ask(json(201, { data: made }), (it) => it.createKey(7, { ...key, ...ends }))).failure).toBeNull();
    }
  });
});

describe('the rest', () => {
  test('a peer is removed', async () => {
    const { failure, request } = await ask(json(200, {}), (it) => it.removePeer(7, 3));
    expect(failure).toBeNull();
    expect(request).toMatchObject({ method: 'DELETE', path: '/api/networks/7/peers/3' });
  });

  test('a logout revokes the token that makes it', async () => {
    const { failure, request } = await ask(json(200, {}), (it) => it.logout());
    expect(failure).toBeNull();
    expect(request).toMatchObject({
      method: 'POST',
      path: '/api/auth/logout',
      headers: { authorization: 'Bearer token-sample' },
    });
    expect(request?.body).toBe('');
  });

  test.each([
    ['logout', (it) => it.logout()],
    ['profile', (it) => it.profile()],
    ['listNetworks', (it) => it.listNetworks()],
    ['readNetwork', (it) => it.readNetwork(7)],
    ['createNetwork', (it) => it.createNetwork({ name: 'n', private_cidr: '10.77.0.0/16' })],
    ['deleteNetwork', (it) => it.deleteNetwork(7)],
    ['createKey', (it) => it.createKey(7, key)],
    ['removePeer', (it) => it.removePeer(7, 3)],
  ] satisfies [string, (service: AdminService) => Promise<unknown>][])('%s needs a login', async (_, question) => {
    const { address, asked } = await serve(json(200, {}));
    const failure = await failureOf(question(connectAdminService(address, null)));
    expect(failure).toBeInstanceOf(WrongUsage);
    expect(failure.message).toContain('cpn login');
    expect(asked).toHaveLength(0);
  });
});
