import { describe, expect, it } from 'vitest';
import type { Enrolled, EnrollmentRequest } from '../../../src/api/service.ts';
import { findJoined } from '../../../src/app/join/check-membership.ts';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { refresh } from '../../../src/app/reconcile/refresh.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { isEnrollmentProven, isProven, makeIdentity } from '../../../src/core/crypto/identity.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused, Unreachable, WrongUsage } from '../../../src/core/errors/index.ts';
import { type Feature, features } from '../../../src/core/map/features.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import type { State } from '../../../src/store/state/state.ts';
import { address, bare, dialled, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

const two = peer(2, { endpoint: dialled(2) });
const map = mapAt('"1"', [two]);
const endpoint = parseEndpoint('203.0.113.1:51999');
const kept = {
  ...options,
  listenPort: 51_999,
  mtu: 1300,
  hosts: true,
  pin: 'strict' as const,
  allowRoutes: [prefix('10.9.0.0/16')],
};
const gone = new Refused(401, 'reading the network', 'the token is unknown', 'x');
const inNetwork = new Refused(409, 'the enrolment', 'this host is in it', 'x');
const request: JoinRequest = {
  ...{ token: new Secret('cpn_new'), service: joinedTo(map).service, name: 'host', type: 'origin', endpoint: null },
  ...{ interface: null, options, named: new Set(), networkSecret: null, personalToken: null },
  ...{ isUnattended: false, handshakeTimeoutMs: 0 },
};

/** A host that is up in network 7; `answer` is what the control plane says to its token from then on. */
async function startDesk(answer: Parameters<typeof fail>[0] | null): Promise<SimulatedHost> {
  const createdAt = '2020-01-01T00:00:00.000Z';
  const state = joinedTo(map, {
    createdAt,
    options: kept,
    networkSecret: new Secret(Buffer.alloc(32, 1).toString('base64')),
  });
  const simulated = await SimulatedHost.with({ ...state, enrollment: { ...state.enrollment, endpoint } });
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  simulated.service.mapReplies = [answer === null ? answerWith(map) : fail(answer)];
  return simulated;
}

/** A service that knows which networks a host is in; it gives the host another address. */
function enrolInto(simulated: SimulatedHost, asked: EnrollmentRequest[]): void {
  simulated.service.onEnroll = (enrolment) => {
    asked.push(enrolment);
    if (enrolment.currentNetworks?.includes(Number(map.id))) throw inNetwork;
    return reply(enrolment);
  };
}

/** The service describes these extensions alone. */
function describeOnly(simulated: SimulatedHost, ...features: Feature[]): void {
  simulated.service.onDescribe = async () => ({ features, etag: null });
}

/** The folders that a join made are handed over to the network that stays. */
const withoutFolders = (state: State) => ({ ...state, receipt: state.receipt.filter(({ made }) => made !== 'folder') });

function reply({ publicKey, name, endpoint: at }: EnrollmentRequest): Enrolled {
  const self = peer(9, { publicKey, name, endpoint: at });
  return { peer: self, map: { ...map, revision: '"5"', peers: [self, two] }, accessToken: new Secret('cpp_new') };
}

describe('a host that was removed from its network', () => {
  it('counts as joined until the control plane refuses it', async () => {
    const simulated = await startDesk(gone);
    const { service } = await simulated.state();
    const find = async () => (await findJoined(simulated.tools, service, null))?.interface ?? null;
    expect(await find()).toBe('cpn0');
    const { notes } = await refresh(simulated.tools, await simulated.state());
    await simulated.tools.store.amendNotes('cpn0', notes);
    expect(await find()).toBeNull();
  });

  it('joins again as the service described it before, where its description cannot be read', async () => {
    const simulated = await startDesk(gone);
    const { features } = await simulated.state();
    const asked: EnrollmentRequest[] = [];
    enrolInto(simulated, asked);
    simulated.service.onDescribe = async () => {
      throw new Unreachable('https://203.0.113.99', 'no', { delivered: false, heard: false, retryAfterMs: null });
    };
    await joinNetwork(simulated.tools, request);
    expect([asked.length, (await simulated.state()).features]).toEqual([2, features]);
  });

  it('joins again with a new key, on its interface, with its options and those named', async () => {
    const simulated = await startDesk(gone);
    const before = await simulated.state();
    const asked: EnrollmentRequest[] = [];
    enrolInto(simulated, asked);
    const { state } = await joinNetwork(simulated.tools, {
      ...{ ...request, options: { ...options, mtu: 1400 }, named: new Set(['mtu'] as const) },
    });
    expect(asked.map(({ currentNetworks }) => currentNetworks)).toEqual([[7], []]);
    expect(asked.at(-1)).toMatchObject({ name: 'peer-1', type: 'origin', endpoint });
    expect(state).toEqual(await simulated.state());
    expect(state).toMatchObject({
      ...{ interface: 'cpn0', options: { ...kept, mtu: 1400 }, createdAt: before.createdAt, enrollment: { endpoint } },
      membership: { peer: { id: 9, address: '10.77.0.9' }, accessToken: {} },
    });
    expect(state.networkSecret?.reveal()).toBe(before.networkSecret?.reveal());
    expect(state.keyPair.publicKey).not.toBe(before.keyPair.publicKey);
    expect(simulated.actual.link).toMatchObject({ name: 'cpn0', mtu: 1400, addresses: [{ address: '10.77.0.9' }] });
    expect([simulated.actual.device?.publicKey, simulated.actual.device?.listenPort]).toEqual([
      state.keyPair.publicKey,
      51_999,
    ]);
    expect((await simulated.tools.store.list()).states).toHaveLength(1);
  });

  it.each<[string, readonly Feature[], boolean]>([
    ['with its identity, which it proves after its last proof', features, true],
    ['with a new identity, where the service requires no proof', ['enroll-identity', 'enroll-current-networks'], false],
  ])('joins again %s', async (_, described, isSame) => {
    const simulated = await startDesk(gone);
    describeOnly(simulated, ...described);
    const identity = makeIdentity(new Uint8Array(32).fill(7));
    const before = { ...(await simulated.state()), identity, keySerial: 5_000_000_000_000 };
    await simulated.tools.store.write(before);
    const asked: EnrollmentRequest[] = [];
    enrolInto(simulated, asked);
    const { state } = await joinNetwork(simulated.tools, request);
    const [first, last] = asked;
    expect([first?.identity === before.identity?.key, first?.keyProof]).toEqual([false, undefined]);
    expect([last?.identity === before.identity?.key, state.identity?.key]).toEqual([isSame, last?.identity]);
    expect(state.keySerial).toBe(isSame ? before.keySerial + 1 : 0);
    expect(last?.keyProof?.serial).toBe(isSame ? state.keySerial : undefined);
    const { tokenHash } = state.enrollment;
    for (const { identity: claimed, identityProof, publicKey, keyProof } of asked) {
      if (claimed === undefined || identityProof === undefined) throw new Error('an enrolment without an identity');
      expect(isEnrollmentProven(claimed, { publicKey, tokenHash }, identityProof)).toBe(true);
      if (keyProof) expect(isProven(claimed, publicKey, keyProof)).toBe(true);
    }
  });

  it('may name its interface again, and no other', async () => {
    const simulated = await startDesk(gone);
    enrolInto(simulated, []);
    await expect(joinNetwork(simulated.tools, { ...request, interface: 'cpn5' })).rejects.toThrow(
      'leave out --interface',
    );
    expect((await simulated.tools.store.list()).states).toHaveLength(1);
    const { state } = await joinNetwork(simulated.tools, { ...request, interface: 'cpn0' });
    expect([state.interface, state.membership.peer.id]).toEqual(['cpn0', 9]);
  });

  it('joins again on its port, which its own interface has', async () => {
    const simulated = await startDesk(gone);
    simulated.takenPorts.add(51_999);
    enrolInto(simulated, []);
    const again = { ...request, endpoint, named: new Set(['endpoint'] as const) };
    expect((await joinNetwork(simulated.tools, again)).state).toMatchObject({ options: { listenPort: 51_999 } });
  });

  it('joins again through a service that does not describe Current-Networks', async () => {
    const simulated = await startDesk(gone);
    simulated.service.onEnroll = reply;
    await joinNetwork(simulated.tools, request);
    const { states } = await simulated.tools.store.list();
    expect(states).toMatchObject([
      { interface: 'cpn0', options: { mtu: 1300, pin: 'strict' }, membership: { peer: { id: 9 } } },
    ]);
  });

  it.each<[string, (simulated: SimulatedHost) => void]>([
    ['describes Current-Networks', (simulated) => enrolInto(simulated, [])],
    ['does not', (simulated) => Object.assign(simulated.service, { onEnroll: reply })],
  ])('takes over all that it left on the host, where the service %s', async (_, enrol) => {
    const simulated = await startDesk(gone);
    const left = {
      createdAt: '2020-01-01T00:00:00.000Z',
      drained: true,
      labels: [{ peer: 2, labels: ['web', 'former'] }],
      openPorts: [{ by: 'firewalld', port: 52_000, zone: 'public', permanent: true }],
      options: { ...kept, listenPort: 52_000, openFirewall: true },
    } as const;
    simulated.ports = left.openPorts.map((at) => ({ at, is: 'open' }));
    const before = { ...(await simulated.state()), ...left };
    await simulated.tools.store.write(before);
    enrol(simulated);
    await joinNetwork(simulated.tools, request);
    const state = await simulated.state();
    expect(state).toMatchObject(left);
    expect(state.receipt).toEqual(expect.arrayContaining([...before.receipt]));
    expect(state.networkSecret?.reveal()).toBe(before.networkSecret?.reveal());
  });

  it('continues after an interrupt between the enrolment and the change of its state', async () => {
    const simulated = await startDesk(gone);
    simulated.service.onEnroll = reply;
    const store = { ...simulated.tools.store, forget: () => Promise.reject(new Error('power cut')) };
    await expect(joinNetwork({ ...simulated.tools, store }, request)).rejects.toThrow('power cut');
    // The new token is taken, and the former one is not.
    simulated.service.mapReplies = [answerWith(map), fail(gone)];
    await joinNetwork(simulated.tools, request);
    const { states } = await simulated.tools.store.list();
    expect(states).toMatchObject([{ interface: 'cpn0', membership: { peer: { id: 9 } } }]);
  });

  it.each([
    ['refused', new Refused(403, 'the enrolment', 'the key is used up', 'x')],
    ['not delivered', new Unreachable('https://x', 'gone', { delivered: false, heard: false, retryAfterMs: null })],
  ])('keeps what it has where the enrolment is %s', async (_, error) => {
    const simulated = await startDesk(gone);
    const before = withoutFolders(await simulated.state());
    simulated.steps.length = 0;
    simulated.service.onEnroll = ({ currentNetworks }) => {
      throw currentNetworks?.length ? inNetwork : error;
    };
    await expect(joinNetwork(simulated.tools, request)).rejects.toBe(error);
    expect([(await simulated.tools.store.list()).states.map(withoutFolders), simulated.steps]).toEqual([[before], []]);
  });
});

describe('a service that carries out a repeated enrolment again', () => {
  it('marks each enrolment as possibly done, from its request to its reply', async () => {
    const simulated = await startDesk(gone);
    describeOnly(simulated, 'enroll-current-networks');
    const lost = { delivered: true, perhapsDone: true, heard: false, retryAfterMs: null };
    const pendings: unknown[] = [];
    const { connect } = simulated.tools;
    const tools: typeof simulated.tools = {
      ...simulated.tools,
      connect: async (known, patience) => ({
        ...(await connect(known, patience)),
        async enroll({ currentNetworks }) {
          pendings.push((await simulated.tools.store.read('cpn1'))?.perhapsEnrolled);
          throw currentNetworks?.length ? inNetwork : new Unreachable('https://x', 'gone', lost);
        },
      }),
      host: {
        ...simulated.tools.host,
        async check() {
          pendings.push((await simulated.tools.store.read('cpn1'))?.perhapsEnrolled);
        },
      },
    };
    await expect(joinNetwork(tools, request)).rejects.toThrow('gone');
    expect(pendings).toEqual([undefined, true, false, true]);
    expect(await simulated.tools.store.read('cpn1')).toMatchObject({ perhapsEnrolled: true, membership: null });
    await expect(joinNetwork(tools, { ...request, isUnattended: true })).rejects.toBeInstanceOf(WrongUsage);
  });
});

describe('a service that does not describe Current-Networks', () => {
  it('receives no networks of a host, and a 409 is a plain error', async () => {
    const simulated = await startDesk(gone);
    describeOnly(simulated, 'enroll-idempotently');
    const asked: EnrollmentRequest[] = [];
    simulated.service.onEnroll = (enrolment) => {
      asked.push(enrolment);
      throw inNetwork;
    };
    await expect(joinNetwork(simulated.tools, request)).rejects.toBe(inNetwork);
    expect(asked.map(({ currentNetworks }) => currentNetworks)).toEqual([[]]);
  });
});

describe('a listen port that another program uses', () => {
  it.each([
    ['--endpoint', { endpoint }],
    ['--listen-port', { options: { ...options, listenPort: 51_999 } }],
  ])('is refused as %s before a use of the key is taken', async (flag, changes) => {
    const simulated = await SimulatedHost.empty();
    simulated.takenPorts.add(51_999);
    await expect(joinNetwork(simulated.tools, { ...request, ...changes })).rejects.toMatchObject({
      name: 'PortTaken',
      message: expect.stringContaining(`cpn0 cannot listen: UDP port 51999 is in use; choose another with ${flag}`),
    });
    expect((await simulated.tools.store.list()).states).toEqual([]);
  });

  it('is refused when an unfinished join is repeated, too', async () => {
    const simulated = await SimulatedHost.empty();
    const lost = { delivered: true, heard: false, retryAfterMs: null };
    simulated.service.onEnroll = () => {
      throw new Unreachable('https://x', 'gone', lost);
    };
    await expect(joinNetwork(simulated.tools, { ...request, endpoint })).rejects.toThrow('gone');
    simulated.takenPorts.add(51_999);
    await expect(joinNetwork(simulated.tools, { ...request, endpoint })).rejects.toMatchObject({ name: 'PortTaken' });
    simulated.takenPorts.clear();
    simulated.service.onEnroll = reply;
    expect((await joinNetwork(simulated.tools, { ...request, endpoint })).state.membership.peer.id).toBe(9);
  });
});

describe('a host that is still in its network', () => {
  it('is not enrolled a second time, and stays unchanged', async () => {
    const simulated = await startDesk(null);
    const before = withoutFolders(await simulated.state());
    const asked: EnrollmentRequest[] = [];
    enrolInto(simulated, asked);
    const joining = joinNetwork(simulated.tools, request);
    await expect(joining).rejects.toThrow(
      'this host is in network office already, as cpn0; "cpn leave cpn0" first, or "cpn leave cpn0 --keep-peer" if this host is the copy',
    );
    await expect(joining).rejects.toBeInstanceOf(WrongUsage);
    expect(asked).toHaveLength(1);
    expect((await simulated.tools.store.list()).states.map(withoutFolders)).toEqual([before]);
  });
});

describe('a new membership in place of one that ended', () => {
  it('is applied to the interface of the former one, and no peer of that must confirm it', async () => {
    const simulated = await startDesk(gone);
    simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
    simulated.service.onEnroll = ({ currentNetworks, ...enrolment }) => {
      if (currentNetworks?.length) throw inNetwork;
      return reply(enrolment as EnrollmentRequest);
    };
    const { observe } = simulated.tools.host;
    // The new interface of the join is not there yet.
    simulated.tools.host.observe = async (wanted) => (wanted.link === 'cpn0' ? observe(wanted) : bare);
    const { seconds } = simulated;
    const { state } = await joinNetwork(simulated.tools, request);
    expect([state.interface, simulated.actual.link?.addresses[0]?.address]).toEqual(['cpn0', '10.77.0.9']);
    expect(simulated.seconds).toBe(seconds);
  });

  it('is reverted if the former one did not end, at a service without Current-Networks', async () => {
    const simulated = await startDesk(null);
    const before = withoutFolders(await simulated.state());
    describeOnly(simulated, 'enroll-idempotently', 'peer-removal');
    simulated.service.onEnroll = reply;
    const removed: string[] = [];
    simulated.service.onRemovePeer = (token) => removed.push(token.reveal()) > 0;
    await expect(joinNetwork(simulated.tools, request)).rejects.toThrow('in network office already, as cpn0');
    expect(removed).toEqual(['cpp_new']);
    expect((await simulated.tools.store.list()).states.map(withoutFolders)).toEqual([before]);
  });

  it('is reverted if the named interface is of another network', async () => {
    const simulated = await startDesk(gone);
    simulated.service.onEnroll = (enrolment) => {
      const { map: other, ...rest } = reply(enrolment);
      const moved = peer(9, { publicKey: enrolment.publicKey, name: enrolment.name, address: address('10.88.0.9') });
      const peers = [moved, { ...two, address: address('10.88.0.2') }];
      return { ...rest, peer: moved, map: { ...other, id: 8, name: 'lab', cidr: prefix('10.88.0.0/24'), peers } };
    };
    const removed: string[] = [];
    simulated.service.onRemovePeer = (token) => removed.push(token.reveal()) > 0;
    await expect(joinNetwork(simulated.tools, { ...request, interface: 'cpn0' })).rejects.toThrow(
      'cpn0 is of another network than lab; leave out --interface',
    );
    expect(removed).toEqual(['cpp_new']);
    expect((await simulated.tools.store.list()).states.map((state) => state.interface)).toEqual(['cpn0']);
  });
});
