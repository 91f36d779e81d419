import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { NewEnrollmentKey } from '../../src/contract/enrollment-key.ts';
import type { Network } from '../../src/contract/network.ts';
import type { Peer } from '../../src/contract/peer.ts';
import { brokenOff, bytes, hungUp, json, type Reply } from '../api/server.ts';
import { failureOf, loadModule, serveConsole, stubBrowser } from './browser-globals.ts';
import { connector, lan, network, peer } from './samples.ts';

interface Phones {
  enrollPhone(request: object): Promise<{ config: string; file: string; problem: string | null }>;
  repeat(attempt: object): Promise<{ name: string }>;
  keepPhone(enroll: () => Promise<unknown>): Promise<void>;
  keptPhone: { value: unknown };
}

let browser: ReturnType<typeof stubBrowser>;
beforeEach(() => {
  vi.resetModules();
  browser = stubBrowser();
});
afterEach(() => browser.close());

describe('the enrolment of a phone', () => {
  const edge = connector(1, { endpoint: '203.0.113.1:51820', name: 'edge' });
  const office = network([edge, peer(2)], { routes: [lan] });
  const key = { id: 5, enrollment_token: 'cpn_x' } as NewEnrollmentKey;
  const request = { network: office, name: 'my phone', expiresInHours: 48, connector: edge as Peer | null };
  const profile = {
    connector: 1,
    public_key: edge.public_key,
    endpoint: '203.0.113.1:51820',
    routes: [lan],
    declined: [],
  };
  const listed = peer(9, {
    name: 'my phone',
    dns_label: 'my-phone',
    peer_type: 'admin_device',
    via: 'connectors',
    profile,
  });
  const enrolled = json(201, { data: { peer: listed, network: office as Network, access_token: 't' } });
  const made = json(201, { data: key });
  const short = ({ method, path }: { method: string; path: string }) =>
    `${method} ${path.replace('/vpn/api/networks/', '')}`;

  test('takes a key of one use, sends the public key alone, and gives the file', async () => {
    const { enrollPhone } = await loadModule<Phones>('enroll-phone');
    const { asked } = await serveConsole(made, enrolled);
    const phone = await enrollPhone(request);
    expect(asked.map(short)).toEqual(['POST 1/enrollment-keys', 'POST enroll']);
    expect(JSON.parse(asked[0]?.body ?? '')).toEqual({
      ...{
        name: 'my phone',
        max_uses: 1,
        expires_in_hours: 1,
        peer_types: ['admin_device'],
        peer_expires_in_hours: 48,
      },
    });
    const body = JSON.parse(asked[1]?.body ?? '');
    expect(body).toMatchObject({
      ...{ enrollment_token: 'cpn_x', name: 'my phone', peer_type: 'admin_device' },
      profile: { connector: 1, routes: [lan] },
    });
    expect([phone.file, phone.problem]).toEqual(['my-phone.conf', null]);
    const [, privateKey = ''] = /PrivateKey = (.*)/.exec(phone.config) ?? [];
    expect(JSON.stringify(asked)).not.toContain(privateKey);
    expect(Buffer.from(privateKey, 'base64')).toHaveLength(32);
    expect(asked[1]?.headers['idempotency-key']).toMatch(/^[A-Za-z0-9+/]{22}==$/);
  });

  test('for all peers has no profile, and without an end none', async () => {
    const { enrollPhone } = await loadModule<Phones>('enroll-phone');
    const { asked } = await serveConsole(made, enrolled);
    await enrollPhone({ ...request, connector: null, expiresInHours: null });
    expect(JSON.parse(asked[0]?.body ?? '')).not.toHaveProperty('peer_expires_in_hours');
    expect(JSON.parse(asked[1]?.body ?? '')).not.toHaveProperty('profile');
  });

  test.each<[string, Reply]>([
    ['a lost reply', hungUp],
    ['a reply that breaks off', brokenOff],
    ['a 500', json(500, {})],
    ['a 503', json(503, {})],
    ['a reply that is no JSON', bytes(201, '<html>')],
  ])('after %s keeps its keys, revokes nothing, and is the same when it is repeated', async (_, reply) => {
    const { enrollPhone, repeat } = await loadModule<Phones>('enroll-phone');
    const { asked } = await serveConsole(made, reply, enrolled);
    const unknown = (await failureOf(enrollPhone(request))) as unknown as { attempt: object; message: string };
    expect(unknown.message).toContain('may have enrolled the phone');
    expect((await repeat(unknown.attempt)).name).toBe('my phone');
    expect(asked.map(short)).toEqual(['POST 1/enrollment-keys', 'POST enroll', 'POST enroll']);
    expect(asked[2]?.body).toBe(asked[1]?.body);
    expect(asked[2]?.headers['idempotency-key']).toBe(asked[1]?.headers['idempotency-key']);
  });

  test.each<[string, Reply, string]>([
    ['in general', json(403, { message: 'no' }), 'No.'],
    [
      'for its profile',
      json(422, { message: 'no', errors: { profile: ['names no connector'] } }),
      'The profile names no connector.',
    ],
    ['for another field', json(422, { message: 'no', errors: { name: ['is long'] } }), 'No.'],
  ])('that is refused %s has its key revoked, and says why, also where that fails', async (_, reply, message) => {
    const { enrollPhone } = await loadModule<Phones>('enroll-phone');
    for (const revoked of [json(200, { data: null }), json(500, {})]) {
      const { asked } = await serveConsole(made, reply, revoked);
      expect((await failureOf(enrollPhone(request))).message).toBe(message);
      expect(asked.map(short)).toEqual(['POST 1/enrollment-keys', 'POST enroll', 'DELETE 1/enrollment-keys/5']);
    }
  });

  test.each<[string, object, boolean]>([
    [
      'its connector',
      { network: network([{ ...edge, network_secret_tag: 'ab' }]), connector: { ...edge, network_secret_tag: 'ab' } },
      true,
    ],
    ['a peer that it dials', { network: network([{ ...edge, network_secret_tag: 'ab' }]), connector: null }, true],
    [
      'another peer than its connector',
      { network: network([edge, peer(2, { network_secret_tag: 'ab' })]), connector: edge },
      false,
    ],
    [
      'a peer that it would dial without its connector',
      { network: network([edge, { ...edge, id: 2, network_secret_tag: 'ab' }]), connector: edge },
      false,
    ],
    [
      'a peer without an endpoint',
      { network: network([edge, peer(2, { network_secret_tag: 'ab' })]), connector: null },
      false,
    ],
  ])('is refused before anything is sent where %s has a network secret: %#', async (_, fields, isRefused) => {
    const { enrollPhone } = await loadModule<Phones>('enroll-phone');
    const { asked } = await serveConsole(made, enrolled);
    const [outcome] = await Promise.allSettled([enrollPhone({ ...request, ...fields })]);
    expect([outcome.status, asked.length]).toEqual(isRefused ? ['rejected', 0] : ['fulfilled', 2]);
    if (outcome.status === 'rejected') expect(outcome.reason.message).toContain('--new-peer my-phone --qr');
  });

  test('whose file no wg-quick file can hold is not sent, and keeps its key where that is found later', async () => {
    const { enrollPhone } = await loadModule<Phones>('enroll-phone');
    const hostile = { ...edge, endpoint: '203.0.113.1:1\nPostUp = reboot' };
    const { asked } = await serveConsole(made, enrolled);
    await failureOf(enrollPhone({ ...request, network: network([hostile]), connector: hostile }));
    expect(asked).toEqual([]);
    const later = json(201, { data: { peer: peer(9), network: network([hostile]) } });
    await serveConsole(made, later);
    const { config, problem } = await enrollPhone({ ...request, connector: null });
    expect(problem).toContain('no wg-quick file can hold');
    expect(config).toMatch(/^\[Interface\]\nPrivateKey = .{43}=\nAddress = 10\.77\.0\.9\/32\n$/);
  });
});

describe('the key of a phone', () => {
  const isHeld = () => browser.listeners.has('beforeunload');

  test('is kept with the page from its enrolment until the user closes it', async () => {
    const { keepPhone, keptPhone } = await loadModule<Phones>('enroll-phone');
    expect([keptPhone.value, isHeld()]).toEqual([null, false]);
    let enrol = (_: object) => {};
    const keeping = keepPhone(() => new Promise((resolve) => (enrol = resolve)));
    expect([keptPhone.value, isHeld()]).toEqual([null, true]);
    expect((await failureOf(keepPhone(() => expect.unreachable()))).message).toContain('is being enrolled');
    const phone = { name: 'phone' };
    enrol(phone);
    await keeping;
    expect([keptPhone.value, isHeld()]).toEqual([phone, true]);
    expect((await failureOf(keepPhone(() => expect.unreachable()))).message).toContain('another phone is shown');
    expect(keptPhone.value).toBe(phone);
    keptPhone.value = null;
    expect(isHeld()).toBe(false);
  });

  test('is none where the enrolment fails, and the next one may begin', async () => {
    const { keepPhone, keptPhone } = await loadModule<Phones>('enroll-phone');
    const failed = new Error('no');
    expect(await failureOf(keepPhone(() => Promise.reject(failed)))).toBe(failed);
    expect([keptPhone.value, isHeld()]).toEqual([null, false]);
    await keepPhone(async () => 'phone');
    expect([keptPhone.value, isHeld()]).toEqual(['phone', true]);
  });
});
