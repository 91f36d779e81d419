import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { leaveNetworks } from '../../../src/app/leave/leave.ts';
import { takeDown } from '../../../src/app/networks/down.ts';
import { planNetworks, reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { applyUpdate } from '../../../src/app/reconcile/state-update.ts';
import { findHeldKeys, resumeRotation, rotateKeys } from '../../../src/app/rotation/rotate.ts';
import { readStatus } from '../../../src/app/status/status.ts';
import { isProven, makeIdentity } from '../../../src/core/crypto/identity.ts';
import { keyPairOf, makeKeyPair, type PublicKey } from '../../../src/core/crypto/keys.ts';
import { Interrupted, Locked, Refused, Unreachable, WrongUsage } from '../../../src/core/errors/index.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, keyPair, peer } from '../../core/samples.ts';
import { joinedTo, mapAt, self } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const [two, three] = [peer(2, { endpoint: dialled(2) }), peer(3, { endpoint: dialled(3) })];
const map = mapAt('"1"', [two, three]);
const [older, newer] = [keyPair(1), makeKeyPair(new Uint8Array(32).fill(200))];
/** The newest map, once the control plane took the new key. */
const renamed = mapAt('"2"', [], { peers: [{ ...self, publicKey: newer.publicKey }, two, three] });
const identity = makeIdentity(new Uint8Array(32).fill(5));

/** The control plane is unreachable; `delivered` tells whether a request may have come there. */
const unreachable = (delivered: boolean) =>
  new Unreachable('https://203.0.113.99', 'it is gone', { delivered, heard: false, retryAfterMs: null });

/** A host that is up, with handshakes with its peers; its next key is `newer`. */
async function startUp(changes: Partial<Joined> = {}): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map, { identity, ...changes }));
  simulated.service.mapReplies = [answerWith(map)];
  simulated.onHandshakeTrigger = () => {};
  Object.assign(simulated.tools, { random: () => new Uint8Array(32).fill(200) });
  await bringUp(simulated.tools);
  const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000) - 5;
  for (const number of [2, 3]) simulated.updatePeer(number, { latestHandshake, endpoint: dialled(number) as never });
  simulated.steps.length = 0;
  return simulated;
}

/** Makes a peer complete each handshake at once while `accepts` holds. */
function letAnswer(simulated: SimulatedHost, number: number, accepts = () => true): void {
  const before = simulated.onHandshakeTrigger;
  simulated.onHandshakeTrigger = (address) => {
    before(address);
    if (address !== peer(number).address || !accepts()) return;
    simulated.updatePeer(number, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  };
}

const keyInUse = ({ actual }: SimulatedHost) => actual.device?.publicKey;
const configKey = async ({ tools }: SimulatedHost) =>
  /PrivateKey = (\S+)/.exec((await tools.store.readConfig('cpn0')) ?? '')?.[1];

/** Every place that holds a key holds this one, and no rotation is pending. */
async function expectSettled(simulated: SimulatedHost, expected: typeof older): Promise<Joined> {
  const state = await simulated.state();
  expect(state.rotation).toBeNull();
  expect([state.keyPair.publicKey, keyInUse(simulated)]).toEqual([expected.publicKey, expected.publicKey]);
  expect(await configKey(simulated)).toBe(expected.privateKey.reveal());
  expect(state.membership.map.peers.find(({ id }) => id === 1)?.publicKey).toBe(expected.publicKey);
  expect(simulated.service.registeredKeys.at(-1)?.publicKey ?? older.publicKey).toBe(expected.publicKey);
  return state;
}

describe('a new key', () => {
  it('is registered with a proof, and in use once a peer answered to it; the peers stay as they are', async () => {
    const simulated = await startUp();
    letAnswer(simulated, 2);
    letAnswer(simulated, 3);
    const [report] = await rotateKeys(simulated.tools, undefined);
    expect(report).toMatchObject({ interface: 'cpn0', answered: 'peer-2', failure: null });
    // A service that is restored to the revision before the new key is asked for its whole map.
    expect((await simulated.state()).membership.map.revision).toBeNull();
    const state = await expectSettled(simulated, newer);
    const proof = simulated.service.registeredKeys[0]?.proof ?? expect.unreachable('there is a proof');
    expect(isProven(identity.key, newer.publicKey, proof)).toBe(true);
    expect(state.keySerial).toBe(proof.serial);
    expect(state.keySince > '2023').toBe(true);
    expect(simulated.steps).toMatchObject([{ do: 'configure-device', peers: [] }]);
  });

  it('is in use, or the old one again, without a change of names, which the next pass makes and records', async () => {
    const simulated = await startUp();
    const settings = { own: null, isRecent: false, folder: '/etc/dnsmasq.d', trouble: null, others: [] };
    const found = { dns: { program: 'dnsmasq', ...settings, isServing: true }, dnsFiles: {} } as const;
    // After the pass before the rotation.
    simulated.service.onRegisterKey = async () => {
      simulated.actual = { ...simulated.actual, ...found };
      return true;
    };
    simulated.tools.host.resolve = async () => [self.address];
    const [report] = await rotateKeys(simulated.tools, undefined);
    expect(report?.failure).toMatchObject({ name: 'NotRotated' });
    expect(simulated.steps.filter((step) => step.do.endsWith('-dns'))).toEqual([]);
    await reconcileNetworks(simulated.tools);
    expect(Object.keys(simulated.actual.dnsFiles ?? {})).toEqual(['/etc/dnsmasq.d/cpn-cpn0.conf']);
    expect(await simulated.state()).toHaveProperty('ownsDns', true);
  });

  it('is on the disk before the control plane receives it', async () => {
    const simulated = await startUp();
    letAnswer(simulated, 2);
    let saved: Joined | undefined;
    simulated.service.onRegisterKey = async () => {
      saved ??= await simulated.state();
      return true;
    };
    await rotateKeys(simulated.tools, undefined);
    expect(saved).toMatchObject({ keyPair: { publicKey: older.publicKey }, rotation: { phase: 'announcing' } });
    expect(saved?.rotation?.keyPair.privateKey.reveal()).toBe(newer.privateKey.reveal());
  });

  it('is not sent when the disk does not store it', async () => {
    const simulated = await startUp();
    const store = { ...simulated.tools.store, isOnDisk: () => false };
    const [report] = await rotateKeys({ ...simulated.tools, store }, undefined);
    expect(report?.failure).toMatchObject({ name: 'CannotRotate' });
    expect(simulated.service.registeredKeys).toEqual([]);
    await expectSettled(simulated, older);
  });

  it('stays when no peer responded before: the control plane confirms it', async () => {
    const simulated = await startUp();
    for (const number of [2, 3]) simulated.updatePeer(number, { latestHandshake: null });
    expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ answered: null, failure: null }]);
    await expectSettled(simulated, newer);
  });

  it('makes WireGuard retry at once with a peer that lacks it, and not with one that responded', async () => {
    const simulated = await startUp();
    letAnswer(simulated, 3);
    letAnswer(simulated, 2, () => simulated.steps.filter((step) => step.do === 'renew-peers').length >= 2);
    expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ failure: null }]);
    const renewed = simulated.steps.filter((step) => step.do === 'renew-peers');
    expect(renewed).toHaveLength(2);
    for (const step of renewed) {
      expect(step).toMatchObject({ peers: [{ publicKey: two.publicKey, endpoint: two.endpoint }] });
    }
    expect(simulated.seconds).toBeLessThan(1_003);
  });

  it('is rolled back when no peer responds; the old one gets a later proof than the new one', async () => {
    const simulated = await startUp();
    letAnswer(simulated, 2, () => keyInUse(simulated) === older.publicKey);
    const [report] = await rotateKeys(simulated.tools, undefined, 6_000);
    expect(report?.failure).toMatchObject({ name: 'NotRotated' });
    const state = await expectSettled(simulated, older);
    expect(simulated.service.registeredKeys.map(({ publicKey }) => publicKey)).toEqual([
      newer.publicKey,
      older.publicKey,
    ]);
    const [there, back] = simulated.service.registeredKeys.map(({ proof }) => proof?.serial ?? 0) as [number, number];
    expect(back).toBeGreaterThan(there);
    expect(state).toMatchObject({ keySerial: back, keySince: '2026-01-01T00:00:00.000Z' });
  });

  it.each([
    ['taken down', async (simulated: SimulatedHost) => takeDown(simulated.tools), 'RotationPending'],
    ['left', async (simulated: SimulatedHost) => leaveNetworks(simulated.tools), 'NotJoined'],
  ])('is waited for no longer where the network is %s meanwhile', async (_, end, name) => {
    const simulated = await startUp();
    simulated.service.onRemovePeer = () => true;
    let isEnded = false;
    const { device } = simulated.tools.host;
    simulated.tools.host.device = async (link) => {
      if (keyInUse(simulated) === newer.publicKey && !isEnded) {
        isEnded = true;
        await end(simulated);
      }
      return isEnded ? null : device(link);
    };
    const [report] = await rotateKeys(simulated.tools, undefined);
    expect(report?.failure?.name).toBe(name);
  });

  it('is rolled back, and says so, where the interface is gone meanwhile', async () => {
    const simulated = await startUp();
    const { device } = simulated.tools.host;
    let looks = 0;
    simulated.tools.host.device = async (link) => {
      if (keyInUse(simulated) === newer.publicKey) looks += 1;
      return looks > 0 ? null : device(link);
    };
    const [report] = await rotateKeys(simulated.tools, undefined);
    expect(report?.failure?.name).toBe('NotRotated');
    expect(looks).toBeGreaterThan(10);
    expect(simulated.steps.map((step) => step.do)).not.toContain('renew-peers');
  });

  it('is answered by a peer that changes its own key meanwhile: passes go by newer maps while it waits', async () => {
    const simulated = await startUp();
    const theirs = keyPair(22).publicKey;
    const both = {
      ...renamed,
      revision: '"3"',
      peers: renamed.peers.map((each) => (each.id === 2 ? { ...each, publicKey: theirs } : each)),
    };
    simulated.service.mapReplies = [answerWith(both)];
    let isNew = false;
    Object.assign(simulated.tools.host, {
      triggerHandshake: async () => {
        const { device } = simulated.actual;
        if (!isNew) await passNetwork(simulated.tools, 'cpn0', { map: both, resolved: null }, { withinMs: 1_000 });
        else if (device !== null) {
          const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000);
          const peers = device.peers.map((each) => (each.publicKey === theirs ? { ...each, latestHandshake } : each));
          simulated.actual = { ...simulated.actual, device: { ...device, peers } };
        }
        isNew = true;
      },
    });
    expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ answered: 'peer-2', failure: null }]);
    const state = await expectSettled(simulated, newer);
    expect(state.membership.map.peers.map(({ publicKey }) => publicKey)).toContain(theirs);
  });

  it('is rolled back after a signal', async () => {
    const simulated = await startUp();
    const { lock } = simulated.tools.store;
    let locks = 0;
    Object.assign(simulated.tools.store, {
      lock: async (work: () => Promise<unknown>) => {
        const result = await lock(work);
        locks += 1;
        if (locks === 1) simulated.interrupting.abort(new Interrupted('SIGHUP'));
        return result;
      },
    });
    await expect(rotateKeys(simulated.tools, undefined)).rejects.toBeInstanceOf(Interrupted);
    await expectSettled(simulated, older);
    expect(simulated.service.registeredKeys.map(({ publicKey }) => publicKey)).toEqual([
      newer.publicKey,
      older.publicKey,
    ]);
  });

  it('does not start after a signal that comes before the key is sent', async () => {
    const simulated = await startUp();
    simulated.interrupting.abort(new Interrupted('SIGINT'));
    await expect(rotateKeys(simulated.tools, undefined)).rejects.toBeInstanceOf(Interrupted);
    expect(simulated.service.registeredKeys).toEqual([]);
    await expectSettled(simulated, older);
  });

  it('stays when no peer responds and the control plane refuses the old one', async () => {
    const simulated = await startUp();
    const refusal = new Refused(422, 'changing the key', 'no', 'ask an admin');
    simulated.service.onRegisterKey = (publicKey) => {
      if (publicKey === older.publicKey) throw refusal;
      simulated.service.mapReplies = [answerWith(renamed)];
      return true;
    };
    expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ failure: refusal }]);
    await expectSettled(simulated, newer);
  });
});

describe('the peers that confirm a new key', () => {
  /** The saved rotation while the control plane gets the key. */
  async function confirmingIn(simulated: SimulatedHost) {
    const { write } = simulated.tools.store;
    const saved: (readonly PublicKey[])[] = [];
    simulated.tools.store.write = async (state) => {
      if (state.rotation?.phase === 'confirming')
        saved.push(state.rotation.witnesses.map(({ publicKey }) => publicKey));
      await write(state);
    };
    letAnswer(simulated, 3);
    await rotateKeys(simulated.tools, undefined);
    return saved[0] ?? [];
  }

  it('have a live session: an old handshake proves nothing', async () => {
    const simulated = await startUp();
    simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) - 3600 });
    expect(await confirmingIn(simulated)).toEqual([three.publicKey]);
  });

  it('are those with the latest handshakes, at most 64', async () => {
    const peers = Array.from({ length: 66 }, (_, at) => peer(at + 2, { endpoint: dialled(at + 2) }));
    const membership = { ...joinedTo(map).membership, map: mapAt('"1"', peers) };
    const simulated = await startUp({ membership });
    const now = Math.floor(simulated.tools.now().getTime() / 1000);
    for (const { id } of peers) simulated.updatePeer(Number(id), { latestHandshake: now - 100 + Number(id) });
    const found = await confirmingIn(simulated);
    expect(found).toEqual(
      peers
        .map(({ publicKey }) => publicKey)
        .reverse()
        .slice(0, 64),
    );
  });
});

describe('a new key pair', () => {
  it('has a later proof than the present one, whatever the clock says', async () => {
    const simulated = await startUp({ keySerial: 5_000_000_000_000 });
    letAnswer(simulated, 2);
    await rotateKeys(simulated.tools, undefined);
    expect((await simulated.state()).keySerial).toBe(5_000_000_000_001);
  });

  it('is saved with what the pass before it made on the host', async () => {
    const simulated = await startUp();
    letAnswer(simulated, 2);
    const { receipt } = await simulated.state();
    await simulated.tools.store.write({ ...(await simulated.state()), receipt: [] });
    simulated.actual = { ...simulated.actual, firewall: null };
    await rotateKeys(simulated.tools, undefined);
    expect((await simulated.state()).receipt).toEqual(receipt.filter(({ made }) => made === 'firewall'));
  });

  it('is not activated in a network that is down, and the reports have the order of the interfaces', async () => {
    const simulated = await startUp();
    const { tools } = simulated;
    const begun = { begunAt: '2026-01-01T00:00:00.000Z', witnesses: [], proof: null, wayBack: null };
    const rotation = { ...begun, phase: 'confirming' as const, keyPair: newer };
    await tools.store.write({ ...(await simulated.state()), enabled: false, rotation });
    expect(await resumeRotation(tools, 'cpn0', { withinMs: 6_000 })).toBeNull();
    expect([simulated.service.registeredKeys, simulated.steps]).toEqual([[], []]);
    for (const link of ['aaa0', 'zzz0'])
      await writeFile(join(dirname(tools.store.formerPath), `${link}.json`), '{', { mode: 0o600 });
    const reports = await rotateKeys(tools, undefined);
    expect(reports.map(({ interface: link }) => link)).toEqual(['aaa0', 'cpn0', 'zzz0']);
  });
});

describe('a rotation that ends otherwise', () => {
  it('is in the wg-quick file before WireGuard has the new key', async () => {
    const simulated = await startUp();
    letAnswer(simulated, 2);
    const { apply } = simulated.tools.host;
    const files: (string | undefined)[] = [];
    simulated.tools.host.apply = async (step) => {
      files.push(await configKey(simulated));
      await apply(step);
    };
    await rotateKeys(simulated.tools, undefined);
    expect(files[0]).toBe(newer.privateKey.reveal());
    expect((await simulated.state()).keySince).toMatch(/^2023-11-14T22:3/);
  });

  it('is left to the process that began another one meanwhile', async () => {
    const simulated = await startUp();
    const begunAt = '2026-02-02T00:00:00.000Z';
    let isOther = false;
    simulated.onHandshakeTrigger = () => {};
    const { device } = simulated.tools.host;
    simulated.tools.host.device = async (link) => {
      const state = await simulated.state();
      if (state.rotation !== null && !isOther) {
        isOther = true;
        await simulated.tools.store.write({ ...state, rotation: { ...state.rotation, begunAt } });
      }
      return device(link);
    };
    const [report] = await rotateKeys(simulated.tools, undefined, 1_000);
    expect([isOther, report?.failure?.name]).toEqual([true, 'RotationPending']);
    expect((await simulated.state()).rotation).toMatchObject({ phase: 'confirming', begunAt });
  });

  it('continues later where the daemon ends while it waits', async () => {
    const simulated = await startUp();
    simulated.service.onRegisterKey = () => Promise.reject(unreachable(true));
    await rotateKeys(simulated.tools, undefined);
    simulated.service.onRegisterKey = () => true;
    const ending = new AbortController();
    simulated.onHandshakeTrigger = () => ending.abort();
    expect(await resumeRotation(simulated.tools, 'cpn0', { withinMs: 6_000, signal: ending.signal })).toBeNull();
    expect(await simulated.state()).toMatchObject({
      keyPair: { publicKey: newer.publicKey },
      rotation: { phase: 'confirming', keyPair: { publicKey: older.publicKey } },
    });
  });

  it('after a signal still waits for the sessions of the old key', async () => {
    const simulated = await startUp();
    let rounds = 0;
    simulated.onHandshakeTrigger = (address) => {
      if (keyInUse(simulated) === newer.publicKey) simulated.interrupting.abort(new Interrupted('SIGHUP'));
      else if (address === two.address) rounds += 1;
    };
    letAnswer(simulated, 2, () => rounds === 3);
    letAnswer(simulated, 3, () => rounds === 3);
    await expect(rotateKeys(simulated.tools, undefined)).rejects.toBeInstanceOf(Interrupted);
    expect([rounds, keyInUse(simulated)]).toEqual([3, older.publicKey]);
  });

  it('proves the old key later than the new one, also where the clock went back', async () => {
    const simulated = await startUp();
    const { now } = simulated.tools;
    Object.assign(simulated.tools, {
      now: () => (keyInUse(simulated) === newer.publicKey ? new Date(1_600_000_000_000) : now()),
    });
    await rotateKeys(simulated.tools, undefined, 1_000);
    const [there, back] = simulated.service.registeredKeys.map(({ proof }) => proof?.serial ?? 0) as [number, number];
    expect(back).toBeGreaterThan(there);
    expect((await simulated.state()).keySerial).toBe(back);
  });

  it('goes back to the old key that the control plane refuses, and lists already', async () => {
    const simulated = await startUp();
    simulated.service.onRegisterKey = (publicKey) => {
      if (publicKey === newer.publicKey) return true;
      throw new Refused(409, 'changing the key', 'it is in use', 'ask an admin');
    };
    const [report] = await rotateKeys(simulated.tools, undefined, 1_000);
    const { rotation, keyPair: present } = await simulated.state();
    expect([report?.failure?.name, rotation, present.publicKey]).toEqual(['NotRotated', null, older.publicKey]);
    expect([keyInUse(simulated), await configKey(simulated)]).toEqual([older.publicKey, older.privateKey.reveal()]);
  });

  it('leaves the wg-quick file right that another program had changed, though the key was refused', async () => {
    const simulated = await startUp();
    const text = await simulated.tools.store.readConfig('cpn0');
    await simulated.tools.store.writeConfig('cpn0', `# changed\n${text}`);
    simulated.service.onRegisterKey = () => false;
    await rotateKeys(simulated.tools, undefined);
    expect(await simulated.tools.store.readConfig('cpn0')).toBe(text);
  });
});

describe('another peer, listed first, with the old key of this host', () => {
  const thief = peer(2, { id: 0, publicKey: older.publicKey });

  it('does not make the host roll back to it', async () => {
    const simulated = await startUp();
    simulated.service.onRegisterKey = (publicKey) => {
      if (publicKey === newer.publicKey) return true;
      simulated.service.mapReplies = [
        answerWith({ ...renamed, peers: [thief, { ...self, publicKey: newer.publicKey }, three] }),
      ];
      throw new Refused(422, 'changing the key', 'it is taken', 'ask an admin');
    };
    expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ failure: { name: 'Refused' } }]);
    const { rotation, keyPair } = await simulated.state();
    expect([rotation, keyPair.publicKey, keyInUse(simulated)]).toEqual([null, newer.publicKey, newer.publicKey]);
  });
});

describe('nothing changes', () => {
  it('it does not when the control plane does not support it, or refuses', async () => {
    const simulated = await startUp();
    const before = await simulated.state();
    const refusal = new Refused(403, 'changing the key', 'no', 'ask an admin');
    const answers = [() => false, () => Promise.reject(refusal)];
    for (const registers of answers) {
      simulated.service.onRegisterKey = registers;
      const [report] = await rotateKeys(simulated.tools, undefined);
      expect(['CannotRotate', 'Refused']).toContain(report?.failure?.name);
      expect(await simulated.state()).toEqual(before);
    }
    expect(simulated.steps).toEqual([]);
  });

  it('it does not where no request came to the control plane, and all is forgotten', async () => {
    const simulated = await startUp();
    simulated.service.onRegisterKey = () => Promise.reject(unreachable(false));
    expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ failure: { name: 'Unreachable' } }]);
    await expectSettled(simulated, older);
  });

  it('it does not where there is no token, or the service does not list this host, or the network is down', async () => {
    const { membership } = joinedTo(map);
    const unlisted = mapAt('"1"', []).peers.map((each) => ({ ...each, unlisted: true as const }));
    const states: readonly Partial<Joined>[] = [
      { membership: { ...membership, accessToken: null } },
      { membership: { ...membership, map: { ...map, peers: [...unlisted, two] } } },
    ];
    for (const state of states) {
      const simulated = await startUp(state);
      expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ failure: { name: 'CannotRotate' } }]);
      expect(simulated.service.registeredKeys).toEqual([]);
    }
    const simulated = await startUp();
    await simulated.tools.store.write({ ...(await simulated.state()), enabled: false });
    const [report] = await rotateKeys(simulated.tools, undefined);
    expect(report?.failure).toBeInstanceOf(WrongUsage);
  });
});

describe('a change that was begun and cannot be ended', () => {
  /** The reply of the control plane is lost, though it took the key. */
  async function startPending(): Promise<SimulatedHost> {
    const simulated = await startUp();
    letAnswer(simulated, 2);
    simulated.service.onRegisterKey = (publicKey) => {
      simulated.service.registeredKeys.push({ publicKey, proof: null });
      throw unreachable(true);
    };
    expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ failure: { name: 'RotationPending' } }]);
    expect((await simulated.state()).rotation).toMatchObject({ phase: 'announcing' });
    return simulated;
  }

  it('is left to the process that is at it', async () => {
    const simulated = await startPending();
    simulated.service.registeredKeys.length = 0;
    const { change } = simulated.tools.store;
    await change(async () => {
      await expect(resumeRotation(simulated.tools, 'cpn0', { withinMs: 6_000 })).rejects.toBeInstanceOf(Locked);
    });
    expect([simulated.service.registeredKeys, (await simulated.state()).rotation?.phase]).toEqual([[], 'announcing']);
  });

  it('shows in status and plan', async () => {
    const simulated = await startPending();
    const warnings: string[] = [];
    Object.assign(simulated.tools, { warn: (text: string) => void warnings.push(text) });
    const [status] = await readStatus(simulated.tools);
    expect(status?.warnings).toEqual([expect.stringContaining('the key rotation of cpn0 is incomplete')]);
    await planNetworks(simulated.tools);
    expect(warnings).toEqual(status?.warnings);
  });

  it('is the same host in a map that lists it under either key', async () => {
    const simulated = await startPending();
    simulated.service.mapReplies = [answerWith(renamed)];
    simulated.service.onRegisterKey = () => Promise.reject(unreachable(true));
    await reconcileNetworks(simulated.tools);
    const state = await simulated.state();
    expect(state.membership.map.revision).toBe('"2"');
    expect(simulated.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([two.publicKey, three.publicKey]);
    expect((await readStatus(simulated.tools))[0]?.peers.map(({ name }) => name)).toEqual(['peer-2', 'peer-3']);
  });

  it('costs no second lock when none is pending: `cpn up` takes the lock once', async () => {
    const simulated = await startUp();
    let locked = 0;
    const lock: typeof simulated.tools.store.lock = (work) => {
      locked += 1;
      return simulated.tools.store.lock(work);
    };
    await bringUp({ ...simulated.tools, store: { ...simulated.tools.store, lock } });
    expect(locked).toBe(1);
  });

  it.each([
    ['reconcile', reconcileNetworks],
    ['up', bringUp],
    ['rotate-key', rotateKeys],
  ] as const)('is ended by `cpn %s`, with the key that was announced', async (_, command) => {
    const simulated = await startPending();
    simulated.service.mapReplies = [answerWith(renamed)];
    simulated.service.onRegisterKey = () => true;
    await command(simulated.tools, undefined);
    await expectSettled(simulated, newer);
    expect(new Set(simulated.service.registeredKeys.map(({ publicKey }) => publicKey))).toEqual(
      new Set([newer.publicKey]),
    );
  });

  it('is dropped when the control plane refuses it and lists the old key, and completed when it lists the new one', async () => {
    for (const [listed, expected] of [
      [map, older],
      [renamed, newer],
    ] as const) {
      const simulated = await startPending();
      simulated.service.registeredKeys.length = 0;
      simulated.service.onRegisterKey = () =>
        Promise.reject(new Refused(422, 'changing the key', 'no', 'ask an admin'));
      simulated.service.mapReplies = [answerWith(listed)];
      await reconcileNetworks(simulated.tools);
      const state = await simulated.state();
      expect([state.rotation, state.keyPair.publicKey]).toEqual([null, expected.publicKey]);
    }
  });

  it('stays pending, with both key pairs, while the control plane is unreachable: it may list either', async () => {
    for (const delivered of [false, true]) {
      const simulated = await startPending();
      const before = await simulated.state();
      simulated.service.onRegisterKey = () => Promise.reject(unreachable(delivered));
      for (const command of [rotateKeys, bringUp, reconcileNetworks]) await command(simulated.tools, undefined);
      expect(await simulated.state()).toMatchObject({ keyPair: before.keyPair, rotation: before.rotation });
      simulated.service.mapReplies = [answerWith(renamed)];
      simulated.service.onRegisterKey = () => true;
      await bringUp(simulated.tools);
      await expectSettled(simulated, newer);
    }
  });

  it('stays pending while the control plane is unreachable during a rollback, and a response to the new key still counts', async () => {
    const simulated = await startUp();
    simulated.service.onRegisterKey = (publicKey) => {
      if (publicKey === older.publicKey) throw unreachable(false);
      return true;
    };
    expect(await rotateKeys(simulated.tools, undefined)).toMatchObject([{ failure: { name: 'RotationPending' } }]);
    expect(await simulated.state()).toMatchObject({
      keyPair: { publicKey: newer.publicKey },
      rotation: { phase: 'confirming', keyPair: { publicKey: older.publicKey } },
    });
    letAnswer(simulated, 3);
    await bringUp(simulated.tools);
    await expectSettled(simulated, newer);
  });

  it('continues its rollback after an interruption', async () => {
    const simulated = await startUp();
    simulated.service.onRegisterKey = (publicKey) => {
      if (publicKey === older.publicKey) throw unreachable(true);
      return true;
    };
    await rotateKeys(simulated.tools, undefined);
    expect((await simulated.state()).rotation?.phase).toBe('returning');
    simulated.service.onRegisterKey = () => true;
    await reconcileNetworks(simulated.tools);
    await expectSettled(simulated, older);
  });

  it('is gone with the network', async () => {
    const simulated = await startPending();
    simulated.service.onRemovePeer = () => true;
    await leaveNetworks(simulated.tools);
    expect([await simulated.tools.store.read('cpn0'), simulated.actual.link]).toEqual([null, null]);
  });
});

describe('after a change', () => {
  it('a map that was requested before it is ignored, and one that was requested later is applied', async () => {
    const simulated = await startUp();
    letAnswer(simulated, 2);
    await rotateKeys(simulated.tools, undefined);
    const state = await simulated.state();
    const outdated = { ...map, revision: '"0"' };
    const update = { map: outdated, resolved: null };
    expect(applyUpdate(state, { ...update, requestedAs: older.publicKey })).toBe(state);
    expect(applyUpdate(state, { ...update, requestedAs: newer.publicKey }).membership.map.revision).toBe('"0"');
  });

  it('an interface that wg-quick made with the other key is ours while the change is not over', async () => {
    const simulated = await startUp();
    const { rotation: _, ...state } = await simulated.state();
    const begunAt = '2026-01-02T00:00:00.000Z';
    const rotation = {
      phase: 'confirming',
      keyPair: older,
      proof: null,
      wayBack: null,
      begunAt,
      witnesses: [],
    } as const;
    await simulated.tools.store.write({ ...state, keyPair: newer, rotation });
    const { link } = simulated.actual;
    simulated.actual = { ...simulated.actual, link: link && { ...link, alias: null } };
    expect(keyPairOf(older.privateKey).publicKey).toBe(keyInUse(simulated));
    await bringUp(simulated.tools);
    expect((await simulated.state()).keyPair.publicKey).toBe(newer.publicKey);
    expect(keyInUse(simulated)).toBe(newer.publicKey);
  });
});

describe('the devices that hold the key of a connector', () => {
  const device = peer(4, { name: 'phone', via: { connector: 1 } });
  const tablet = peer(5, { name: 'tablet', via: { connector: 1 } });
  const enrolled = joinedTo(map);
  const connector = { enrollment: { ...enrolled.enrollment, type: 'connector' as const } };
  const held = [{ interface: 'cpn0', dialling: ['phone'] }];

  it('are those of the control plane, whose map may be newer than the last pass', async () => {
    const simulated = await startUp(connector);
    simulated.service.mapReplies = [answerWith(mapAt('"2"', [two, three, device]))];
    expect(await findHeldKeys(simulated.tools, undefined)).toEqual(held);
  });

  it('are those of the saved map where the control plane does not answer', async () => {
    const known = joinedTo(mapAt('"1"', [two, three, device]));
    const simulated = await startUp({ ...connector, membership: known.membership });
    simulated.service.mapReplies = [
      () => {
        throw unreachable(false);
      },
    ];
    expect(await findHeldKeys(simulated.tools, undefined)).toEqual(held);
  });

  it('are none of a host that is no connector', async () => {
    const simulated = await startUp();
    simulated.service.mapReplies = [answerWith(mapAt('"2"', [two, three, device]))];
    expect(await findHeldKeys(simulated.tools, undefined)).toEqual([]);
  });

  it('are not listed while a rotation is in progress, and are accepted only for their own interface', async () => {
    const simulated = await startUp(connector);
    simulated.service.mapReplies = [answerWith(mapAt('"2"', [two, three, device]))];
    const elsewhere = [{ interface: 'cpn9', dialling: ['phone'] }];
    const [report] = await rotateKeys(simulated.tools, undefined, undefined, elsewhere);
    expect(report?.failure).toMatchObject({ name: 'CannotRotate' });
    const begun = { begunAt: '2026-01-01T00:00:00.000Z', witnesses: [], proof: null, wayBack: null };
    const rotation = { ...begun, phase: 'announcing' as const, keyPair: newer };
    await simulated.tools.store.write({ ...(await simulated.state()), rotation });
    expect(await findHeldKeys(simulated.tools, undefined)).toEqual([]);
  });

  it('keep the key where one enrolled after they were listed, and not where all of them were accepted', async () => {
    const simulated = await startUp(connector);
    simulated.service.mapReplies = [answerWith(map)];
    const listed = await findHeldKeys(simulated.tools, undefined);
    simulated.service.mapReplies = [answerWith(mapAt('"2"', [two, three, device]))];
    const [report] = await rotateKeys(simulated.tools, undefined, undefined, listed);
    expect(report?.failure).toMatchObject({ name: 'CannotRotate', message: expect.stringContaining('(phone)') });
    expect((await simulated.state()).rotation).toBeNull();
    expect([keyInUse(simulated), await configKey(simulated), simulated.service.registeredKeys]).toEqual([
      older.publicKey,
      older.privateKey.reveal(),
      [],
    ]);
    simulated.service.mapReplies = [answerWith(mapAt('"2"', [two, three, device, tablet]))];
    const [other] = await rotateKeys(simulated.tools, undefined, undefined, held);
    expect(other?.failure).toMatchObject({ name: 'CannotRotate', message: expect.stringContaining('(tablet)') });
    simulated.service.mapReplies = [answerWith(mapAt('"2"', [two, three, device]))];
    letAnswer(simulated, 2);
    expect(await rotateKeys(simulated.tools, undefined, undefined, held)).toMatchObject([{ failure: null }]);
    expect(keyInUse(simulated)).toBe(newer.publicKey);
  });
});
