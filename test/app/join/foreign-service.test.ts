import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readDescription } from '../../../src/api/description.ts';
import { connectPeerService } from '../../../src/api/peer-service.ts';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { leaveNetworks } from '../../../src/app/leave/leave.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { FeatureFollower } from '../../../src/app/run/feature-follower.ts';
import { withExtensions } from '../../../src/app/service-features.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Unreachable } from '../../../src/core/errors/index.ts';
import type { State } from '../../../src/store/state/state.ts';
import { options } from '../../core/samples.ts';
import { describeForeign } from '../../plain/foreign-description.ts';
import {
  type Conduct,
  type ForeignService,
  foreignKey,
  foreignToken,
  json,
  losing,
  startForeignService,
} from '../../plain/foreign-service.ts';
import { SimulatedHost } from '../simulated-host.ts';

/** A host that has joined nothing, and a real client of a foreign service. */
async function arrive(conduct: Partial<Conduct> = {}) {
  const service = await startForeignService(conduct);
  const simulated = await SimulatedHost.empty();
  const warnings: string[] = [];
  const tools: Tools = {
    ...simulated.tools,
    connect: async ({ service: at, features }, patience) =>
      connectPeerService(at, features ?? [], { ...patience, random: () => 0 }),
    describe: (at, known, signal) => readDescription(at, known, { deadlineMs: 10_000, ...(signal && { signal }) }),
    random: randomBytes,
    warn: (text) => warnings.push(text),
  };
  const join = (changes: Partial<JoinRequest> = {}) => joinNetwork(tools, { ...requestOf(service), ...changes });
  return { service, simulated, tools, warnings, join };
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
    handshakeTimeoutMs: 0,
  };
}

const enrolment = 'POST /api/networks/enroll';
const extensions = [
  'idempotency-key',
  'peer-identity-key',
  'peer-identity-proof',
  'peer-key-proof',
  'network-secret-tag',
  'current-networks',
  'if-none-match',
  'prefer',
  'a-im',
];
/** The extensions of the contract in the headers of a request. */
const extensionsIn = (service: ForeignService, request: string) =>
  service.received
    .filter(({ method, path }) => `${method} ${path}` === request)
    .map(({ headers }) => extensions.filter((name) => headers[name] !== undefined));

describe('a service that describes nothing', () => {
  it('receives only requests of the public contract, at the join and at every pass', async () => {
    const { service, tools, join, simulated } = await arrive();
    const { state } = await join();
    expect(state).toMatchObject({ features: [], perhapsEnrolled: false, membership: { map: { id: 4711 } } });
    await reconcileNetworks(tools);
    await reconcileNetworks(tools);
    expect(extensionsIn(service, enrolment)).toEqual([[]]);
    expect(extensionsIn(service, 'GET /api/networks/4711')).toEqual([[], []]);
    await leaveNetworks(tools);
    expect(service.requests.filter((request) => /PATCH|DELETE/.test(request))).toEqual([]);
    expect(simulated.actual.link).toBeNull();
  });

  it('receives no second enrolment after a lost reply, and the error has the next command', async () => {
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

  it('survives a captive portal: the join continues with its key pair, and takes one use of the key', async () => {
    const { service, tools, join, warnings } = await arrive();
    service.answers[enrolment] = (response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>sign in</html>');
    await expect(join()).rejects.toMatchObject({ name: 'Intercepted' });
    const { states } = await tools.store.list();
    expect(states).toMatchObject([{ perhapsEnrolled: false, membership: null }]);
    delete service.answers[enrolment];
    const { state } = await join({ isUnattended: true });
    expect(state).toMatchObject({ keyPair: states[0]?.keyPair, interface: states[0]?.interface });
    expect(service.usesLeft).toBe(9);
    expect(warnings.join()).not.toContain('further use');
  });

  it('gives a text with no peer that can be used: the join says why, and what to do', async () => {
    const config = ['[Interface]', 'Address = 10.77.0.5/24', '[Peer]', 'PublicKey = x', 'AllowedIPs = 0.0.0.0/0'].join(
      '\n',
    );
    const { join, simulated } = await arrive({
      answers: { [enrolment]: (response) => json(response, 201, { config }) },
    });
    await expect(join()).rejects.toThrow(
      /^joined network network as cpn0, where no peer can be used: PublicKey of line 4 is not .*; have its operator .*"cpn leave cpn0"$/,
    );
    expect((await simulated.tools.store.list()).states).toHaveLength(1);
  });

  it('receives a retry where nothing can have been done', async () => {
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
  it('is asked for its description once, before the host makes its keys', async () => {
    const { service, tools } = await arrive();
    const order: string[] = [];
    const noting: Tools = {
      ...tools,
      describe: (...of) => {
        order.push('describe');
        return tools.describe(...of);
      },
      random: (bytes) => {
        order.push('random');
        return randomBytes(bytes);
      },
    };
    await joinNetwork(noting, requestOf(service));
    expect(order.slice(0, 2)).toEqual(['describe', 'random']);
    expect(order.filter((each) => each === 'describe')).toHaveLength(1);
  });

  it('receives requests of those, and of no others', async () => {
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

  it('receives an enrolment again after a lost reply, where it describes Idempotency-Key', async () => {
    const description = describeForeign({ enroll: ['Idempotency-Key'] });
    const { service, join } = await arrive({ description });
    service.answers[enrolment] = losing(() => delete service.answers[enrolment]);
    await join();
    const keys = service.received.flatMap(({ headers }) => headers['idempotency-key'] ?? []);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  it('is used as described before, while its description cannot be read', async () => {
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
  it('triggers another read of the description, and is not used any more', async () => {
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
  it('reads it before it uses an extension, or fails', async () => {
    const { service, join, tools } = await arrive({ description: describeForeign({ removal: true }) });
    await join();
    const state = (await tools.store.read('cpn0')) as State;
    const earlier = { ...state, features: null };
    await tools.store.write(earlier);
    const remove = () => withExtensions(tools, earlier, {}, (peer) => peer.removePeer(4711, 9002, new Secret('x')));
    service.answers['DELETE /api/networks/4711/peers/9002'] = (response) => json(response, 200, { data: null });
    expect(await remove()).toBe(true);
    expect((await tools.store.read('cpn0'))?.features).toEqual(['peer-removal']);
    service.description = (response) => response.destroy();
    await expect(remove()).rejects.toThrow(Unreachable);
  });
});

describe('the daemon', () => {
  it('reads the description at its start and every hour, and only then if it has changed', async () => {
    const { service, join, tools, simulated } = await arrive();
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
    const watch = new FeatureFollower({ ...tools, sleep }, 'cpn0', () => changes.push(simulated.logged.at(-1)));
    await watch.run(end.signal);
    expect(conditions).toEqual([undefined, '"1"', '"1"']);
    expect((await tools.store.read('cpn0'))?.features).toEqual(['map-wait']);
    expect(changes).toMatchObject([
      { facts: { features: ['map-wait'] }, message: 'the features of the service changed' },
    ]);
    const hours = rests.map((seconds) => Math.round(seconds / 3600));
    expect(hours).toEqual([1, 1, 1, 1, 0]);
  });

  it('reads the description of a control plane that moved as a whole', async () => {
    const { service, join, tools } = await arrive();
    const { state } = await join();
    const conditions: (string | undefined)[] = [];
    service.description = (response, { headers }) => {
      conditions.push(headers['if-none-match']);
      return json(response, 200, describeForeign({}), { etag: '"1"' });
    };
    const end = new AbortController();
    const sleep = async () => {
      if (conditions.length === 2) end.abort();
      const moved = { url: state.service.url.replace('127.0.0.1', 'localhost'), insecureHttp: false };
      await tools.store.write({ ...state, service: moved });
    };
    await new FeatureFollower({ ...tools, sleep }, 'cpn0', () => {}).run(end.signal);
    expect(conditions).toEqual([undefined, undefined]);
  });
});
