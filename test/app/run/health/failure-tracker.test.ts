import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { FailureTracker } from '../../../../src/app/run/health/failure-tracker.ts';
import { PendingUpdate } from '../../../../src/app/run/pending-update.ts';
import type { Tools } from '../../../../src/app/tools.ts';
import type { NetworkMap, PeerFailure } from '../../../../src/core/map/model.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { dialled, keyPair, peer } from '../../../core/samples.ts';
import { answerWith, Desk, joinedTo, mapAt } from '../../desk.ts';
import { passOf } from '../pass-of.ts';

const edge = (id: number) => peer(id, { type: 'connector', endpoint: dialled(id) });
const member = joinedTo(mapAt('"1"', [edge(2), edge(3), peer(4, { endpoint: dialled(4) })]));

/** Runs a tracker for a while, with events at these seconds. Returns when which peers were to be avoided. */
async function watch(
  desk: Desk,
  seconds: number,
  events: Readonly<Record<number, (health: FailureTracker) => unknown>> = {},
): Promise<{ at: number; failed: readonly PeerFailure[] }[]> {
  const begun = desk.seconds;
  const ended = new AbortController();
  const reported: { at: number; failed: readonly PeerFailure[] }[] = [];
  let passing: Promise<void> = Promise.resolve();
  const due = new Map(Object.entries(events).map(([at, event]) => [Number(at), event]));
  const tools: Tools = {
    ...desk.tools,
    sleep: async (milliseconds) => {
      // Answers that are on the way arrive before the sleep ends.
      await new Promise((resolve) => setImmediate(resolve));
      await passing;
      await desk.tools.sleep(milliseconds);
      for (const [at, event] of due) if (desk.seconds - begun >= at && due.delete(at)) await event(health);
      if (desk.seconds - begun >= seconds) ended.abort();
    },
  };
  const update = new PendingUpdate(() => {
    const taken = update.take();
    reported.push({ at: desk.seconds - begun, failed: taken.failed ?? [] });
    passing = passNetwork(desk.tools, 'cpn0', taken, { withinMs: 1 }).then((pass) =>
      health.onPass(passOf(pass?.evaluation ?? null)),
    );
  });
  const health = new FailureTracker(tools, 'cpn0', update);
  health.onPass(passOf(await evaluateNetwork(desk.tools, await desk.state())));
  await health.run(ended.signal);
  return reported;
}

async function up(state: Joined): Promise<Desk> {
  const desk = await Desk.with(state);
  await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  // The clock is simulated, and a lock on disk takes real time.
  desk.tools.store.lock = (work) => work();
  return desk;
}

/** Makes a pass with another map. */
async function take(desk: Desk, health: FailureTracker, map: NetworkMap): Promise<void> {
  desk.answers = [answerWith(map)];
  const pass = await passNetwork(desk.tools, 'cpn0', { map, resolved: null }, { withinMs: 1 });
  health.onPass(passOf(pass?.evaluation ?? null));
}

/** Receives bytes from a peer. */
function receive(desk: Desk, number: number, bytes: number): void {
  const before = desk.actual.device?.peers.find((each) => each.publicKey === peer(number).publicKey)?.rxBytes ?? 0;
  desk.touch(number, { rxBytes: before + bytes });
}

describe('a connector that is probed', () => {
  it('is to be avoided within two seconds of its last answer, and its standby is not', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(desk, 20, { 10: () => desk.alive.delete('10.77.0.2') });
    expect(reported).toEqual([{ at: expect.any(Number), failed: [{ peer: 2, back: false, heard: 1 }] }]);
    expect(reported[0]?.at).toBeLessThanOrEqual(12);
    expect(desk.logged.filter(({ level }) => level !== 'debug')).toEqual([
      {
        level: 'warn',
        message: 'a peer does not answer; another is used where there is one',
        facts: { interface: 'cpn0', peer: 'peer-2' },
      },
    ]);
  });

  it('is not avoided for its silence right after this host moved, but soon after that', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const leave = (health: FailureTracker) => {
      desk.alive.delete('10.77.0.2');
      health.move();
    };
    const back = () => void desk.alive.add('10.77.0.2');
    expect(await watch(desk, 20, { 10: leave, 14: back })).toEqual([]);
    const reported = await watch(desk, 20, { 10: leave, 11: (health) => health.move() });
    expect(reported).toEqual([{ at: expect.any(Number), failed: [{ peer: 2, back: false, heard: 1 }] }]);
    expect(reported[0]?.at).toBeLessThanOrEqual(17);
  });

  it('is not avoided for its silence while it learns a new key of this host', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const back = () => void desk.alive.add('10.77.0.2');
    const rotate = async (health: FailureTracker) => {
      desk.alive.delete('10.77.0.2');
      const evaluation = await evaluateNetwork(desk.tools, await desk.state());
      health.onPass(passOf({ ...evaluation, state: { ...evaluation.state, keyPair: keyPair(21) } }));
    };
    expect(await watch(desk, 20, { 10: rotate, 14: back })).toEqual([]);
  });

  it('is not judged while this host has no path to it, and is probed at once when there is one again', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const asked: [string, number][] = [];
    const { isTcpReachable } = desk.tools.host;
    desk.tools.host.isTcpReachable = (address, deadlineMs) => {
      asked.push([address, desk.seconds]);
      return isTcpReachable(address, deadlineMs);
    };
    const { underlay } = desk.actual;
    const cutOff = { ...underlay, uplinks: [], connected: [], routed: [], gateways: [] };
    const pass = async (health: FailureTracker, around: typeof underlay) => {
      desk.actual = { ...desk.actual, underlay: around };
      await take(desk, health, member.membership.map);
    };
    let returned = 0;
    const reported = await watch(desk, 60, {
      10: async (health) => {
        desk.alive.clear();
        health.move();
        await pass(health, cutOff);
      },
      40: async (health) => {
        desk.alive.add('10.77.0.2').add('10.77.0.3');
        returned = desk.seconds;
        await pass(health, underlay);
      },
    });
    expect(reported).toEqual([]);
    const first = (address: string) => asked.find(([each, at]) => each === address && at >= returned)?.[1] ?? Infinity;
    for (const address of ['10.77.0.2', '10.77.0.3']) expect(first(address) - returned).toBeLessThanOrEqual(0.6);
  });

  it('that is heard last keeps the routes where all are silent, before one that never answered', async () => {
    const desk = await up({ ...member, failed: [{ peer: 2, back: false }] });
    desk.alive.add('10.77.0.3');
    const reported = await watch(desk, 40, { 10: () => desk.alive.clear(), 30: () => desk.alive.add('10.77.0.3') });
    expect(reported.map(({ failed }) => failed)).toEqual([
      [
        { peer: 2, back: false },
        { peer: 3, back: false, heard: 1 },
      ],
      // One in service all the while is not on probation.
      [{ peer: 2, back: false }],
    ]);
  });

  it('comes back on probation, and is trusted after a while', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(desk, 120, {
      10: () => desk.alive.delete('10.77.0.2'),
      20: () => desk.alive.add('10.77.0.2'),
    });
    expect(reported.map(({ failed }) => failed)).toEqual([
      [{ peer: 2, back: false, heard: 1 }],
      [{ peer: 2, back: true }],
      [],
    ]);
    expect(reported.at(-1)?.at).toBeGreaterThan(20 + 55);
  });

  it('is alive without an answer as long as it sends packets', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.3');
    const { apply } = desk.tools.host;
    desk.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do === 'renew-peers') receive(desk, 2, 92);
    };
    const traffic = Object.fromEntries([1, 10, 20, 30, 40, 50].map((at) => [at, () => receive(desk, 2, 32)]));
    const reported = await watch(desk, 90, traffic);
    expect(reported).toEqual([{ at: expect.any(Number), failed: [{ peer: 2, back: false, heard: 1 }] }]);
    expect(reported[0]?.at).toBeGreaterThan(60);
  });

  it('stays in use when the reload of a firewall lets a probe through and drops the next ones', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.3');
    const { apply } = desk.tools.host;
    desk.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do === 'renew-peers') receive(desk, 2, 92);
    };
    const keepalives = [1, 10, 20, 33, 43, 53].map((at) => [at, () => receive(desk, 2, 32)]);
    const reloads = [
      [20.5, () => desk.alive.add('10.77.0.2')],
      [23, () => desk.alive.delete('10.77.0.2')],
    ];
    expect(await watch(desk, 60, Object.fromEntries([...keepalives, ...reloads]))).toEqual([]);
  });

  it('stays in use when a firewall drops its probe replies, but not its packets', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const traffic = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [10 + at, () => receive(desk, 2, 900)]));
    expect(await watch(desk, 45, { 10: () => desk.alive.delete('10.77.0.2'), ...traffic })).toEqual([]);
  });

  it('is to be avoided soon when it is dead before its first answer, and another one is not', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.3');
    const reported = await watch(desk, 20);
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(3);
  });

  it('is to be avoided soon when it dies before its first answer, though packets of it were received', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.3');
    const reported = await watch(desk, 20, { 0.4: () => receive(desk, 2, 900) });
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false, heard: 1 }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(3);
  });

  it('is to be avoided soon when it dies right after its first handshake, which had to be forced', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.3');
    const { apply } = desk.tools.host;
    let forced = 0;
    desk.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do !== 'renew-peers' || forced > 0) return;
      forced = desk.seconds;
      // The handshake and one packet more.
      desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000), rxBytes: 220 });
    };
    const begun = desk.seconds;
    const reported = await watch(desk, 20);
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false, heard: 1 }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(forced - begun + 3);
  });

  it('is to be avoided sooner when its first answer came while that handshake was forced', async () => {
    const desk = await up(member);
    let answer = (_: boolean) => {};
    desk.tools.host.isTcpReachable = (address) =>
      address === '10.77.0.3' ? Promise.resolve(true) : new Promise((resolve) => (answer = resolve));
    const { apply } = desk.tools.host;
    let forced = 0;
    desk.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do !== 'renew-peers') return;
      forced = desk.seconds;
      desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000), rxBytes: 300 });
      answer(true);
    };
    const begun = desk.seconds;
    const reported = await watch(desk, 20);
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false, heard: 1 }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(forced - begun + 2);
  });

  it('is to be avoided soon when it is dead and the first answer of another one comes later', async () => {
    const desk = await up(member);
    const reported = await watch(desk, 20, { 1.4: () => desk.alive.add('10.77.0.3') });
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(3);
  });

  it('is to be avoided soon on a busy machine, where the counters take long', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.3');
    const { device } = desk.tools.host;
    desk.tools.host.device = async (link) => {
      await desk.tools.sleep(300);
      return device(link);
    };
    const reported = await watch(desk, 20);
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(reported[0]?.at).toBeLessThanOrEqual(3);
  });

  it.each([
    ['soon after another joins, if it has a session', 0, 2],
    ['later without a session, because its first answer needs a handshake', 600, 15],
  ])('that answered before it was the only one is to be avoided %s', async (_, sessionAge, within) => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(desk, 40, {
      10: async (health) => {
        await take(desk, health, mapAt('"2"', [edge(2), peer(4, { endpoint: dialled(4) })]));
        const latestHandshake = Math.floor(desk.tools.now().getTime() / 1000) - sessionAge;
        desk.touch(2, { latestHandshake, rxBytes: 92 });
        desk.alive.clear();
        await take(desk, health, mapAt('"3"', [edge(2), edge(5), peer(4, { endpoint: dialled(4) })]));
      },
    });
    const [first] = reported.filter(({ failed }) => failed.length > 0);
    expect(first?.failed).toContainEqual(expect.objectContaining({ peer: 2, back: false }));
    expect(first?.at).toBeGreaterThanOrEqual(10 + within - 0.6);
    expect(first?.at).toBeLessThanOrEqual(10 + within + 0.6);
  });

  it('is avoided as soon as it answers that it serves nothing', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(desk, 10, { 5: () => desk.closed.add('10.77.0.2') });
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(reported[0]?.at).toBeLessThan(6);
  });

  it('is not to be avoided soon while this host may be cut off itself', async () => {
    const desk = await up(member);
    const reported = await watch(desk, 20, { 10: () => desk.alive.add('10.77.0.2').add('10.77.0.3') });
    expect(reported).toEqual([]);
  });

  it('is probed often until its first answer, and its first handshake is forced as long as there is none', async () => {
    const desk = await up(member);
    const asked = new Map<string, number>();
    desk.tools.host.isTcpReachable = async (address) => {
      asked.set(address, (asked.get(address) ?? 0) + 1);
      return desk.alive.has(address);
    };
    const renewed: unknown[] = [];
    const { apply } = desk.tools.host;
    desk.tools.host.apply = async (step) => {
      if (step.do === 'renew-peers') {
        renewed.push(...step.peers.map(({ publicKey, endpoint, allowedIps }) => ({ publicKey, endpoint, allowedIps })));
        desk.alive.add('10.77.0.3');
      }
      return apply(step);
    };
    desk.alive.add('10.77.0.2');
    const before = desk.actual.device?.peers.find((each) => each.publicKey === peer(3).publicKey);
    expect(await watch(desk, 4)).toEqual([]);
    expect(renewed).toEqual([
      { publicKey: before?.publicKey, endpoint: before?.endpoint, allowedIps: before?.allowedIps },
    ]);
    expect(asked.get('10.77.0.3')).toBeGreaterThanOrEqual(4);
  });

  it.each([
    ['at once', 0],
    ['after a pass that takes long', 5],
  ])('stays in use when a firewall drops the probes, and it completes a handshake %s', async (_, wait) => {
    const desk = await up(member);
    const now = () => Math.floor(desk.tools.now().getTime() / 1000);
    desk.touch(2, { latestHandshake: now(), rxBytes: 92 });
    desk.touch(3, { latestHandshake: now(), rxBytes: 92 });
    const { apply } = desk.tools.host;
    const renewed: unknown[] = [];
    desk.tools.host.apply = async (step) => {
      await apply(step);
      if (step.do !== 'renew-peers') return;
      renewed.push(...step.peers.map((each) => each.publicKey));
      desk.touch(2, { latestHandshake: now(), rxBytes: 92 });
    };
    let pass = () => {};
    const passed = wait === 0 ? Promise.resolve() : new Promise<void>((resolve) => (pass = resolve));
    desk.tools.store.lock = (work) => passed.then(work);
    desk.tools.host.isTcpReachable = async (address) => address === '10.77.0.3' && desk.seconds >= 1_005;
    expect(await watch(desk, 12, { [5 + wait]: () => pass() })).toEqual([]);
    // It may have died right after the first one.
    expect(renewed).toEqual([peer(2).publicKey, peer(2).publicKey]);
  });

  it('keeps the session of a standby that did not answer yet', async () => {
    const desk = await up(member);
    desk.touch(3, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000), rxBytes: 92 });
    desk.alive.add('10.77.0.2');
    expect(await watch(desk, 10)).toEqual([]);
    expect(desk.steps.map((step) => step.do)).not.toContain('renew-peers');
  });

  it('that failed according to the disk stays avoided until it answers', async () => {
    const desk = await up({ ...member, failed: [{ peer: 2, back: false }] });
    desk.alive.add('10.77.0.3');
    expect(await watch(desk, 30)).toEqual([]);
  });

  it('is not probed without another connector', async () => {
    const alone = joinedTo(mapAt('"1"', [edge(2), peer(4, { endpoint: dialled(4) })]));
    const desk = await up(alone);
    let asked = 0;
    desk.tools.host.isTcpReachable = async () => {
      asked += 1;
      return false;
    };
    const update = new PendingUpdate(() => {});
    const health = new FailureTracker(desk.tools, 'cpn0', update);
    const ended = new AbortController();
    health.onPass(passOf(await evaluateNetwork(desk.tools, alone)));
    const watching = health.run(ended.signal);
    ended.abort();
    await watching;
    expect([asked, update.take().failed]).toEqual([0, []]);
  });
});

describe('a host that sends a connector nothing', () => {
  const connector: Joined = { ...member, enrollment: { ...member.enrollment, type: 'connector' } };

  it('is reached through another connector once packets to it stay without an answer, until it sends again', async () => {
    const desk = await up(connector);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const reported = await watch(desk, 60, {
      10: () => desk.touch(4, { txBytes: 1000 }),
      40: () => receive(desk, 4, 32),
    });
    expect(reported.map(({ failed }) => failed)).toEqual([[{ peer: 4, back: false }], []]);
  });

  it('is not avoided while no packets are sent to it', async () => {
    const desk = await up(connector);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    expect(await watch(desk, 60)).toEqual([]);
  });

  it('is not tracked by a host that is no connector', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    expect(await watch(desk, 60, { 10: () => desk.touch(4, { txBytes: 1000 }) })).toEqual([]);
  });
});
