import { chmod, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { EnrollmentRequest } from '../../../src/api/service.ts';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { deleteFormer } from '../../../src/app/leave/forget-former.ts';
import { leaveNetworks, verifyLeft } from '../../../src/app/leave/leave.ts';
import { deleteReplaced, dropFormer, finishLeaving } from '../../../src/app/networks/former-networks.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused, Unreachable } from '../../../src/core/errors/index.ts';
import { type Feature, features } from '../../../src/core/map/features.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { FormerMembership } from '../../../src/store/former-networks.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, keyPair, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const identity = makeIdentity(new Uint8Array(32).fill(7));
const two = peer(2, { endpoint: dialled(2) });
const map = mapAt('"1"', [two]);
const away = () => {
  throw new Unreachable('https://203.0.113.99', 'no', { delivered: false, heard: false, retryAfterMs: null });
};
const refuse = (status: number, reasoned = true) => {
  throw new Refused(status, 'this', 'no', 'x', { reasoned });
};
/** The removal is not confirmed, and reading the network is refused. */
const thenRefuse = (status: number, reasoned: boolean) => {
  simulated.service.mapReplies = [() => refuse(status, reasoned)];
  return false;
};
/** There is nothing to remove, and the network is this one. */
const answer = (listed: NetworkMap) => {
  simulated.service.mapReplies = [answerWith({ ...listed, revision: '"2"' })];
  return false;
};
const inNetwork = new Refused(409, 'the enrolment', 'this host is in it', 'x');
const request: JoinRequest = {
  ...{ token: new Secret('cpn_new'), service: joinedTo(map).service, name: 'host', type: 'origin', endpoint: null },
  ...{ interface: null, options, named: new Set(), networkSecret: null, personalToken: null },
  ...{ isUnattended: false, handshakeTimeoutMs: 0 },
};

let simulated: SimulatedHost;
let tools: Tools;
let warnings: string[];
const former = async () => (await tools.store.readFormer()).memberships;

/** A host that is up in network 7, and whose control plane is away. */
async function start(changes: Partial<Joined> = {}): Promise<void> {
  simulated = await SimulatedHost.empty();
  warnings = [];
  tools = { ...simulated.tools, warn: (text) => void warnings.push(text) };
  const made = await tools.store.prepare();
  const receipt = made.map((path) => ({ made: 'folder' as const, path }));
  await tools.store.write(joinedTo(map, { identity, keySerial: 5_000_000_000_000, receipt, ...changes }));
  simulated.service.mapReplies = [answerWith(map)];
  await passNetwork(tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  simulated.service.onRemovePeer = away;
}
beforeEach(() => start());

/** A service that refuses an enrolment for a network in Current-Networks; `id` is that of the new peer. */
function enrolInto(id: number, network: number | string = 7): EnrollmentRequest[] {
  const asked: EnrollmentRequest[] = [];
  simulated.service.onEnroll = (enrolment) => {
    asked.push(enrolment);
    if (enrolment.currentNetworks?.includes(network)) throw inNetwork;
    const self = peer(id, { publicKey: enrolment.publicKey, name: enrolment.name });
    const joined = { ...map, id: network, revision: '"5"', peers: [self, two] };
    return { peer: self, map: joined, accessToken: new Secret('cpp_new') };
  };
  return asked;
}

describe('a host that leaves while its control plane is away', () => {
  it('stores in a separate file what removes its peer later, and warns', async () => {
    expect(await leaveNetworks(tools)).toEqual([{ interface: 'cpn0', removed: false, former: true }]);
    expect(warnings.join()).toMatch(/peer-1 stays in network office.*the next "cpn run".*"cpn leave --forget" drops/);
    expect(await former()).toMatchObject([
      { interface: 'cpn0', network: { id: 7, name: 'office' }, peer: { id: 1 }, keySerial: 5_000_000_000_000 },
    ]);
    const [kept] = await former();
    expect([kept?.identity?.key, kept?.accessToken?.reveal()]).toEqual([identity.key, 'cpp_x']);
    await verifyLeft(tools, 'cpn0');
    const path = tools.store.formerPath;
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(dirname(path))).toEqual(['former-memberships']);
    expect((await tools.store.list()).unreadable).toEqual([]);
  });

  it('removes it with its own token once the control plane is there, and leaves no file and no folder', async () => {
    await leaveNetworks(tools);
    await finishLeaving(tools);
    expect(await former()).toHaveLength(1);
    const tokens: string[] = [];
    simulated.service.onRemovePeer = (token) => tokens.push(token.reveal()) > 0;
    await reconcileNetworks(tools);
    expect([tokens, await former()]).toEqual([['cpp_x'], []]);
    await expect(stat(dirname(tools.store.formerPath))).rejects.toThrow('ENOENT');
  });

  it.each<[string, () => boolean, boolean]>([
    ['its token is void', () => refuse(401), true],
    ['it is not listed', () => answer({ ...map, peers: [two] }), true],
    ['its token is void when the network is read', () => thenRefuse(401, true), true],
    ['it is listed', () => answer(map), false],
    ['a captive portal wants a login', () => refuse(401, false), false],
    ['a captive portal answers, and wants a login', () => thenRefuse(401, false), false],
    ['nothing is there', () => thenRefuse(404, true), false],
    ['the host may not', () => refuse(403), false],
  ])('is not retried only when the peer is gone: %s', async (_, removes, isGone) => {
    await leaveNetworks(tools);
    simulated.service.onRemovePeer = removes;
    await finishLeaving(tools);
    expect((await former()).length).toBe(isGone ? 0 : 1);
  });

  it.each<[string, () => boolean, boolean]>([
    ['its token is void', () => refuse(401), false],
    ['a captive portal wants a login', () => refuse(401, false), true],
    ['the reply confirms nothing, and its token is void', () => thenRefuse(401, true), false],
    ['a captive portal answers, and wants a login', () => thenRefuse(401, false), true],
  ])(
    'is stored after the first attempt unless the service confirms that the peer is gone: %s',
    async (_, removes, isKept) => {
      simulated.service.onRemovePeer = removes;
      expect(await leaveNetworks(tools)).toEqual([{ interface: 'cpn0', removed: !isKept, former: isKept }]);
      expect([(await former()).length, warnings.length]).toEqual(isKept ? [1, 1] : [0, 0]);
    },
  );

  it('keeps nothing where it could neither remove nor replace the peer', async () => {
    await start({ features: ['peer-key'] });
    expect(await leaveNetworks(tools)).toEqual([{ interface: 'cpn0', removed: false, former: false }]);
    expect([await former(), warnings.join()]).toEqual([[], expect.stringContaining('until "cpn peer remove"')]);
  });

  it('forgets it on request, and keeps the joined networks', async () => {
    await leaveNetworks(tools);
    await tools.store.write(joinedTo(map, { interface: 'cpn1' }));
    await expect(deleteFormer(tools, 'lab')).rejects.toThrow('lab');
    expect(await deleteFormer(tools, 'office')).toHaveLength(1);
    expect([await former(), (await tools.store.list()).states.length]).toEqual([[], 1]);
  });

  it('forgets none where a name matches several', async () => {
    await leaveNetworks(tools);
    const [office] = await former();
    if (office === undefined) throw new Error('nothing is kept');
    const elsewhere = { url: 'https://other.example.net', insecureHttp: false };
    const other = { ...office, service: elsewhere, network: { id: 8, name: 'office' } };
    await tools.store.writeFormer({ memberships: [other, office], folders: [] });
    for (const name of ['cpn0', 'office']) {
      await expect(deleteFormer(tools, name)).rejects.toThrow(
        `"${name}" matches 2 former networks: cpn0 ("office", id 8, https://other.example.net), cpn0 ("office", id 7`,
      );
    }
    expect(await deleteFormer(tools, '7')).toEqual([office]);
    expect(await former()).toEqual([other]);
  });

  it('leaves although the file is damaged, and reports that it stores nothing', async () => {
    await writeFile(tools.store.formerPath, '{"version":2}', { mode: 0o600 });
    expect(await leaveNetworks(tools)).toEqual([{ interface: 'cpn0', removed: false, former: false }]);
    expect(warnings.join()).toContain('former-memberships is damaged or of a later version');
    await chmod(tools.store.formerPath, 0o666);
    await expect(tools.store.readFormer()).rejects.toThrow('can be written by others');
  });
});

describe('several networks that were left', () => {
  /** Keeps copies of the left network, each with these changes. */
  async function keep(...changes: readonly Partial<FormerMembership>[]): Promise<readonly FormerMembership[]> {
    await leaveNetworks(tools);
    const [office] = await former();
    if (office === undefined) throw new Error('nothing is kept');
    const memberships = changes.map((each) => ({ ...office, ...each }));
    await tools.store.writeFormer({ memberships, folders: [] });
    return memberships;
  }
  const named = (id: number) => ({ network: { id, name: `lab-${id}` } });
  const ids = async () => (await former()).map(({ network }) => network.id);
  const elsewhere = { service: { url: 'https://other.example.net', insecureHttp: false } };

  it('are at most 100, of which the oldest is dropped, and each peer is stored once', async () => {
    await keep(...Array.from({ length: 100 }, (_, at) => named(100 + at)));
    await tools.store.write(joinedTo(map, { identity }));
    await leaveNetworks(tools);
    expect(await ids()).toEqual([7, ...Array.from({ length: 99 }, (_, at) => 100 + at)]);
    await tools.store.write(joinedTo(map, { identity }));
    await leaveNetworks(tools);
    expect((await ids()).slice(0, 3)).toEqual([7, 100, 101]);
  });

  it('have the folders of all of them', async () => {
    await leaveNetworks(tools);
    const { folders } = await tools.store.readFormer();
    await tools.store.write(joinedTo({ ...map, id: 8 }, { identity, receipt: [{ made: 'folder', path: '/x' }] }));
    await leaveNetworks(tools);
    expect(folders.length).toBeGreaterThan(0);
    expect((await tools.store.readFormer()).folders).toEqual([...folders, '/x']);
  });

  it('are asked for once at a control plane that is away, and each elsewhere', async () => {
    await keep(named(8), named(9), { ...named(10), ...elsewhere });
    const asked: string[] = [];
    const connect: Tools['connect'] = (known, patience) => {
      asked.push(known.service.url);
      return simulated.tools.connect(known, patience);
    };
    await finishLeaving({ ...tools, connect });
    expect(asked).toEqual(['https://203.0.113.99', 'https://other.example.net']);
  });

  it('are removed where one of them is refused, and only those that are gone are dropped', async () => {
    const kept = await keep(named(8), named(9), named(10));
    let count = 0;
    simulated.service.onRemovePeer = () => {
      count += 1;
      return count === 1 ? refuse(403) : count === 2;
    };
    simulated.service.mapReplies = [answerWith(map)];
    await finishLeaving(tools, kept);
    expect([count, await ids()]).toEqual([3, [8, 10]]);
  });

  it('are asked for only with a token of their own', async () => {
    await keep({ accessToken: null });
    simulated.service.onRemovePeer = () => true;
    await finishLeaving(tools);
    expect(await ids()).toEqual([7]);
  });

  it.each<[string, NetworkMap | null, number]>([
    ['sends no map', null, 1],
    ['lists the key under another id', { ...map, peers: [peer(9, { publicKey: keyPair(1).publicKey })] }, 1],
    ['lists the id with another key', { ...map, peers: [peer(1, { publicKey: keyPair(9).publicKey })] }, 1],
    ['lists neither', { ...map, peers: [two] }, 0],
  ])('are kept while the service %s', async (_, listed, count) => {
    await keep({});
    simulated.service.onRemovePeer = () => false;
    simulated.service.mapReplies = [() => ({ map: listed, waited: false })];
    await finishLeaving(tools);
    expect(await former()).toHaveLength(count);
  });

  it('are kept if this host joined as another peer, at another service, or into another network', async () => {
    await keep({}, { peer: { id: 9, name: 'peer-9' } }, named(8), elsewhere);
    await deleteReplaced(tools, joinedTo(map));
    expect((await former()).map(({ service, network, peer: { id } }) => [service.url, network.id, id])).toEqual([
      ['https://203.0.113.99', 7, 9],
      ['https://203.0.113.99', 8, 1],
      ['https://other.example.net', 7, 1],
    ]);
  });

  it('hand their folders to a joined network with the last of them, whose state then has them', async () => {
    await keep({}, named(8));
    const joined = joinedTo(map, { interface: 'cpn1' });
    await tools.store.write(joined);
    const { memberships } = await tools.store.readFormer();
    await tools.store.writeFormer({ memberships, folders: ['/x'] });
    expect(await deleteReplaced(tools, joined)).toMatchObject({ receipt: [] });
    expect(await tools.store.read('cpn1')).toMatchObject({ receipt: [] });
    const last = joinedTo({ ...map, id: 8 }, { interface: 'cpn1' });
    expect(await deleteReplaced(tools, last)).toMatchObject({ receipt: [{ made: 'folder', path: '/x' }] });
    expect([await former(), (await tools.store.read('cpn1'))?.receipt]).toEqual([[], [{ made: 'folder', path: '/x' }]]);
  });

  it('stay if they were left again since', async () => {
    const [first] = await keep({});
    if (first === undefined) throw new Error('nothing is kept');
    const again = { ...first, leftAt: '2026-02-02T00:00:00.000Z' };
    await tools.store.writeFormer({ memberships: [again], folders: [] });
    await dropFormer(tools, [first]);
    expect(await former()).toEqual([again]);
  });
});

it('a host stores what it can remove later of a service whose description it never read', async () => {
  await start({ features: null });
  await leaveNetworks(tools);
  expect(await former()).toMatchObject([{ features: null, network: { id: 7 } }]);
});

it('a host leaves the interface that was confirmed, whatever its networks are called by then', async () => {
  await tools.store.write(joinedTo({ ...map, name: 'cpn0' }, { interface: 'cpn1' }));
  expect(await leaveNetworks(tools, ['cpn0'])).toMatchObject([{ interface: 'cpn0' }]);
  expect((await tools.store.list()).states.map((state) => state.interface)).toEqual(['cpn1']);
});

describe('a host that comes back into a network that it left', () => {
  it('is the same peer, by its identity and a later proof of its new key', async () => {
    await leaveNetworks(tools);
    const asked = enrolInto(1);
    const { state } = await joinNetwork(tools, request);
    expect(asked.map(({ currentNetworks }) => currentNetworks)).toEqual([[7], []]);
    expect(asked[0]?.identity).not.toBe(identity.key);
    expect(asked[1]).toMatchObject({ identity: identity.key, name: 'peer-1', keyProof: { serial: 5_000_000_000_001 } });
    expect([state.identity?.key, state.keySerial]).toEqual([identity.key, 5_000_000_000_001]);
    expect(state.keyPair.publicKey).not.toBe(joinedTo(map).keyPair.publicKey);
    expect(await former()).toEqual([]);
    // The folders go with the network that is joined now.
    await leaveNetworks({
      ...tools,
      connect: async (...known) => ({ ...(await simulated.tools.connect(...known)), removePeer: async () => true }),
    });
    await expect(stat(dirname(tools.store.formerPath))).rejects.toThrow('ENOENT');
  });

  it('is a new peer where the service does not ask for proofs, and its former one is removed', async () => {
    await leaveNetworks(tools);
    const described: readonly Feature[] = features.filter((feature) => feature !== 'enroll-identity-proof');
    simulated.service.onDescribe = async () => ({ features: described, etag: null });
    const asked = enrolInto(9);
    simulated.service.onRemovePeer = () => true;
    const { state } = await joinNetwork(tools, request);
    expect(asked.map(({ currentNetworks }) => currentNetworks)).toEqual([[]]);
    expect([asked[0]?.identity === identity.key, state.membership.peer.id]).toEqual([false, 9]);
    expect(await former()).toEqual([]);
  });

  it('takes no identity into another network than its own', async () => {
    await leaveNetworks(tools);
    const elsewhere = makeIdentity(new Uint8Array(32).fill(8));
    const lab = { id: 8, name: 'lab' };
    const [office] = await former();
    if (office === undefined) throw new Error('nothing is kept');
    const kept = [{ ...office, network: lab, identity: elsewhere }, office];
    await tools.store.writeFormer({ memberships: kept, folders: [] });
    const asked = enrolInto(1);
    const { state } = await joinNetwork(tools, request);
    expect(asked.map(({ currentNetworks }) => currentNetworks)).toEqual([[8, 7], [7], [8]]);
    expect(state.identity?.key).toBe(identity.key);
    expect((await former()).map(({ network }) => network)).toEqual([lab]);
  });

  it('takes a new identity into another network', async () => {
    await leaveNetworks(tools);
    const asked = enrolInto(9, 8);
    await joinNetwork(tools, request);
    expect(asked).toHaveLength(1);
    expect([asked[0]?.currentNetworks, asked[0]?.identity === identity.key]).toEqual([[7], false]);
    expect(await former()).toHaveLength(1);
  });
});
