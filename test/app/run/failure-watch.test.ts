import { describe, expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/pass.ts';
import { FailureWatch } from '../../../src/app/run/failure-watch.ts';
import { survey } from '../../../src/app/survey.ts';
import type { Tools } from '../../../src/app/tools.ts';
import type { Failure } from '../../../src/core/model.ts';
import type { Joined } from '../../../src/store/state.ts';
import { dialled, peer } from '../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

const edge = (id: number) => peer(id, { type: 'connector', endpoint: dialled(id) });
const member = joinedTo(mapAt('"1"', [edge(2), edge(3), peer(4, { endpoint: dialled(4) })]));

/** Watches a network for a while; at the seconds named, something happens. Tells who was to be avoided when. */
async function watch(
  desk: Desk,
  seconds: number,
  events: Readonly<Record<number, () => void>> = {},
): Promise<{ at: number; failed: readonly Failure[] }[]> {
  const begun = desk.seconds;
  const ended = new AbortController();
  const told: { at: number; failed: readonly Failure[] }[] = [];
  let passing: Promise<void> = Promise.resolve();
  const due = new Map(Object.entries(events).map(([at, event]) => [Number(at), event]));
  const tools: Tools = {
    ...desk.tools,
    sleep: async (milliseconds) => {
      // Answers that are on their way arrive before the time has gone by.
      await new Promise((resolve) => setImmediate(resolve));
      await passing;
      await desk.tools.sleep(milliseconds);
      for (const [at, event] of due) if (desk.seconds - begun >= at && due.delete(at)) event();
      if (desk.seconds - begun >= seconds) ended.abort();
    },
  };
  const health = new FailureWatch(tools, 'cpn0', () => {
    const { failed } = health;
    told.push({ at: desk.seconds - begun, failed: failed ?? [] });
    passing = passNetwork(desk.tools, 'cpn0', { map: null, resolved: null, failed }, { withinMs: 1 }).then((pass) =>
      health.follow(pass?.survey ?? null),
    );
  });
  health.follow(await survey(desk.tools, await desk.state()));
  await health.watch(ended.signal);
  return told;
}

async function up(state: Joined): Promise<Desk> {
  const desk = await Desk.with(state);
  await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  // Time flies here, and a lock on disk takes real time.
  desk.tools.store.lock = (work) => work();
  return desk;
}

/** Lets bytes come from a peer, every so many seconds, for ever. */
function hear(desk: Desk, number: number, bytes: number): void {
  const before = desk.actual.device?.peers.find((each) => each.publicKey === peer(number).publicKey)?.rxBytes ?? 0;
  desk.touch(number, { rxBytes: before + bytes });
}

describe('a connector that is asked again and again', () => {
  it('is to be avoided within two seconds of its last answer, and its standby is not', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const told = await watch(desk, 20, { 10: () => desk.alive.delete('10.77.0.2') });
    expect(told).toEqual([{ at: expect.any(Number), failed: [{ peer: 2, back: false }] }]);
    expect(told[0]?.at).toBeLessThanOrEqual(12);
    expect(desk.logged.filter(({ level }) => level !== 'debug')).toEqual([
      {
        level: 'warn',
        message: 'a peer does not answer; going another way where there is one',
        facts: { interface: 'cpn0', peer: 'peer-2' },
      },
    ]);
  });

  it('comes back on probation, and is trusted after a while', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const told = await watch(desk, 120, {
      10: () => desk.alive.delete('10.77.0.2'),
      20: () => desk.alive.add('10.77.0.2'),
    });
    expect(told.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }], [{ peer: 2, back: true }], []]);
    expect(told.at(-1)?.at).toBeGreaterThan(20 + 55);
  });

  it('lives without an answer as long as something comes from it', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.3');
    const traffic = Object.fromEntries([1, 10, 20, 30, 40, 50].map((at) => [at, () => hear(desk, 2, 32)]));
    const told = await watch(desk, 90, traffic);
    expect(told).toEqual([{ at: expect.any(Number), failed: [{ peer: 2, back: false }] }]);
    expect(told[0]?.at).toBeGreaterThan(60);
  });

  it('answers no more because of a firewall, but is heard: it stays', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const traffic = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [10 + at, () => hear(desk, 2, 900)]));
    expect(await watch(desk, 45, { 10: () => desk.alive.delete('10.77.0.2'), ...traffic })).toEqual([]);
  });

  it('is to be avoided soon where it is dead before its first answer, and another one is not', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.3');
    const told = await watch(desk, 20);
    expect(told.map(({ failed }) => failed)).toEqual([[{ peer: 2, back: false }]]);
    expect(told[0]?.at).toBeLessThanOrEqual(3);
  });

  it('is not to be avoided soon while this host may be cut off itself', async () => {
    const desk = await up(member);
    const told = await watch(desk, 20, { 10: () => desk.alive.add('10.77.0.2').add('10.77.0.3') });
    expect(told).toEqual([]);
  });

  it('is asked often for its first answer, and its first handshake is begun again as long as there is none', async () => {
    const desk = await up(member);
    const asked = new Map<string, number>();
    desk.tools.host.answers = async (address) => {
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
  ])('stays where a firewall swallows the questions, and it answers a handshake %s', async (_, wait) => {
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
    desk.tools.host.answers = async (address) => address === '10.77.0.3' && desk.seconds >= 1_005;
    expect(await watch(desk, 12, { [5 + wait]: () => pass() })).toEqual([]);
    expect(renewed).toEqual([peer(2).publicKey]);
  });

  it('keeps the session of a standby that was not heard yet', async () => {
    const desk = await up(member);
    desk.touch(3, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000), rxBytes: 92 });
    desk.alive.add('10.77.0.2');
    expect(await watch(desk, 10)).toEqual([]);
    expect(desk.steps.map((step) => step.do)).not.toContain('renew-peers');
  });

  it('is known from disk to have failed, and stays so until it is well', async () => {
    const desk = await up({ ...member, failed: [{ peer: 2, back: false }] });
    desk.alive.add('10.77.0.3');
    expect(await watch(desk, 30)).toEqual([]);
  });

  it('is not asked where there is no other', async () => {
    const alone = joinedTo(mapAt('"1"', [edge(2), peer(4, { endpoint: dialled(4) })]));
    const desk = await up(alone);
    let asked = 0;
    desk.tools.host.answers = async () => {
      asked += 1;
      return false;
    };
    const health = new FailureWatch(desk.tools, 'cpn0', () => {});
    const ended = new AbortController();
    health.follow(await survey(desk.tools, alone));
    const watching = health.watch(ended.signal);
    ended.abort();
    await watching;
    expect([asked, health.failed]).toEqual([0, []]);
  });
});

describe('a host that a connector does not hear', () => {
  const connector: Joined = { ...member, enrollment: { ...member.enrollment, type: 'connector' } };

  it('is to be reached another way once what was sent to it stays without an answer, until it is heard', async () => {
    const desk = await up(connector);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    const told = await watch(desk, 60, {
      10: () => desk.touch(4, { txBytes: 1000 }),
      40: () => hear(desk, 4, 32),
    });
    expect(told.map(({ failed }) => failed)).toEqual([[{ peer: 4, back: false }], []]);
  });

  it('is left alone while nobody wants anything of it', async () => {
    const desk = await up(connector);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    expect(await watch(desk, 60)).toEqual([]);
  });

  it('is none of the business of a host that is no connector', async () => {
    const desk = await up(member);
    desk.alive.add('10.77.0.2').add('10.77.0.3');
    expect(await watch(desk, 60, { 10: () => desk.touch(4, { txBytes: 1000 }) })).toEqual([]);
  });
});
