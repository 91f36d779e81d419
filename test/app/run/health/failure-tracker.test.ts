import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { FailureTracker } from '../../../../src/app/run/health/failure-tracker.ts';
import { PendingUpdate } from '../../../../src/app/run/pending-update.ts';
import type { Tools } from '../../../../src/app/tools.ts';
import type { NetworkMap, PeerFailure } from '../../../../src/core/map/model.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { dialled, keyPair, peer } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { answerWith } from '../../simulated-service.ts';
import { passOf } from '../pass-of.ts';

const edge = (id: number) => peer(id, { type: 'connector', endpoint: dialled(id) });
const member = joinedTo(mapAt('"1"', [edge(2), edge(3), peer(4, { endpoint: dialled(4) })]));

/** Runs a tracker for a while, with events at these seconds. Returns when which peers were to be avoided. */
async function watch(
  simulated: SimulatedHost,
  seconds: number,
  events: Readonly<Record<number, (health: FailureTracker) => unknown>> = {},
): Promise<{ at: number; failed: readonly PeerFailure[] }[]> {
  const begun = simulated.seconds;
  const ended = new AbortController();
  const reported: { at: number; failed: readonly PeerFailure[] }[] = [];
  let passing: Promise<void> = Promise.resolve();
  const due = new Map(Object.entries(events).map(([at, event]) => [Number(at), event]));
  const tools: Tools = {
    ...simulated.tools,
    sleep: async (milliseconds) => {
      // Answers that are on the way arrive before the sleep ends.
      await setImmediate();
      await passing;
      await simulated.tools.sleep(milliseconds);
      for (const [at, event] of due) if (simulated.seconds - begun >= at && due.delete(at)) await event(health);
      if (simulated.seconds - begun >= seconds) ended.abort();
    },
  };
  const update = new PendingUpdate(() => {
    const taken = update.take();
    reported.push({ at: simulated.seconds - begun, failed: taken.failed ?? [] });
    passing = passNetwork(simulated.tools, 'cpn0', taken, { withinMs: 1 }).then((pass) =>
      health.onPass(passOf(pass?.evaluation ?? null)),
    );
  });
  const health = new FailureTracker(tools, 'cpn0', update);
  health.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
  await health.run(ended.signal);
  return reported;
}

async function up(state: Joined): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(state);
  await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  // The clock is simulated, and a lock on disk takes real time.
  simulated.tools.store.lock = (work) => work();
  return simulated;
}

/** Makes a pass with another map. */
async function take(simulated: SimulatedHost, health: FailureTracker, map: NetworkMap): Promise<void> {
  simulated.service.mapReplies = [answerWith(map)];
  const pass = await passNetwork(simulated.tools, 'cpn0', { map, resolved: null }, { withinMs: 1 });
  health.onPass(passOf(pass?.evaluation ?? null));
}

/** Receives bytes from a peer. */
function receive(simulated: SimulatedHost, number: number, bytes: number): void {
  const before = simulated.actual.device?.peers.find((each) => each.publicKey === peer(number).publicKey)?.rxBytes ?? 0;
  simulated.updatePeer(number, { rxBytes: before + bytes });
}

describe('a connector that is probed', () => {
  it('is probed twice as often while an answer is missing, so that a lost answer proves nothing', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const probed: number[] = [];
    const { probeConnector } = simulated.tools.host;
    const lostAt = simulated.seconds + 10;
    simulated.tools.host.probeConnector = (address, withinMs) => {
      if (address !== '10.77.0.2') return probeConnector(address, withinMs);
      probed.push(Math.round(simulated.seconds * 4) / 4);
      const isLost = simulated.seconds >= lostAt && simulated.seconds < lostAt + 0.5;
      return isLost ? Promise.resolve('silent') : probeConnector(address, withinMs);
    };
    expect(await watch(simulated, 14)).toEqual([]);
    const pauses = probed.slice(1).map((at, index) => at - (probed[index] ?? at));
    expect(probed.length).toBeGreaterThan(20);
    expect(pauses.filter((each) => each < 0.5)).toEqual([0.25, 0.25]);
  });

  it('is to be avoided within two seconds of its last answer, and its standby is not', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(simulated, 20, { 10: () => simulated.reachable.delete('10.77.0.2') });
    expect(reported).toEqual([{ at: expect.any(Number), failed: [{ peer: 2, back: false, heard: 1 }] }]);
    expect(reported[0]?.at).toBeLessThanOrEqual(12);
    expect(simulated.logged.filter(({ level }) => level !== 'debug')).toEqual([
      {
        level: 'warn',
        message: 'a peer does not answer',
        facts: { interface: 'cpn0', peer: 'peer-2' },
      },
    ]);
  });

  it('is not avoided for its silence right after this host moved, but soon after that', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const leave = (health: FailureTracker) => {
      simulated.reachable.delete('10.77.0.2');
      health.move();
    };
    const back = () => void simulated.reachable.add('10.77.0.2');
    expect(await watch(simulated, 20, { 10: leave, 14: back })).toEqual([]);
    const reported = await watch(simulated, 20, { 10: leave, 11: (health) => health.move() });
    expect(reported).toEqual([{ at: expect.any(Number), failed: [{ peer: 2, back: false, heard: 1 }] }]);
    expect(reported[0]?.at).toBeLessThanOrEqual(17);
  });

  it('is to be avoided soon although the interface of this host flaps all the time', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const flaps = Array.from({ length: 9 }, (_, at) => [11 + at, (health: FailureTracker) => health.move()] as const);
    const reported = await watch(simulated, 20, {
      10: (health) => {
        simulated.reachable.delete('10.77.0.2');
        health.move();
      },
      ...Object.fromEntries(flaps),
    });
    expect(reported[0]?.at).toBeLessThanOrEqual(17);
  });

  it('is not avoided for its silence while it learns a new key of this host', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const back = () => void simulated.reachable.add('10.77.0.2');
    const rotate = async (health: FailureTracker) => {
      simulated.reachable.delete('10.77.0.2');
      const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
      health.onPass(passOf({ ...evaluation, state: { ...evaluation.state, keyPair: keyPair(21) } }));
    };
    expect(await watch(simulated, 20, { 10: rotate, 14: back })).toEqual([]);
  });

  it.each([40, 40.5, 41, 41.5, 42])(
    'is not judged while this host has no path to it, and is probed at once when there is one again after %d s',
    async (back) => {
      const simulated = await up(member);
      simulated.reachable.add('10.77.0.2').add('10.77.0.3');
      const asked: [string, number][] = [];
      const { isTcpReachable } = simulated.tools.host;
      simulated.tools.host.isTcpReachable = (address, deadlineMs) => {
        asked.push([address, simulated.seconds]);
        return isTcpReachable(address, deadlineMs);
      };
      const { underlay } = simulated.actual;
      const cutOff = { ...underlay, uplinks: [], connected: [], routed: [], gateways: [] };
      const pass = async (health: FailureTracker, around: typeof underlay) => {
        simulated.actual = { ...simulated.actual, underlay: around };
        await take(simulated, health, member.membership.map);
      };
      let returned = 0;
      const reported = await watch(simulated, 60, {
        10: async (health) => {
          simulated.reachable.clear();
          health.move();
          await pass(health, cutOff);
        },
        [back]: async (health) => {
          simulated.reachable.add('10.77.0.2').add('10.77.0.3');
          returned = simulated.seconds;
          await pass(health, underlay);
        },
      });
      expect(reported).toEqual([]);
      const first = (address: string) =>
        asked.find(([each, at]) => each === address && at >= returned)?.[1] ?? Infinity;
      for (const address of ['10.77.0.2', '10.77.0.3']) expect(first(address) - returned).toBeLessThanOrEqual(0.6);
    },
  );

  it('that is heard last keeps the routes where all are silent, before one that never answered', async () => {
    const simulated = await up({ ...member, failed: [{ peer: 2, back: false }] });
    simulated.reachable.add('10.77.0.3');
    const reported = await watch(simulated, 40, {
      10: () => simulated.reachable.clear(),
      30: () => simulated.reachable.add('10.77.0.3'),
    });
    expect(reported.map(({ failed }) => failed)).toEqual([
      [
        { peer: 2, back: false },
        { peer: 3, back: false, heard: 1 },
      ],
      // One in service all the while is not on probation.
      [{ peer: 2, back: false }],
    ]);
  });

  it('relays again within seconds if the map names it as the relay, and is trusted with routes only later', async () => {
    const named = mapAt('"1"', [edge(2), edge(3)], { relay: 2 });
    const secondsAway = async (map: NetworkMap) => {
      const simulated = await up(joinedTo(map));
      simulated.reachable.add('10.77.0.2').add('10.77.0.3');
      const reported = await watch(simulated, 40, {
        10: () => simulated.reachable.delete('10.77.0.2'),
        20: () => simulated.reachable.add('10.77.0.2'),
      });
      const [lost, returned] = reported;
      expect(lost?.failed).toEqual([{ peer: 2, back: false, heard: 1 }]);
      return { after: (returned?.at ?? 0) - 20, failed: returned?.failed, next: reported.slice(2) };
    };
    const relay = await secondsAway(named);
    expect(relay).toMatchObject({ failed: [{ peer: 2, back: true }], next: [] });
    expect(relay.after).toBeLessThanOrEqual(3.5);
    for (const other of [{ ...named, relay: 3 }, mapAt('"1"', [edge(2), edge(3)])]) {
      const { after, failed, next } = await secondsAway(other);
      expect([failed, next]).toEqual([[{ peer: 2, back: true }], []]);
      expect(after).toBeGreaterThan(4);
    }
  });

  it('comes back on probation, and is trusted after a while', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(simulated, 120, {
      10: () => simulated.reachable.delete('10.77.0.2'),
      20: () => simulated.reachable.add('10.77.0.2'),
    });
    expect(reported.map(({ failed }) => failed)).toEqual([
      [{ peer: 2, back: false, heard: 1 }],
      [{ peer: 2, back: true }],
      [],
    ]);
    expect(reported.at(-1)?.at).toBeGreaterThan(20 + 55);
  });

  it('is alive without an answer as long as it sends packets', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.3');
    const { apply } = simulated.tools.host;
    simulated.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do === 'renew-peers') receive(simulated, 2, 92);
    };
    const traffic = Object.fromEntries([1, 10, 20, 30, 40, 50].map((at) => [at, () => receive(simulated, 2, 32)]));
    const reported = await watch(simulated, 90, traffic);
    expect(reported).toEqual([{ at: expect.any(Number), failed: [{ peer: 2, back: false, heard: 1 }] }]);
    expect(reported[0]?.at).toBeGreaterThan(60);
  });

  it('stays in use when the reload of a firewall lets a probe through and drops the next ones', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.3');
    const { apply } = simulated.tools.host;
    simulated.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do === 'renew-peers') receive(simulated, 2, 92);
    };
    const keepalives = [1, 10, 20, 33, 43, 53].map((at) => [at, () => receive(simulated, 2, 32)]);
    const reloads = [
      [20.5, () => simulated.reachable.add('10.77.0.2')],
      [23, () => simulated.reachable.delete('10.77.0.2')],
    ];
    expect(await watch(simulated, 60, Object.fromEntries([...keepalives, ...reloads]))).toEqual([]);
  });

  it('stays in use when a firewall drops its probe replies, but not its packets', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const traffic = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [10 + at, () => receive(simulated, 2, 900)]),
    );
    expect(await watch(simulated, 45, { 10: () => simulated.reachable.delete('10.77.0.2'), ...traffic })).toEqual([]);
  });

  it('is to be avoided soon when it is dead before its first answer, and another one is not', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.3');
    const reported = await watch(simulated, 20);
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(3);
  });

  it('is to be avoided soon when it dies before its first answer, though packets of it were received', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.3');
    const reported = await watch(simulated, 20, { 0.4: () => receive(simulated, 2, 900) });
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false, heard: 1 }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(3);
  });

  it('is to be avoided soon when it dies right after its first handshake, which had to be forced', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.3');
    const { apply } = simulated.tools.host;
    let forced = 0;
    simulated.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do !== 'renew-peers' || forced > 0) return;
      forced = simulated.seconds;
      // The handshake and one packet more.
      simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000), rxBytes: 220 });
    };
    const begun = simulated.seconds;
    const reported = await watch(simulated, 20);
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false, heard: 1 }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(forced - begun + 3);
  });

  it('is to be avoided sooner when its first answer came while that handshake was forced', async () => {
    const simulated = await up(member);
    let answer = (_: boolean) => {};
    simulated.tools.host.isTcpReachable = (address) =>
      address === '10.77.0.3' ? Promise.resolve(true) : new Promise((resolve) => (answer = resolve));
    const { apply } = simulated.tools.host;
    let forced = 0;
    simulated.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do !== 'renew-peers') return;
      forced = simulated.seconds;
      simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000), rxBytes: 300 });
      answer(true);
    };
    const begun = simulated.seconds;
    const reported = await watch(simulated, 20);
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false, heard: 1 }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(forced - begun + 2);
  });

  it('is to be avoided soon when it is dead and the first answer of another one comes later', async () => {
    const simulated = await up(member);
    const reported = await watch(simulated, 20, { 1.4: () => simulated.reachable.add('10.77.0.3') });
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(3);
  });

  it('is to be avoided soon on a busy machine, where the counters take long', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.3');
    const { device } = simulated.tools.host;
    simulated.tools.host.device = async (link) => {
      await simulated.tools.sleep(300);
      return device(link);
    };
    const reported = await watch(simulated, 20);
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(3.5);
  });

  it.each([
    ['soon after another joins, if it has a session', 0, 1.5],
    ['later without a session, because its first answer needs a handshake', 600, 15],
  ])('that answered before it was the only one is to be avoided %s', async (_, sessionAge, within) => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(simulated, 40, {
      10: async (health) => {
        await take(simulated, health, mapAt('"2"', [edge(2), peer(4, { endpoint: dialled(4) })]));
        const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000) - sessionAge;
        simulated.updatePeer(2, { latestHandshake, rxBytes: 92 });
        simulated.reachable.clear();
        await take(simulated, health, mapAt('"3"', [edge(2), edge(5), peer(4, { endpoint: dialled(4) })]));
      },
    });
    const [first] = reported.filter(({ failed }) => failed.length > 0);
    expect(first?.failed).toContainEqual(expect.objectContaining({ peer: 2, back: false }));
    expect(first?.at).toBeGreaterThanOrEqual(10 + within - 0.6);
    expect(first?.at).toBeLessThanOrEqual(10 + within + 0.6);
  });

  it('is avoided as soon as it answers that it serves nothing', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(simulated, 10, { 5: () => simulated.closed.add('10.77.0.2') });
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(reported[0]?.at).toBeLessThan(6);
  });

  it('loses its place among silent ones when it answers that it serves nothing', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(simulated, 20, {
      5: () => simulated.reachable.delete('10.77.0.2'),
      10: () => simulated.closed.add('10.77.0.2'),
    });
    expect(reported.map(({ failed }) => failed)).toEqual([
      [{ peer: 2, back: false, heard: 1 }],
      [{ peer: 2, back: false }],
    ]);
  });

  it('has a round-trip time as long as it answers', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const known: unknown[] = [];
    const note = (health: FailureTracker) => known.push([...health.rtts.keys()]);
    await watch(simulated, 20, { 9: note, 10: () => simulated.reachable.delete('10.77.0.2'), 19: note });
    expect(known).toEqual([[edge(2).publicKey, edge(3).publicKey], [edge(3).publicKey]]);
  });

  it('is not to be avoided soon while this host may be cut off itself', async () => {
    const simulated = await up(member);
    const reported = await watch(simulated, 20, { 10: () => simulated.reachable.add('10.77.0.2').add('10.77.0.3') });
    expect(reported).toEqual([]);
  });

  it('is probed often until its first answer, and its first handshake is forced as long as there is none', async () => {
    const simulated = await up(member);
    const asked = new Map<string, number>();
    simulated.tools.host.isTcpReachable = async (address) => {
      asked.set(address, (asked.get(address) ?? 0) + 1);
      return simulated.reachable.has(address);
    };
    const renewed: unknown[] = [];
    const { apply } = simulated.tools.host;
    simulated.tools.host.apply = async (step) => {
      if (step.do === 'renew-peers') {
        renewed.push(...step.peers.map(({ publicKey, endpoint, allowedIps }) => ({ publicKey, endpoint, allowedIps })));
        simulated.reachable.add('10.77.0.3');
      }
      return apply(step);
    };
    simulated.reachable.add('10.77.0.2');
    const before = simulated.actual.device?.peers.find((each) => each.publicKey === peer(3).publicKey);
    expect(await watch(simulated, 4)).toEqual([]);
    expect(renewed).toEqual([
      { publicKey: before?.publicKey, endpoint: before?.endpoint, allowedIps: before?.allowedIps },
    ]);
    expect(asked.get('10.77.0.3')).toBeGreaterThanOrEqual(4);
  });

  it.each([
    ['at once', 0],
    ['after a pass that takes long', 5],
  ])('stays in use when a firewall drops the probes, and it completes a handshake %s', async (_, wait) => {
    const simulated = await up(member);
    const now = () => Math.floor(simulated.tools.now().getTime() / 1000);
    simulated.updatePeer(2, { latestHandshake: now(), rxBytes: 92 });
    simulated.updatePeer(3, { latestHandshake: now(), rxBytes: 92 });
    const { apply } = simulated.tools.host;
    const renewed: unknown[] = [];
    simulated.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do !== 'renew-peers') return;
      renewed.push(...step.peers.map((each) => each.publicKey));
      simulated.updatePeer(2, { latestHandshake: now(), rxBytes: 92 });
    };
    let pass = () => {};
    const passed = wait === 0 ? Promise.resolve() : new Promise<void>((resolve) => (pass = resolve));
    simulated.tools.store.lock = (work) => passed.then(work);
    simulated.tools.host.isTcpReachable = async (address) => address === '10.77.0.3' && simulated.seconds >= 1_005;
    expect(await watch(simulated, 12, { [5 + wait]: () => pass() })).toEqual([]);
    // It may have died right after the first one.
    expect(renewed).toEqual([peer(2).publicKey, peer(2).publicKey]);
  });

  it('keeps the session of a standby that did not answer yet', async () => {
    const simulated = await up(member);
    simulated.updatePeer(3, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000), rxBytes: 92 });
    simulated.reachable.add('10.77.0.2');
    expect(await watch(simulated, 10)).toEqual([]);
    expect(simulated.steps.map((step) => step.do)).not.toContain('renew-peers');
  });

  it('that failed according to the disk stays avoided until it answers', async () => {
    const simulated = await up({ ...member, failed: [{ peer: 2, back: false }] });
    simulated.reachable.add('10.77.0.3');
    expect(await watch(simulated, 30)).toEqual([]);
  });

  it('that a pass took for another state on disk triggers the next pass, and the same state none', async () => {
    const simulated = await up(member);
    const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
    let triggers = 0;
    const update = new PendingUpdate(() => {
      triggers += 1;
    });
    const health = new FailureTracker(simulated.tools, 'cpn0', update);
    health.onPass(passOf(evaluation));
    expect(triggers).toBe(0);
    health.onPass(passOf({ ...evaluation, state: { ...evaluation.state, failed: [{ peer: 9, back: false }] } }));
    expect(triggers).toBe(1);
    health.onPass(passOf(null));
    // A network that is down keeps the failures on disk.
    expect([triggers, update.take().failed]).toEqual([1, null]);
  });

  it('has its forced handshake completed before the daemon ends', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.3');
    const begun = Promise.withResolvers<void>();
    const free = Promise.withResolvers<void>();
    simulated.tools.store.lock = async (work) => {
      begun.resolve();
      await free.promise;
      return work();
    };
    const health = new FailureTracker(simulated.tools, 'cpn0', new PendingUpdate(() => {}));
    health.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
    const stop = new AbortController();
    const order: string[] = [];
    const ended = health.run(stop.signal).then(() => order.push('ended'));
    await begun.promise;
    stop.abort();
    for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    order.push('free');
    free.resolve();
    await ended;
    expect(order).toEqual(['free', 'ended']);
  });

  it('is not probed without another connector', async () => {
    const alone = joinedTo(mapAt('"1"', [edge(2), peer(4, { endpoint: dialled(4) })]));
    const simulated = await up(alone);
    let asked = 0;
    simulated.tools.host.isTcpReachable = async () => {
      asked += 1;
      return false;
    };
    const update = new PendingUpdate(() => {});
    const health = new FailureTracker(simulated.tools, 'cpn0', update);
    const ended = new AbortController();
    health.onPass(passOf(await evaluateNetwork(simulated.tools, alone)));
    const watching = health.run(ended.signal);
    ended.abort();
    await watching;
    expect([asked, update.take().failed]).toEqual([0, []]);
  });
});

describe('a host that sends a connector nothing', () => {
  const connector: Joined = { ...member, enrollment: { ...member.enrollment, type: 'connector' } };

  it('is reached through another connector once packets to it stay without an answer, until it sends again', async () => {
    const simulated = await up(connector);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(simulated, 60, {
      10: () => simulated.updatePeer(4, { txBytes: 1000 }),
      40: () => receive(simulated, 4, 32),
    });
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 4, back: false }], []]);
  });

  it('is not avoided while no packets are sent to it', async () => {
    const simulated = await up(connector);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    expect(await watch(simulated, 60)).toEqual([]);
  });

  it('is not tracked by a host that is no connector', async () => {
    const simulated = await up(member);
    simulated.reachable.add('10.77.0.2').add('10.77.0.3');
    expect(await watch(simulated, 60, { 10: () => simulated.updatePeer(4, { txBytes: 1000 }) })).toEqual([]);
  });
});
