import { describe, expect, it } from 'vitest';
import { acceptPeer, findPeer } from '../../src/app/networks/accept.ts';
import { reconcileNetworks } from '../../src/app/networks/reconcile.ts';
import { withMembership, withOptions } from '../../src/app/pins.ts';
import { evaluateNetwork } from '../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../src/app/reconcile/pass.ts';
import { refresh } from '../../src/app/reconcile/refresh.ts';
import { noUpdate } from '../../src/app/reconcile/state-update.ts';
import { PinListener } from '../../src/app/run/listeners/pin-listener.ts';
import { ProblemListener } from '../../src/app/run/listeners/problem-listener.ts';
import { readStatus } from '../../src/app/status/status.ts';
import { makeIdentity, proveKey } from '../../src/core/crypto/identity.ts';
import { MismatchChanged, NotJoined, Unreachable, WrongUsage } from '../../src/core/errors/index.ts';
import type { NetworkMap, Peer } from '../../src/core/map/model.ts';
import type { PinRule } from '../../src/core/map/options.ts';
import type { Joined } from '../../src/store/state/state.ts';
import { address, dialled, keyPair, options, peer } from '../core/samples.ts';
import { joinedTo, mapAt } from './joined-state.ts';
import { passOf } from './run/pass-of.ts';
import { SimulatedHost } from './simulated-host.ts';
import { answerWith, fail, type MapReply } from './simulated-service.ts';

const identity = makeIdentity(new Uint8Array(32).fill(7));
const key = (number: number) => keyPair(number).publicKey;
const db = peer(2, { name: 'db', endpoint: dialled(2), identity: identity.key });
const web = peer(3, { endpoint: dialled(3) });
const stranger: Peer = { ...db, publicKey: key(22) };
/** Without routes: no peer here serves any. */
const at = (revision: string, peers: readonly Peer[]) => mapAt(revision, peers, { routes: [] });
const before = at('"1"', [db, web]);
const after = at('"2"', [stranger, web]);
const gone = new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs: null });
const confirming = { withinMs: 20_000 };

/** A host that joined with this rule, and whose tunnel is up. */
async function deskWith(pin: PinRule, map: NetworkMap = before): Promise<SimulatedHost> {
  const { membership, ...state } = joinedTo(map, { options: { ...options, pin } });
  const simulated = await SimulatedHost.with(withMembership(state as Joined, membership));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, confirming);
  simulated.steps.length = 0;
  return simulated;
}

/** A pass as `cpn reconcile` makes it, with what it warned of. */
async function reconcile(simulated: SimulatedHost, ...answers: MapReply[]) {
  const warnings: string[] = [];
  simulated.service.mapReplies = answers;
  const [report] = await reconcileNetworks({ ...simulated.tools, warn: (text) => void warnings.push(text) });
  return { ...report, warnings };
}

/** The keys that the tunnel has for its peers. */
const keysOf = (simulated: SimulatedHost) => simulated.actual.device?.peers.map(({ publicKey }) => publicKey);
const claimsOf = async (simulated: SimulatedHost) =>
  (await simulated.state()).pins.map(({ claimed }) => claimed?.publicKey ?? null);

describe('a peer with a new key that it did not prove', () => {
  it('is used with `report`, and the operator gets a warning', async () => {
    const simulated = await deskWith('report');
    const { warnings } = await reconcile(simulated, answerWith(after));
    expect(keysOf(simulated)).toEqual([key(3), key(22)]);
    expect(warnings).toEqual([
      `db (10.77.0.2) changed without a signed proof: key ${key(22)} instead of ${key(2)}; using the new values; verify the change, then type "cpn accept 10.77.0.2 cpn0"`,
    ]);
    const [status] = await readStatus(simulated.tools);
    expect(status).toMatchObject({ state: 'degraded', drift: [], warnings });
    expect(status?.peers).toMatchObject([
      { publicKey: key(22), pin: 'changed', claimedPublicKey: key(22), claim: expect.stringContaining(key(2)) },
      { publicKey: key(3), pin: 'ok', claimedPublicKey: null, claim: null },
    ]);
  });

  it('is held with strict: neither the tunnel nor the file changes', async () => {
    const simulated = await deskWith('strict');
    const file = await simulated.tools.store.readConfig('cpn0');
    const { warnings } = await reconcile(simulated, answerWith(after));
    expect(simulated.steps).toEqual([]);
    expect(await simulated.tools.store.readConfig('cpn0')).toBe(file);
    expect(warnings).toEqual([expect.stringContaining('keeping the pinned values')]);
    const [status] = await readStatus(simulated.tools);
    expect(status).toMatchObject({ state: 'degraded', drift: [], warnings });
    expect(status?.peers[0]).toMatchObject({ publicKey: key(2), pin: 'held', claimedPublicKey: key(22) });
  });

  it('stays held when nothing changes, and when another peer changes', async () => {
    const simulated = await deskWith('strict');
    await reconcile(simulated, answerWith(after));
    await reconcile(simulated, answerWith(after));
    expect(await claimsOf(simulated)).toEqual([key(22), null]);
    await reconcile(simulated, answerWith(at('"3"', [stranger, { ...web, name: 'w' }, peer(4)])));
    expect(await claimsOf(simulated)).toEqual([key(22), null, null]);
    expect((await simulated.state()).membership.map.peers.map(({ name, publicKey }) => [name, publicKey])).toEqual([
      ['peer-1', key(1)],
      ['db', key(2)],
      ['w', key(3)],
      ['peer-4', key(4)],
    ]);
  });

  it('makes the host request the whole map, not its changes, while a peer is held', async () => {
    const simulated = await deskWith('strict');
    await reconcile(simulated, answerWith(after), answerWith(after));
    simulated.service.mapRequests.length = 0;
    await refresh(simulated.tools, await simulated.state());
    expect(simulated.service.mapRequests).toMatchObject([{ revision: '"2"', base: null }]);
    await reconcile(simulated, answerWith({ ...before, revision: '"3"' }));
    simulated.service.mapRequests.length = 0;
    await refresh(simulated.tools, await simulated.state());
    expect(simulated.service.mapRequests).toMatchObject([{ revision: '"3"', base: { revision: '"3"' } }]);
    expect(await claimsOf(simulated)).toEqual([null, null]);
  });

  it('causes no second change when the service sends no revisions', async () => {
    const simulated = await deskWith('strict', { ...before, revision: null });
    await reconcile(simulated, answerWith({ ...after, revision: null }));
    const pass = await passNetwork(
      simulated.tools,
      'cpn0',
      { map: { ...after, revision: null }, resolved: null },
      confirming,
    );
    expect(pass).toMatchObject({ changes: [], isDrift: true });
  });

  it('is forgotten with the map, where that was refused', async () => {
    const simulated = await deskWith('report');
    const state = await simulated.state();
    await simulated.tools.store.write({ ...state, refused: '"2"' });
    await reconcile(simulated, () => ({ map: after, waited: false }));
    expect(keysOf(simulated)).toContain(key(2));
    expect(await claimsOf(simulated)).toEqual([null, null]);
  });
});

it('a peer that proved its new key is used without a warning', async () => {
  const simulated = await deskWith('strict');
  const proof = proveKey(identity, key(22), new Date(9));
  const { warnings } = await reconcile(simulated, answerWith(at('"2"', [{ ...stranger, proof }, web])));
  expect(warnings).toEqual([]);
  expect(keysOf(simulated)).toEqual([key(3), key(22)]);
  expect((await readStatus(simulated.tools))[0]).toMatchObject({ state: 'up', warnings: [] });
});

describe('the rule of a network that is joined', () => {
  const joined = async (pin: PinRule) => {
    const simulated = await deskWith(pin);
    await reconcile(simulated, answerWith(after));
    return simulated.state();
  };
  const keyInUse = ({ membership }: { membership: Joined['membership'] | null }) => membership?.map.peers[1]?.publicKey;

  it('holds at once when it becomes another', async () => {
    const loose = await joined('report');
    expect(keyInUse(withOptions(loose, { ...options, pin: 'strict' }))).toBe(key(2));
    const tight = await joined('strict');
    const loosened = withOptions(tight, { ...options, pin: 'report' });
    expect(keyInUse(loosened)).toBe(key(22));
    expect(loosened.membership?.map.revision).toBeNull();
    expect(loosened.pins).toEqual(tight.pins);
  });

  it('changes nothing when it stays the same', async () => {
    const tight = await joined('strict');
    expect(withOptions(tight, tight.options)).toEqual(tight);
  });
});

describe('accepting', () => {
  const claiming = async (pin: PinRule = 'strict') => {
    const simulated = await deskWith(pin);
    await reconcile(simulated, answerWith(after));
    return simulated;
  };

  it('takes what is claimed, with one pass that leaves the others alone', async () => {
    const simulated = await claiming();
    const found = await findPeer(simulated.tools, 'db', undefined);
    expect(found).toMatchObject({ interface: 'cpn0', id: 2, mismatch: { pin: { publicKey: key(2) } } });
    expect(await acceptPeer(simulated.tools, found)).toMatchObject([{ failure: null, unsynced: null }]);
    expect(keysOf(simulated)).toEqual([key(3), key(22)]);
    expect(JSON.stringify(simulated.steps)).not.toContain(key(3));
    expect(await claimsOf(simulated)).toEqual([null, null]);
    expect((await simulated.state()).membership.map.revision).toBe('"2"');
    expect((await readStatus(simulated.tools))[0]).toMatchObject({ state: 'up', warnings: [] });
  });

  it('needs no control plane', async () => {
    const simulated = await claiming();
    simulated.service.mapReplies = [fail(gone)];
    await acceptPeer(simulated.tools, await findPeer(simulated.tools, '2', 'office'));
    expect(keysOf(simulated)).toEqual([key(3), key(22)]);
  });

  it('ends the warning where the key is used already', async () => {
    const simulated = await claiming('report');
    simulated.steps.length = 0;
    await acceptPeer(simulated.tools, await findPeer(simulated.tools, '10.77.0.2', 'cpn0'));
    expect(simulated.steps).toEqual([]);
    expect((await readStatus(simulated.tools))[0]).toMatchObject({ state: 'up', warnings: [] });
  });

  it('is of what was shown, and of nothing that came in its place', async () => {
    const simulated = await claiming();
    const found = await findPeer(simulated.tools, 'db', undefined);
    await reconcile(simulated, answerWith(at('"3"', [{ ...stranger, publicKey: key(33) }, web])));
    await expect(acceptPeer(simulated.tools, found)).rejects.toBeInstanceOf(MismatchChanged);
    await reconcile(simulated, answerWith({ ...before, revision: '"4"' }));
    await expect(acceptPeer(simulated.tools, found)).rejects.toThrow('it matches its pin now');
    expect(keysOf(simulated)).toContain(key(2));
  });

  it('is refused on a host that is in no network, with how to join one', async () => {
    const simulated = await deskWith('strict', at('"1"', [web]));
    await simulated.tools.store.lock(() => simulated.tools.store.forget('cpn0', []));
    await expect(findPeer(simulated.tools, 'x', undefined)).rejects.toBeInstanceOf(NotJoined);
  });

  it('is offered of one peer alone, by its id, its address or its name', async () => {
    const named = { ...web, name: 'db' };
    const simulated = await deskWith('strict', at('"1"', [db, named]));
    await expect(findPeer(simulated.tools, 'db', undefined)).rejects.toThrow(
      '"db" matches 2 peers: "db" (2, 10.77.0.2) in cpn0, "db" (3, 10.77.0.3) in cpn0; give an id, address or name',
    );
    await expect(findPeer(simulated.tools, 'peer-1', undefined)).rejects.toBeInstanceOf(WrongUsage);
    await expect(findPeer(simulated.tools, 'x', undefined)).rejects.toThrow('peers with a change to accept: none');
    expect(await findPeer(simulated.tools, '3', undefined)).toMatchObject({ id: 3, mismatch: null });
    await reconcile(simulated, answerWith(at('"2"', [stranger, named])));
    await expect(findPeer(simulated.tools, 'db', undefined)).rejects.toThrow('"db" matches 2 peers');
    await expect(findPeer(simulated.tools, 'x', undefined)).rejects.toThrow(
      'peers with a change to accept: "db" (2, 10.77.0.2)',
    );
  });

  it.each(['2', '10.77.0.2'])(
    'is refused where a peer is called as the id or the address of another: %s',
    async (name) => {
      const simulated = await deskWith('strict', at('"1"', [db, { ...web, name }]));
      await reconcile(simulated, answerWith(at('"2"', [stranger, { ...web, name }])));
      await expect(findPeer(simulated.tools, name, 'cpn0')).rejects.toThrow(`"${name}" matches 2 peers: "db" (2`);
      expect(await findPeer(simulated.tools, 'db', 'cpn0')).toMatchObject({ id: 2 });
    },
  );

  it('brings in who was kept out because of it', async () => {
    const taker = peer(9, { publicKey: key(2), address: address('10.77.0.9') });
    const simulated = await deskWith('strict');
    await reconcile(simulated, answerWith(at('"2"', [stranger, web, taker])));
    expect((await simulated.state()).membership.map.peers.map(({ id }) => id)).toEqual([1, 2, 3]);
    await acceptPeer(simulated.tools, await findPeer(simulated.tools, 'db', undefined));
    expect((await simulated.state()).membership.map.peers.map(({ id }) => id)).toEqual([1, 2, 3, 9]);
  });
});

describe('the log', () => {
  it('has a mismatch once, and its end', async () => {
    const simulated = await deskWith('strict');
    const watch = new PinListener(simulated.tools, 'cpn0');
    const problems = new ProblemListener(simulated.tools);
    const follow = async (...answers: MapReply[]) => {
      await reconcile(simulated, ...answers);
      const from = simulated.logged.length;
      const pass = passOf(await evaluateNetwork(simulated.tools, await simulated.state()));
      watch.onPass(pass);
      problems.onPass(pass);
      return simulated.logged.slice(from);
    };
    expect(await follow(answerWith(before))).toEqual([]);
    const facts = { interface: 'cpn0', peer: 2, name: 'db', address: '10.77.0.2' };
    expect(await follow(answerWith(after))).toMatchObject([
      { level: 'warn', facts: { ...facts, known_key: key(2), claimed_key: key(22), pin: 'strict' } },
    ]);
    expect(await follow(answerWith(at('"3"', [stranger, web, peer(4)])))).toEqual([]);
    await acceptPeer(simulated.tools, await findPeer(simulated.tools, 'db', undefined));
    expect(await follow(answerWith(at('"3"', [stranger, web, peer(4)])))).toMatchObject([
      { level: 'info', facts: { ...facts, key: key(22) }, message: 'the mismatch of a peer with its pin was accepted' },
      { level: 'info', facts: { code: 'pin-mismatch', peer: 2 } },
    ]);
  });

  it('logs a key that its host proved, and an address that moved to another peer', async () => {
    const simulated = await deskWith('report');
    const watch = new PinListener(simulated.tools, 'cpn0');
    watch.onPass(passOf({ state: await simulated.state() }));
    const proof = proveKey(identity, key(22), new Date(9));
    const newOwner = peer(9, { address: web.address });
    await reconcile(simulated, answerWith(at('"2"', [{ ...stranger, proof }, newOwner])));
    simulated.logged.length = 0;
    watch.onPass(passOf({ state: await simulated.state() }));
    watch.onPass(passOf({ state: await simulated.state() }));
    expect(simulated.logged).toMatchObject([
      { level: 'info', facts: { peer: 2, key: key(22) }, message: 'a peer proved a new key' },
      { level: 'warn', facts: { peer: 9, address: '10.77.0.3', key: key(9), known_key: key(3) } },
    ]);
  });
});
