import { afterEach, describe, expect, it, vi } from 'vitest';
import * as joining from '../../../src/app/join/join.ts';
import * as admin from '../../../src/cli/admin.ts';
import { join } from '../../../src/cli/commands/join.ts';
import * as login from '../../../src/cli/commands/login.ts';
import { updateNetwork } from '../../../src/cli/commands/network-change.ts';
import * as daemonUnit from '../../../src/cli/daemon/daemon-unit.ts';
import { peerTable } from '../../../src/cli/output/peer-table.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import { joinedTo, mapAt } from '../../app/joined-state.ts';
import { peer } from '../../core/samples.ts';
import { runCommand } from './run-command.ts';

afterEach(() => vi.restoreAllMocks());

const settings = { roles: ['member', 'viewer'], limit: 5, reauth_hours: 24 };
const office = { id: 1, name: 'office', private_cidr: '10.77.0.0/24', routes: [], self_enroll: settings };
const lab = { id: 2, name: 'lab', private_cidr: '10.78.0.0/24', routes: [] };

describe('cpn network update', () => {
  /** The change that is sent, or the message of the refusal. */
  async function change(given: object, network: object = office, describes = true) {
    const updated = vi.fn(async (_id: number, _fields: object) => network);
    const service = { describes: async () => describes, listNetworks: async () => [network], updateNetwork: updated };
    vi.spyOn(admin, 'openAdmin').mockResolvedValue(service as never);
    const { error } = await runCommand(updateNetwork, { network: '1', ...given });
    return error?.message ?? updated.mock.calls[0]?.[1];
  }
  const closed = { ...lab, id: 1 };

  it.each<[object, object, object | null]>([
    [{ 'self-enroll': 'member' }, closed, { roles: ['member'], limit: 3, reauth_hours: null }],
    [
      { 'self-enroll': 'viewer, member', 'self-enroll-limit': '7', reauth: '7d' },
      closed,
      { roles: ['member', 'viewer'], limit: 7, reauth_hours: 168 },
    ],
    [{ 'self-enroll': 'owner' }, office, { ...settings, roles: ['owner'] }],
    [{ reauth: '8h' }, office, { ...settings, reauth_hours: 8 }],
    [{ reauth: 'off' }, office, { ...settings, reauth_hours: null }],
    [{ 'self-enroll-limit': '1' }, office, { ...settings, limit: 1 }],
    [{ 'self-enroll': 'off' }, office, null],
  ])('with %j keeps the other settings', async (given, network, self_enroll) => {
    expect(await change(given, network)).toEqual({ self_enroll });
  });

  it.each<[object, string]>([
    [{ 'self-enroll': 'boss' }, '--self-enroll "boss" must be roles, with commas between them: owner, admin, member'],
    [{ 'self-enroll': 'off', reauth: '1h' }, '--self-enroll off excludes --self-enroll-limit and --reauth'],
    [{ 'self-enroll': 'member', 'self-enroll-limit': '101' }, 'is not a number from 1 to 100'],
    [{ 'self-enroll': 'member', reauth: '90m' }, '--reauth "90m" must be from 1h to 365d, such as 24h, or "off"'],
    [{ 'self-enroll': 'member', reauth: '366d' }, 'must be from 1h to 365d'],
    [{ reauth: '1h' }, '--reauth needs --self-enroll: no user may enrol own devices in this network yet'],
  ])('with %j is refused', async (given, message) => {
    expect(await change(given, closed)).toContain(message);
  });

  it('at an older service is refused', async () => {
    expect(await change({ 'self-enroll': 'member' }, closed, false)).toBe(
      'this control plane has no own devices of users; leave out --self-enroll and --reauth',
    );
  });
});

describe('cpn join --login', () => {
  const state = joinedTo(mapAt('"1"', [peer(2)]));
  const key = `cpn_${'k'.repeat(43)}`;

  async function run(given: object, { networks = [office, lab] as object[], describes = true, refusal = false } = {}) {
    vi.restoreAllMocks();
    const joined = vi.spyOn(joining, 'joinNetwork').mockResolvedValue({
      ...{ state, handshake: true, answered: null, secretMismatches: [], unloaded: null, savedProxy: null },
    });
    vi.spyOn(daemonUnit, 'enableDaemon').mockResolvedValue(true);
    const service = { url: 'https://cp.example.net', insecureHttp: false };
    vi.spyOn(login, 'confirmAddress').mockResolvedValue(service);
    const session = { value: new Secret('cpu_session'), expiresAt: null, isSession: true, email: null, remedies: {} };
    const opened = vi.spyOn(login, 'openSession').mockResolvedValue(session);
    const ended = vi.spyOn(login, 'endSession').mockResolvedValue();
    const created = vi.fn(async (_network: number, _body: object) => {
      if (refusal) throw new Refused(403, 'making a key', 'as many own devices as it allows', 'remove one');
      return { enrollment_token: key };
    });
    const calls = { describes: async () => describes, listNetworks: async () => networks, createOwnDevice: created };
    const profile = async () => ({ email: 'ann@example.net', role: 'viewer', organization: null });
    vi.spyOn(admin, 'connectAdmin').mockResolvedValue({ ...calls, profile } as never);
    const { error } = await runCommand(join, { api: 'https://cp.example.net', login: true, ...given }, { tools: {} });
    const [request] = joined.mock.calls.map(([, each]) => each);
    const counts = { opened: opened.mock.calls.length, ended: ended.mock.calls.length };
    return { message: error?.message, request, network: created.mock.calls[0]?.[0], ...counts };
  }

  it('joins the only network that lets the user as an admin_device, and ends the session before that', async () => {
    const { request, ...rest } = await run({});
    expect(rest).toEqual({ message: undefined, network: 1, opened: 1, ended: 1 });
    expect([request?.type, request?.token.reveal(), request?.personalToken]).toEqual(['admin_device', key, null]);
  });

  it('joins the network that is named, whose refusal ends the session too', async () => {
    expect(await run({ network: 'lab' })).toMatchObject({ network: 2, ended: 1 });
    const refused = await run({ network: 'lab' }, { refusal: true });
    expect(refused).toMatchObject({ request: undefined, ended: 1 });
    expect(refused.message).toContain('as many own devices as it allows');
  });

  it.each<[object, object, string]>([
    [{}, { networks: [lab] }, 'no network lets viewer enrol own devices; an admin makes a key with "cpn key create"'],
    [{}, { networks: [office, { ...office, id: 3, name: 'hq' }] }, 'several networks let you enrol own devices; give'],
    [{}, { describes: false }, 'this control plane has no own devices of users; join with a key of an admin'],
  ])('is refused with %j where %j, and leaves no session', async (given, scene, message) => {
    const refused = await run(given, scene);
    expect(refused).toMatchObject({ request: undefined, opened: 1, ended: 1 });
    expect(refused.message).toContain(message);
  });

  it.each<[object, string]>([
    [{ key }, 'an enrolment key and --login exclude each other'],
    [{ 'token-file': '/t' }, '--token-file and --login exclude each other'],
    [{ type: 'connector' }, '--login joins an admin_device, not connector; leave out --type'],
    [{ login: false, key, email: 'a@example.net' }, '--email is for --login; add --login, or leave it out'],
  ])('with %j is refused before a prompt', async (given, message) => {
    const refused = await run(given);
    expect(refused).toMatchObject({ request: undefined, opened: 0 });
    expect(refused.message).toContain(message);
  });
});

it('the table of peers has the users of own devices, also removed ones, and no column without them', () => {
  const of = (id: number, fields: object = {}) =>
    ({
      id,
      name: `p${id}`,
      peer_type: 'origin',
      public_key: 'k',
      address: '10.77.0.1',
      endpoint: null,
      ...fields,
    }) as never;
  const user = (id: number | null) => ({ user: { id, email: 'ann@example.net' } });
  const table = peerTable([of(1), of(2, user(4)), of(3, user(null))], null, { isWide: true });
  expect(table).toMatch(/ user .*\n.*\n.* ann@example\.net +.*\n.* ann@example\.net \(removed\) /);
  expect(peerTable([of(1)], null)).not.toContain('user');
});
