import { describe, expect, it } from 'vitest';
import { connectAdminService } from '../../src/api/admin-service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply, Unreachable } from '../../src/core/errors/index.ts';
import { type Answer, json, startForeignService } from '../plain/foreign-service.ts';

const described = (...operations: string[]) => ({
  openapi: '3.1.0',
  paths: Object.fromEntries(operations.map((name) => [`/api/networks/{id}/${name}`, { get: { responses: {} } }])),
});

async function connect(answers: Record<string, Answer>, description: object | null = described('health', 'events')) {
  const service = await startForeignService({ answers, description });
  return { service, admin: connectAdminService(service.address, new Secret('token-sample')) };
}

const reply = (body: unknown, headers: Record<string, string> = {}): Answer => {
  return (response) => json(response, 200, body, headers);
};

describe('health', () => {
  const operation = 'GET /api/networks/4711/health';

  it('is not asked for where the service does not describe it', async () => {
    for (const description of [null, described('events')]) {
      const { service, admin } = await connect({}, description);
      expect(await admin.readHealth(4711)).toBeNull();
      expect(service.requests).toEqual(['GET /docs/api/openapi.json']);
    }
  });

  it('is read', async () => {
    const peer = {
      ...{ id: 1, name: 'edge-1', state: 'online', reachable_by: 2, witnesses: 3, why: 'it answers' },
      ...{ last_seen: '2030-01-01T00:00:00.000Z', version: '0.1.0', platform: 'linux x64', source_address: null },
      ...{ reported_at: null, routes: [], drift: null, pin_mismatches: [], problem: null },
      paths: [{ peer: 2, path: 'relayed', via: 3, rtt_ms: 0.5 }],
    };
    const { admin } = await connect({ [operation]: reply({ data: { peers: [peer], routes: [] } }) });
    expect(await admin.readHealth(4711)).toEqual([
      {
        ...{ id: 1, state: 'online', reachable_by: 2, witnesses: 3 },
        ...{ last_seen: peer.last_seen, version: '0.1.0', paths: [{ peer: 2, path: 'relayed' }] },
      },
    ]);
  });

  it('is unknown where it is said in words that are not known', async () => {
    const odd = { id: 'a', state: 'asleep', reachable_by: -1, witnesses: '3', last_seen: 'noon', version: {} };
    const paths = [null, { peer: 2 }, { peer: 2, path: 'by air' }, { peer: 3, path: 'down' }];
    const { admin } = await connect({
      [operation]: reply({ peers: [{ ...odd, paths }, { id: 'b' }, { id: 'c', paths: 7 }] }),
    });
    const unknown = { state: 'unknown', reachable_by: 0, witnesses: 0, last_seen: null, version: null, paths: [] };
    expect(await admin.readHealth(4711)).toEqual([
      { ...unknown, id: 'a', paths: [{ peer: 3, path: 'down' }] },
      { ...unknown, id: 'b' },
      { ...unknown, id: 'c' },
    ]);
  });

  it.each([{}, { peers: {} }, { peers: [{ state: 'online' }] }])('is refused as %j', async (body) => {
    const { admin } = await connect({ [operation]: reply(body) });
    await expect(admin.readHealth(4711)).rejects.toThrow(BadReply);
  });
});

describe('events', () => {
  const event = {
    ...{ id: 5, at: '2030-01-01T00:00:00.000Z', type: 'peer.offline', network: 4711 },
    ...{ peer: { id: 2, name: 'edge-1' }, route: null, details: {} },
  };

  it('are read, of types of later versions too', async () => {
    const later = { ...event, id: 6, type: 'peer.renamed', peer: null, route: '192.168.50.0/24', details: { to: 'x' } };
    const bare = { id: 7, at: 1_900_000_000, type: 'peer.online', network: 4711, peer: { name: 'x' } };
    const { admin } = await connect({ 'GET /api/networks/4711/events': reply({ data: [event, later, bare] }) });
    expect(await admin.readEvents(4711)).toEqual({
      events: [
        event,
        later,
        { ...bare, at: '2030-03-17T17:46:40.000Z', peer: { id: null, name: 'x' }, route: null, details: {} },
      ],
      waited: false,
    });
  });

  it('are waited for with one attempt', async () => {
    const path = '/api/networks/4711/events?after=5&limit=10';
    const wait = { seconds: 60 };
    const { service, admin } = await connect({ [`GET ${path}`]: reply([], { 'preference-applied': 'wait=60' }) });
    expect(await admin.readEvents(4711, { after: 5, limit: 10, wait })).toEqual({ events: [], waited: true });
    expect(service.received[0]?.headers.prefer).toBe('wait=60');
    service.answers[`GET ${path}`] = (response) => json(response, 503, { message: 'stopping' });
    await expect(admin.readEvents(4711, { after: 5, limit: 10, wait })).rejects.toThrow(Unreachable);
    expect(service.requests).toHaveLength(2);
  });

  it.each([
    {},
    [{ ...event, id: null }],
    [{ ...event, at: 'noon' }],
    [{ ...event, type: 7 }],
    [{ ...event, peer: {} }],
  ])('are refused as %j', async (body) => {
    const { admin } = await connect({ 'GET /api/networks/4711/events': reply({ data: body }) });
    await expect(admin.readEvents(4711)).rejects.toThrow(BadReply);
  });
});

describe('hosts that have not applied a removal', () => {
  const operation = 'GET /api/networks/4711/removals';

  it('are unknown of a service that does not describe that it notes them', async () => {
    const { service, admin } = await connect({});
    expect(await admin.readRemovals(4711, 10)).toBeNull();
    expect(service.requests).toEqual(['GET /docs/api/openapi.json']);
  });

  it('are read, with what another service may leave out', async () => {
    const pending = [{ id: 'x-1', name: 'edge-1', acknowledged_revision: 'r7', last_seen: null }];
    const { admin } = await connect({ [operation]: reply({ data: { pending } }) }, described('removals'));
    expect(await admin.readRemovals(4711, 10)).toEqual([
      { id: 'x-1', name: 'edge-1', acknowledged_revision: null, last_seen: null },
    ]);
  });
});
