import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Enrolled, EnrollmentRequest } from '../../../src/api/service.ts';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import {
  BadReply,
  InvalidValue,
  MapsUnsupported,
  NotOurs,
  Refused,
  Unreachable,
} from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, keyPair, network, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const two = peer(2, { endpoint: dialled(2) });
const { service } = joinedTo(mapAt('"1"', []));
const elsewhere = { url: 'https://203.0.113.98', insecureHttp: false };
const request: JoinRequest = {
  ...{ token: new Secret('cpn_new'), service, name: 'host', type: 'origin', endpoint: null },
  ...{ interface: null, options, named: new Set(), networkSecret: null, personalToken: null },
  ...{ isUnattended: false, handshakeTimeoutMs: 0 },
};

/** A host that joined these networks, and the enrolments that the service got. */
async function start(others: readonly Joined[] = [], changes: Partial<NetworkMap> = {}) {
  const simulated = await SimulatedHost.empty();
  const { tools } = simulated;
  for (const other of others) await tools.store.write(other);
  const asked: EnrollmentRequest[] = [];
  simulated.service.onEnroll = (enrolment): Enrolled => {
    asked.push(enrolment);
    const { publicKey, name, type, endpoint } = enrolment;
    const own = peer(9, { publicKey, name, type, endpoint, address: '10.99.0.9' as never });
    const map = network([own, two], { id: 9, name: 'new', cidr: '10.99.0.0/24' as never, routes: [], ...changes });
    const listed = { ...map, peers: [own, ...(changes.peers ?? [{ ...two, address: '10.99.0.2' as never }])] };
    simulated.service.mapReplies = [answerWith(listed)];
    return { peer: own, map: listed, accessToken: new Secret('cpp_new') };
  };
  const warnings: string[] = [];
  tools.warn = (text) => void warnings.push(text);
  const joinAs = (given: Partial<JoinRequest> = {}) => joinNetwork(tools, { ...request, ...given });
  const links = async () => (await tools.store.list()).states.map((state) => state.interface);
  return { simulated, tools, asked, warnings, joinAs, links };
}

const joined = (link: string, changes: Partial<Joined> = {}): Joined =>
  joinedTo(mapAt('"1"', [two]), { interface: link, service: elsewhere, ...changes });

it('a map that this host cannot load is refused before anything is done, and no other join needs it', async () => {
  const { tools, joinAs, asked, links } = await start();
  const maps = [{ route: '10.201.1.0/24' as never, local: '192.168.1.0/24' as never }];
  const checked: (boolean | undefined)[] = [];
  tools.host.check = async ({ maps: isNeeded }) => {
    checked.push(isNeeded);
    if (isNeeded) throw new MapsUnsupported('syntax error, unexpected prefix');
  };
  await expect(joinAs({ type: 'connector', options: { ...options, maps } })).rejects.toBeInstanceOf(MapsUnsupported);
  expect([asked, await links()]).toEqual([[], []]);
  await joinAs();
  expect(checked).toEqual([true, false]);
});

describe('the interface of a first join', () => {
  it('is the first that no network, no interface and no wg-quick file has', async () => {
    const { simulated, tools, joinAs } = await start([joined('cpn0')]);
    await tools.store.writeConfig('cpn1', 'of another program\n');
    tools.host.links = async () => new Set(['cpn2']);
    simulated.actual = { ...simulated.actual, link: null };
    expect((await joinAs()).state.interface).toBe('cpn3');
    expect(await tools.store.readConfig('cpn1')).toBe('of another program\n');
  });

  it('is refused if it is named, and there is a file of that name', async () => {
    const { tools, joinAs, links } = await start();
    await tools.store.writeConfig('wg7', 'of another program\n');
    await expect(joinAs({ interface: 'wg7' })).rejects.toBeInstanceOf(NotOurs);
    expect([await links(), await tools.store.readConfig('wg7')]).toEqual([[], 'of another program\n']);
  });

  it('is none of a WireGuard process in another network namespace, and if it is named, the key is not used', async () => {
    const { simulated, tools, joinAs, links, asked } = await start();
    simulated.actual = { ...simulated.actual, link: null };
    tools.host.foreignSocket = async (link) => (link === 'cpn0' ? '/var/run/wireguard/cpn0.sock' : null);
    await expect(joinAs({ interface: 'cpn0' })).rejects.toThrow('the control socket "/var/run/wireguard/cpn0.sock"');
    expect([await links(), asked]).toEqual([[], []]);
    expect((await joinAs()).state.interface).toBe('cpn1');
  });

  it('is refused if a network at another control plane has it, without a request there', async () => {
    const { simulated, joinAs, asked } = await start([joined('cpn0')]);
    simulated.service.mapReplies = [answerWith({ ...mapAt('"2"', [two]), peers: [two] })];
    await expect(joinAs({ interface: 'cpn0' })).rejects.toThrow('has joined as cpn0 already');
    expect([simulated.service.mapRequests, asked]).toEqual([[], []]);
  });
});

describe('a first join', () => {
  it('is refused while the state of another network cannot be read: it may have used the key', async () => {
    const { tools, joinAs, asked } = await start([joined('cpn0')]);
    await writeFile(join(dirname(tools.store.formerPath), 'cpn0.json'), '{', { mode: 0o600 });
    await expect(joinAs()).rejects.toThrow('cpn0.json is damaged');
    expect(asked).toEqual([]);
  });

  it('listens on the port of its endpoint, and opens it if that was asked for', async () => {
    const { simulated, joinAs } = await start();
    const at = { by: 'ufw', port: 51_999, zone: null, permanent: true } as const;
    simulated.ports = [{ at, is: 'closed' }];
    const endpoint = { ...dialled(1), port: 51_999 };
    const { state } = await joinAs({ endpoint, options: { ...options, openFirewall: true } });
    expect([state.options.listenPort, simulated.actual.device?.listenPort, state.openPorts]).toEqual([
      51_999,
      51_999,
      [at],
    ]);
    expect((await simulated.tools.store.read('cpn0'))?.openPorts).toEqual([at]);
  });

  it('saves its membership before anything else, the token of the user, and what the service describes', async () => {
    const { simulated, tools, joinAs } = await start();
    simulated.service.onDescribe = async () => ({ features: ['map-wait'], etag: null });
    const enrol = simulated.service.onEnroll;
    const text = { dns: ['10.99.0.53'], remarks: [] };
    simulated.service.onEnroll = (enrolment) => ({ ...enrol(enrolment), accessToken: null, text });
    let first: unknown;
    const { observe } = tools.host;
    tools.host.observe = async () => {
      first ??= await tools.store.read('cpn0');
      throw new Unreachable('https://x', 'ends here', { delivered: true, heard: false, retryAfterMs: null });
    };
    await expect(joinAs({ personalToken: new Secret('user') })).rejects.toThrow('ends here');
    expect(first).toMatchObject({
      perhapsEnrolled: false,
      features: ['map-wait'],
      membership: { peer: { id: 9 }, text },
    });
    tools.host.observe = observe;
    const { state } = await joinAs({ personalToken: new Secret('user') });
    expect(state.membership.personalToken?.reveal()).toBe('user');
    expect((await tools.store.read('cpn0'))?.membership?.personalToken?.reveal()).toBe('user');
  });

  it('uses earlier features of the same service alone while its description cannot be read', async () => {
    const { simulated, joinAs, links } = await start([
      joined('cpn0', { features: ['peer-key'] }),
      joined('cpn1', { service, features: ['map-wait'] }),
    ]);
    simulated.service.onDescribe = () =>
      Promise.reject(new Unreachable(service.url, 'no', { delivered: false, heard: false, retryAfterMs: null }));
    expect((await joinAs()).state.features).toEqual(['map-wait']);
    expect(await links()).toEqual(['cpn0', 'cpn1', 'cpn2']);
  });

  it('removes a tunnel that does not come up, with its packet rules', async () => {
    const { simulated, tools, joinAs } = await start();
    simulated.refusesStep = (step) => step.do === 'configure-link';
    await expect(joinAs()).rejects.toThrow('exited with 1');
    expect(simulated.steps.map((step) => step.do)).toEqual(expect.arrayContaining(['create-link', 'set-firewall']));
    expect([simulated.actual.link, simulated.actual.firewall]).toEqual([null, null]);
    expect(await tools.store.read('cpn0')).toMatchObject({ membership: { peer: { id: 9 } } });
  });

  it('reports a connector whose packet rules do not load as out of service', async () => {
    const lan = '192.168.50.0/24' as never;
    const { simulated, joinAs } = await start([], { routes: [lan] });
    simulated.refusesStep = (step) => step.do === 'set-firewall';
    const { unloaded } = await joinAs({ type: 'connector' });
    expect([unloaded?.name, simulated.service.withdrawn]).toEqual(['RulesNotLoaded', [['10.99.0.0/24', lan]]]);
  });

  it('has the differences of network secrets if no peer answered', async () => {
    const other = { ...two, address: '10.99.0.2' as never, secretTag: 'f'.repeat(16) };
    const { joinAs } = await start([], { peers: [other] });
    expect(await joinAs()).toMatchObject({
      handshake: false,
      secretMismatches: [{ difference: 'missing_here', peers: ['peer-2'] }],
    });
  });

  it('fails for a network of unusable peers alone, and not for one with a usable peer', async () => {
    const skipped = [{ id: 3, name: 'x', publicKey: null, address: null, reason: 'its key is no key' }];
    await expect((await start([], { peers: [], skipped })).joinAs()).rejects.toMatchObject({ name: 'NoUsablePeer' });
    expect((await (await start([], { skipped })).joinAs()).state.interface).toBe('cpn0');
    expect(await (await start([], { peers: [] })).joinAs()).toMatchObject({ handshake: null });
  });

  it('finishes what was left at its own control plane alone', async () => {
    const { tools, joinAs } = await start();
    const { membership, ...state } = joinedTo(mapAt('"1"', []));
    const left = {
      ...{ interface: 'cpn7', leftAt: '2026-01-01T00:00:00.000Z', service, features: state.features },
      ...{ network: { id: 8, name: 'lab' }, peer: { id: 1, name: 'peer-1' }, publicKey: keyPair(1).publicKey },
      ...{ identity: makeIdentity(new Uint8Array(32)), keySerial: 0, accessToken: new Secret('cpp_x') },
    };
    await tools.store.writeFormer({ memberships: [left, { ...left, service: elsewhere }], folders: [] });
    const { connect } = tools;
    tools.connect = async (...known) => ({ ...(await connect(...known)), removePeer: async () => true });
    await joinAs();
    expect((await tools.store.readFormer()).memberships.map((each) => each.service.url)).toEqual([elsewhere.url]);
  });

  it.each([
    [service, null, null, 'plain'],
    [service, 51_820, 51_820, 'shared'],
    [service, 51_820, 51_821, 'plain'],
    [elsewhere, null, null, 'none'],
  ])(
    'warns of a deleted network at its control plane, and of a port that both have: %j, %s, %s',
    async (at, own, theirs, expected) => {
      const deletion = { at: '2026-01-01T00:00:00.000Z', resumes: true };
      const deleted = joined('cpn0', {
        service: at,
        enabled: false,
        deletion,
        options: { ...options, listenPort: theirs },
      });
      const { warnings, joinAs } = await start([deleted]);
      await joinAs({ options: { ...options, listenPort: own } });
      const about = warnings.filter((text) => text.includes('deleted'));
      const found = about.length === 0 ? 'none' : about.join().includes('cannot come up') ? 'shared' : 'plain';
      expect(found).toBe(expected);
    },
  );
});

describe('the address of a first join', () => {
  const removing = (simulated: SimulatedHost) => {
    const removed: string[] = [];
    simulated.service.onRemovePeer = (token) => removed.push(token.reveal()) > 0;
    return removed;
  };

  it('is refused if it hides a peer of any other network', async () => {
    const hidden = mapAt('"1"', [peer(5, { address: '10.99.0.9' as never })]);
    const others = [joined('cpn0'), joinedTo(hidden, { interface: 'cpn1', service: elsewhere })];
    const { simulated, joinAs, links } = await start(others);
    const removed = removing(simulated);
    await expect(joinAs()).rejects.toThrow('peer peer-5 of network office (cpn1), and would hide it');
    expect([removed, await links()]).toEqual([['cpp_new'], ['cpn0', 'cpn1']]);
  });
});

describe('a first join that fails', () => {
  const lost = { delivered: true, heard: false, retryAfterMs: null };
  it.each<[string, unknown, boolean]>([
    ['is refused', new Refused(403, 'the enrolment', 'no', null), false],
    [
      'is refused, perhaps because an earlier attempt succeeded',
      new Refused(409, 'x', 'no', null, { repeated: true }),
      true,
    ],
    ['is not delivered', new Unreachable('https://x', 'gone', { ...lost, delivered: false }), false],
    ['has no reply', new Unreachable('https://x', 'gone', lost), true],
    ['has values that are not valid', new InvalidValue('name', 'x', 'is not valid', 'choose another'), false],
    ['has a reply that is no reply', new BadReply('https://x', 'is no JSON', 'look'), true],
  ])('keeps its new keys only if they may be enrolled: %s', async (_, error, isKept) => {
    const { simulated, joinAs, links } = await start();
    simulated.service.onEnroll = () => {
      throw error;
    };
    await expect(joinAs()).rejects.toBe(error);
    expect(await links()).toEqual(isKept ? ['cpn0'] : []);
  });

  it('keeps the keys of an earlier attempt, also where the next one is refused', async () => {
    const { simulated, joinAs, links } = await start();
    for (const error of [new Unreachable('https://x', 'gone', lost), new Refused(403, 'the enrolment', 'no', null)]) {
      simulated.service.onEnroll = () => {
        throw error;
      };
      await expect(joinAs()).rejects.toBe(error);
      expect(await links()).toEqual(['cpn0']);
    }
  });

  it('at a service that repeats enrolments is possibly done only if it may be', async () => {
    const { simulated, tools, joinAs } = await start();
    simulated.service.onDescribe = async () => ({ features: [], etag: null });
    const enrol = simulated.service.onEnroll;
    const outcomes: (boolean | undefined)[] = [];
    for (const error of [
      new Unreachable('https://x', 'gone', { ...lost, perhapsDone: false }),
      new Unreachable('https://x', 'gone', { ...lost, perhapsDone: true }),
      new Unreachable('https://x', 'gone', { ...lost, perhapsDone: false }),
    ]) {
      simulated.service.onEnroll = () => {
        throw error;
      };
      await expect(joinAs()).rejects.toBe(error);
      outcomes.push((await tools.store.read('cpn0'))?.perhapsEnrolled);
    }
    // What may be done once stays so, whatever the next attempt is.
    expect(outcomes).toEqual([false, true, true]);
    simulated.service.onEnroll = enrol;
    expect((await joinAs()).state.perhapsEnrolled).toBe(false);
    expect((await tools.store.read('cpn0'))?.perhapsEnrolled).toBe(false);
  });
});
