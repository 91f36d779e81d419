import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readDescription } from '../../src/api/description.ts';
import { connectPeerService } from '../../src/api/peer-service.ts';
import type { JoinRequest } from '../../src/app/begin-join.ts';
import { withExtensions } from '../../src/app/described.ts';
import { joinNetwork } from '../../src/app/join.ts';
import { leaveNetworks } from '../../src/app/leave.ts';
import { reconcileNetworks } from '../../src/app/reconcile.ts';
import { FeatureWatch } from '../../src/app/run/feature-watch.ts';
import type { Tools } from '../../src/app/tools.ts';
import { Unreachable } from '../../src/core/errors.ts';
import { Secret } from '../../src/core/secret.ts';
import { options } from '../core/samples.ts';
import { describeForeign } from '../plain/foreign-description.ts';
import {
  type Conduct,
  type ForeignService,
  foreignKey,
  foreignToken,
  json,
  losing,
  startForeignService,
} from '../plain/foreign-service.ts';
import { Desk } from './desk.ts';

/** A host that has joined nothing, and a real client of a foreign service. */
async function arrive(conduct: Partial<Conduct> = {}) {
  const service = await startForeignService(conduct);
  const desk = await Desk.empty();
  const warnings: string[] = [];
  const tools: Tools = {
    ...desk.tools,
    connect: async ({ service: at, features }, patience) =>
      connectPeerService(at, features ?? [], { ...patience, random: () => 0 }),
    describe: (at, known, signal) => readDescription(at, known, { deadlineMs: 500, ...(signal && { signal }) }),
    random: randomBytes,
    warn: (text) => warnings.push(text),
  };
  const join = (changes: Partial<JoinRequest> = {}) => joinNetwork(tools, { ...requestOf(service), ...changes });
  return { service, desk, tools, warnings, join };
}

function requestOf({ address }: ForeignService): JoinRequest {
  return {
    token: new Secret(foreignKey),
    service: address,
    name: 'edge',
    type: 'origin',
    endpoint: null,
    interface: null,
    options,
    named: new Set(),
    networkSecret: new Secret(Buffer.alloc(32, 1).toString('base64')),
    personalToken: new Secret(foreignToken),
    isUnattended: false,
    patience: 0,
  };
}

const enrolment = 'POST /api/networks/enroll';
const extensions = [
  'idempotency-key',
  'peer-identity-key',
  'network-secret-tag',
  'current-networks',
  'if-none-match',
  'prefer',
  'a-im',
];
/** The extensions of the contract in the headers of a request. */
const extensionsIn = (service: ForeignService, request: string) =>
  service.asked
    .filter(({ method, path }) => `${method} ${path}` === request)
    .map(({ headers }) => extensions.filter((name) => headers[name] !== undefined));

describe('a service that describes nothing', () => {
  it('gets nothing but the public contract, at the join and at every pass', async () => {
    const { service, tools, join, desk } = await arrive();
    const { state } = await join();
    expect(state).toMatchObject({ features: [], perhapsEnrolled: false, membership: { map: { id: 4711 } } });
    await reconcileNetworks(tools);
    await reconcileNetworks(tools);
    expect(extensionsIn(service, enrolment)).toEqual([[]]);
    expect(extensionsIn(service, 'GET /api/networks/4711')).toEqual([[], []]);
    await leaveNetworks(tools);
    expect(service.requests.filter((request) => /PATCH|DELETE/.test(request))).toEqual([]);
    expect(desk.actual.link).toBeNull();
  });

  it('gets an enrolment whose reply was lost no second time, and the host says what to do', async () => {
    const { service, tools, join, warnings } = await arrive({ answers: { [enrolment]: losing() } });
    await expect(join()).rejects.toThrow(
      /one use of the enrolment key may be spent.*describes no Idempotency-Key.*"cpn join" again.*"cpn leave"/,
    );
    expect(service.requests.filter((request) => request === enrolment)).toHaveLength(1);
    const { states } = await tools.store.list();
    expect(states).toMatchObject([{ perhapsEnrolled: true, membership: null }]);

    // A service manager that tries again takes no further use of the key; a person may.
    await expect(join({ isUnattended: true })).rejects.toMatchObject({
      name: 'WrongUsage',
      message: expect.stringMatching(/may have been carried out.*takes a further use/),
    });
    expect(service.requests.filter((request) => request === enrolment)).toHaveLength(1);
    delete service.answers[enrolment];
    const { state } = await join();
    expect(state).toMatchObject({ perhapsEnrolled: false, keyPair: states[0]?.keyPair });
    expect(warnings.join()).toContain('this one takes a further use of the key');
  });

  it('is asked again where nothing can have been done', async () => {
    const { service, join } = await arrive();
    service.answers[enrolment] = (response) => {
      delete service.answers[enrolment];
      json(response, 503, {});
    };
    expect(await join()).toMatchObject({ state: { perhapsEnrolled: false } });
    expect(service.requests.filter((request) => request === enrolment)).toHaveLength(2);
  });
});

describe('a service that describes some extensions', () => {
  it('gets those, and no others', async () => {
    const description = describeForeign({ enroll: ['Idempotency-Key'], read: ['If-None-Match'] });
    const { service, join, tools } = await arrive({ description });
    service.answers['GET /api/networks/4711'] = (response, { headers }) => {
      if (headers['if-none-match'] === '"1"') return response.writeHead(304).end();
      return json(response, 200, { data: service.whole }, { etag: '"1"' });
    };
    await join();
    await reconcileNetworks(tools);
    await reconcileNetworks(tools);
    expect(extensionsIn(service, enrolment)).toEqual([['idempotency-key']]);
    expect(extensionsIn(service, 'GET /api/networks/4711')).toEqual([[], ['if-none-match']]);
  });

  it('gets an enrolment again whose reply was lost, where it describes Idempotency-Key', async () => {
    const description = describeForeign({ enroll: ['Idempotency-Key'] });
    const { service, join } = await arrive({ description });
    service.answers[enrolment] = losing(() => delete service.answers[enrolment]);
    await join();
    const keys = service.asked.flatMap(({ headers }) => headers['idempotency-key'] ?? []);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  it('goes by what it described before, while its description cannot be read', async () => {
    const { service, join, tools } = await arrive({ description: describeForeign({ read: ['If-None-Match'] }) });
    await join();
    service.description = (response) => json(response, 503, {});
    const { state } = await join();
    expect(state.features).toEqual(['map-revision']);
    expect((await tools.store.read('cpn0'))?.features).toEqual(['map-revision']);
  });

  it('is joined without them, whatever its description does', async () => {
    const { join } = await arrive({ description: () => {} });
    expect((await join()).state.features).toBeNull();
  });
});

describe('an operation that is described and not there', () => {
  it('has the description read again, and is not used any more', async () => {
    const { service, join, tools } = await arrive({ description: describeForeign({ change: ['network_secret_tag'] }) });
    await join();
    service.description = describeForeign();
    const state = (await tools.store.read('cpn0')) as never;
    const announce = () =>
      withExtensions(tools, state, {}, (peer) => peer.announceSecret(4711, 9002, new Secret('x'), 'a'.repeat(16)));
    expect(await announce()).toBe(false);
    expect((await tools.store.read('cpn0'))?.features).toEqual([]);
  });
});

describe('a host of an earlier version, which never read a description', () => {
  it('reads it before it uses an extension, or says that it cannot', async () => {
    const { service, join, tools } = await arrive({ description: describeForeign({ removal: true }) });
    await join();
    const state = (await tools.store.read('cpn0')) as never as Parameters<typeof withExtensions>[1];
    const earlier = { ...state, features: null };
    await tools.store.write(earlier);
    const remove = () => withExtensions(tools, earlier, {}, (peer) => peer.removePeer(4711, 9002, new Secret('x')));
    service.answers['DELETE /api/networks/4711/peers/9002'] = (response) => json(response, 200, {});
    expect(await remove()).toBe(true);
    expect((await tools.store.read('cpn0'))?.features).toEqual(['peer-removal']);
    service.description = (response) => response.destroy();
    await expect(remove()).rejects.toThrow(Unreachable);
  });
});

describe('the daemon', () => {
  it('reads the description at its start and every hour, and only then if it has changed', async () => {
    const { service, join, tools, desk } = await arrive();
    await join();
    let etag = '"1"';
    const conditions: (string | undefined)[] = [];
    service.description = (response, { headers }) => {
      conditions.push(headers['if-none-match']);
      if (headers['if-none-match'] === etag) return response.writeHead(304).end();
      return json(response, 200, describeForeign({ read: etag === '"1"' ? [] : ['Prefer'] }), { etag });
    };
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const rests: number[] = [];
    const sleep = async (ms: number) => {
      rests.push(ms / 1000);
      if (rests.length === 2) etag = '"2"';
      if (rests.length === 3) service.description = null;
      if (rests.length === 4) service.description = (response) => response.destroy();
      if (rests.length === 5) end.abort();
    };
    const changes: unknown[] = [];
    const watch = new FeatureWatch({ ...tools, sleep }, 'cpn0', () => changes.push(desk.logged.at(-1)));
    await watch.watch(end.signal);
    expect(conditions).toEqual([undefined, '"1"', '"1"']);
    expect((await tools.store.read('cpn0'))?.features).toEqual(['map-wait']);
    expect(changes).toMatchObject([
      { facts: { features: ['map-wait'] }, message: 'the service describes other features' },
    ]);
    const hours = rests.map((seconds) => Math.round(seconds / 3600));
    expect(hours).toEqual([1, 1, 1, 1, 0]);
  });
});
