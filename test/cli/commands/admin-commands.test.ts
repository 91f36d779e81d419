import { afterEach, describe, expect, it, vi } from 'vitest';
import { audit } from '../../../src/cli/commands/audit.ts';
import { events } from '../../../src/cli/commands/events.ts';
import { createKey, revokeKey } from '../../../src/cli/commands/key.ts';
import { updatePeer } from '../../../src/cli/commands/peer.ts';
import { Input } from '../../../src/cli/input/input.ts';
import type { Command } from '../../../src/cli/parse/command.ts';
import { EventType } from '../../../src/contract/event.ts';
import { type Conduct, json, startForeignService } from '../../plain/foreign-service.ts';
import { captureOutput } from './run-command.ts';

afterEach(() => vi.restoreAllMocks());

/** Runs an administrator's command at a service, and returns what it printed and requested. */
async function run(command: Command, given: object, conduct: Partial<Conduct> = {}) {
  const written = captureOutput();
  const service = await startForeignService(conduct);
  const environment = { CPN_API_TOKEN: 'token', NO_COLOR: '1', XDG_CONFIG_HOME: '/nonexistent' };
  try {
    const exitCode = await command.run(new Input({ api: service.url, ...given }, command.flags, environment));
    return { ...written, exitCode, service };
  } finally {
    vi.restoreAllMocks();
  }
}

const entry = (id: number) => ({
  ...{ id, at: '2030-01-01T00:00:00Z', action: 'network.updated', address: '192.0.2.1', details: {} },
  actor: { kind: 'user', id: 5, name: 'me@example.net' },
  target: { kind: 'network', id: 4711, name: 'office' },
});

describe('a page of the audit log', () => {
  const page = (count: number) => Array.from({ length: count }, (_, index) => entry(100 - index));
  const answers = (count: number): Conduct['answers'] => ({
    'GET /api/audit?limit=3': (response) => json(response, 200, { data: page(count) }),
    'GET /api/audit?before=98&limit=3': (response) => json(response, 200, { data: [] }),
  });

  it.each([
    [2, null],
    [3, 98],
  ])('of %i entries within a limit of 3 has the next page at %s', async (count, next) => {
    const { stdout, stderr } = await run(audit, { limit: '3' }, { answers: answers(count) });
    expect(stdout.trim().split('\n')).toHaveLength(count + 1);
    expect(stderr).toBe(next === null ? '' : `older entries: cpn audit --limit 3 --before ${next}\n`);
    const printed = await run(audit, { limit: '3', json: true }, { answers: answers(count) });
    const document = JSON.parse(printed.stdout);
    expect([document.entries.length, document.next]).toEqual([count, next]);
  });

  it('that is empty is said, with what it was to be before', async () => {
    expect((await run(audit, { limit: '3' }, { answers: answers(0) })).stderr).toBe('the audit log is empty\n');
    const older = await run(audit, { limit: '3', before: '98' }, { answers: answers(0) });
    expect(older.stderr).toBe('there are no entries before 98\n');
  });
});

it('the types of events that a command line may name are those of the contract', () => {
  expect([...(events.flags.type?.choices ?? [])].toSorted()).toEqual([...EventType.options].toSorted());
});

describe('an enrolment key', () => {
  const keys = '/api/networks/4711/enrollment-keys';
  const made: Conduct['answers'] = {
    [`POST ${keys}`]: (response, { body }) =>
      json(response, 201, {
        data: { id: 9, enrollment_token: `cpn_${'k'.repeat(43)}`, expires_at: '2030-01-02T00:00:00Z', ...body },
      }),
  };
  const create = (given: object, answers = made) =>
    run(createKey, { network: 'office', name: 'web', ...given }, { answers });
  const requestOf = async (given: object) =>
    (await create(given)).service.received.find(({ method }) => method === 'POST')?.body;

  it('is for one server or device, for a day, unless flags say otherwise', async () => {
    expect(await requestOf({})).toEqual({
      ...{ name: 'web', max_uses: 1, expires_in_hours: 24 },
      peer_types: ['origin', 'admin_device'],
    });
    const limits = { type: ['connector', 'connector'], route: ['10.0.0.0/8'], 'max-uses': '10' };
    expect(await requestOf({ ...limits, 'expires-in-hours': '168' })).toEqual({
      ...{ name: 'web', max_uses: 10, expires_in_hours: 168 },
      ...{ peer_types: ['connector'], routes: ['10.0.0.0/8'] },
    });
  });

  it('has tags where the service describes them', async () => {
    const schema = { properties: { tags: {} } };
    const post = { requestBody: { content: { 'application/json': { schema } } } };
    const paths = { '/api/networks/{network}/enrollment-keys': { post } };
    const given = { network: 'office', name: 'web', tag: ['web', 'prod', 'web'] };
    const { service } = await run(createKey, given, { answers: made, description: { paths } });
    expect(service.received.find(({ method }) => method === 'POST')?.body?.tags).toEqual(['web', 'prod']);
  });

  it.each([
    [{ route: ['10.0.0.0/8'] }, '--route is for connectors'],
    [{ route: ['10.0.0.0/8'], type: ['origin'] }, '--route is for connectors'],
    [{ 'max-uses': '0' }, 'is not a number from 1 to 10'],
    [{ 'max-uses': '11' }, 'is not a number from 1 to 10'],
    [{ 'expires-in-hours': '169' }, 'is not a number from 1 to 168'],
    [{ 'peer-expires': '90m' }, 'is not a number of whole hours'],
    [{ 'peer-expires': '3651d' }, 'is not a time from 1h to 3650d'],
    [{ tag: ['-web'] }, '--tag "-web" is no tag'],
    // The service would ignore them.
    [{ 'peer-expires': '12h' }, 'does not support the expiry of peers'],
    [{ tag: ['web'] }, 'does not support tags'],
  ])('with %j is refused', async (given, problem) => {
    await expect(create(given)).rejects.toThrow(problem);
  });

  it('is alone on stdout, and the rest on stderr', async () => {
    const { stdout, stderr } = await create({ type: ['connector'] });
    expect(stdout).toBe(`cpn_${'k'.repeat(43)}\n`);
    expect(stderr).toMatch(
      /for one host, until 2030-.* cpn join - --api URL --type connector --endpoint HOST:51820 <key/,
    );
  });

  it('that the service does not limit is warned about, by what it does not limit', async () => {
    const unlimited = (...fields: string[]): Conduct['answers'] => ({
      [`POST ${keys}`]: (response, { body }) => {
        const kept = Object.entries(body ?? {}).filter(([name]) => !fields.includes(name));
        json(response, 201, {
          data: { id: 9, key: 'cpn_x', expires_at: '2030-01-02T00:00:00Z', ...Object.fromEntries(kept) },
        });
      },
    });
    const limits = { type: ['connector'], route: ['10.0.0.0/8'] };
    for (const [fields, words] of [
      [[], null],
      [['peer_types'], 'types of a key'],
      [['routes'], 'routes of a key'],
      [['peer_types', 'routes'], 'types and routes of a key'],
    ] as const) {
      const { stderr } = await create(limits, unlimited(...fields));
      if (words === null) expect(stderr).not.toContain('does not limit');
      else expect(stderr).toContain(`does not limit the ${words}`);
    }
  });

  const listed = (name: string, id: number) => ({ id, name, uses: 0, max_uses: 1 });
  const revoke = (key: string, usable: object[], all: object[]) =>
    run(
      revokeKey,
      { network: 'office', key, yes: true },
      {
        answers: {
          [`GET ${keys}`]: (response) => json(response, 200, { data: usable }),
          [`GET ${keys}?all=true`]: (response) => json(response, 200, { data: all }),
          [`DELETE ${keys}/1`]: (response) => response.writeHead(204).end(),
          [`DELETE ${keys}/2`]: (response) => response.writeHead(204).end(),
        },
      },
    );

  it('is revoked by its name among the usable ones, and else among all', async () => {
    const [old, next, other] = [listed('web', 1), listed('web', 2), listed('db', 3)];
    expect((await revoke('web', [next, other], [old, next, other])).service.requests.at(-1)).toBe(`DELETE ${keys}/2`);
    expect((await revoke('web', [other], [old, other])).service.requests.at(-1)).toBe(`DELETE ${keys}/1`);
    await expect(revoke('web', [other], [old, next, other])).rejects.toThrow('matches 2 keys');
  });
});

describe('a changed peer', () => {
  const peer = { peer_id: 9001, hostname: 'gateway', pubkey: Buffer.alloc(32, 9).toString('base64'), ip: '10.77.0.1' };
  const update = (given: object, reply: object = {}) =>
    run(
      updatePeer,
      { network: 'office', peer: 'gateway', ...given },
      {
        answers: {
          'PATCH /api/networks/4711/peers/9001': (response) => json(response, 200, { data: { ...peer, ...reply } }),
        },
      },
    );
  const sent = async (given: object) =>
    (await update(given)).service.received.find(({ method }) => method === 'PATCH')?.body;

  it.each([
    [{ name: 'edge' }, { name: 'edge' }],
    [{ endpoint: '203.0.113.7:51820' }, { endpoint: '203.0.113.7:51820' }],
    [{ endpoint: 'none' }, { endpoint: null }],
    [{ route: ['10.0.0.0/8'] }, { routes: ['10.0.0.0/8'] }],
    [{ routes: true }, { routes: null }],
    [{ routes: false }, { routes: [] }],
    [{ priority: '0' }, { priority: 0 }],
    [{ priority: '1000' }, { priority: 1000 }],
  ])('with %j has the fields %j, and no others', async (given, body) => {
    expect(await sent(given)).toEqual(body);
  });

  it.each([
    [{}, 'there is nothing to change'],
    [{ priority: '1001' }, 'is not a number from 0 to 1000'],
    [{ routes: true, route: ['10.0.0.0/8'] }, 'give one of them'],
    [{ expires: '12h' }, 'does not support the expiry of peers'],
  ])('with %j is refused', async (given, problem) => {
    await expect(update(given)).rejects.toThrow(problem);
  });

  it.each([
    ['5', {}, true],
    ['5', { priority: 5 }, false],
    // Without priorities, all have the usual one.
    ['0', {}, false],
  ])('of which the service ignores the priority is warned about: %s, %j', async (priority, reply, warns) => {
    const { stderr } = await update({ priority }, reply);
    expect(stderr.includes('does not support priorities')).toBe(warns);
  });
});
