import { expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { MtuProber } from '../../../../src/app/run/health/mtu-prober.ts';
import { PendingUpdate } from '../../../../src/app/run/pending-update.ts';
import { MissingTool } from '../../../../src/core/errors/index.ts';
import type { Address } from '../../../../src/core/net/cidr.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { address, dialled, options, peer } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const hub = peer(2, { type: 'connector', endpoint: dialled(2) });
const edge = peer(3, { endpoint: dialled(3) });
const joined = joinedTo(mapAt('"1"', [hub, edge]));

/** A host in a network of two peers with sessions, and passes of its daemon. */
async function start(state: Joined = joined) {
  const simulated = await SimulatedHost.with(state);
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
  /** The largest packet that passes to each peer. */
  const limits: Record<string, number> = { [hub.address]: 1420, [edge.address]: 1420 };
  const sent: Record<string, number[]> = { [hub.address]: [], [edge.address]: [] };
  simulated.onEcho = (to: Address, bytes) => {
    sent[to]?.push(bytes);
    return bytes <= (limits[to] ?? 0);
  };
  let triggers = 0;
  const update = new PendingUpdate(() => {
    triggers += 1;
  });
  const watch = new MtuProber(simulated.tools, 'cpn0', update);
  const stop = new AbortController();
  const watching = watch.run(stop.signal);
  const settle = async () => {
    for (let turn = 0; turn < 300; turn += 1) await Promise.resolve();
  };
  const receive = () => {
    const latestHandshake = Math.floor(simulated.tools.now().getTime() / 1000);
    for (const each of [hub, edge])
      simulated.updatePeer(Number(each.id), { latestHandshake, endpoint: { ...dialled(Number(each.id)) } as never });
  };
  /** Passes of the daemon, so many seconds later, until nothing is left to do. */
  const pass = async (seconds = 0, touch: () => void = () => {}) => {
    simulated.seconds += seconds;
    receive();
    touch();
    let before: number;
    do {
      before = triggers;
      await passNetwork(simulated.tools, 'cpn0', update.take(), { withinMs: 1 });
      watch.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
      await settle();
    } while (triggers > before);
    return {
      mtu: simulated.actual.link?.mtu,
      planned: (await evaluateNetwork(simulated.tools, await simulated.state())).changes,
    };
  };
  const end = async () => {
    stop.abort();
    await watching;
  };
  return {
    simulated,
    watch,
    limits,
    sent,
    pass,
    end,
    logged: () =>
      simulated.logged.filter(({ level }) => level !== 'debug').map(({ message, facts }) => ({ message, ...facts })),
  };
}

/** What a peer sent and received, so that its path is in use. */
const busy = { rxBytes: 1_000_000, txBytes: 1_000_000 };

it('costs one echo for each peer where all packets pass, and nothing after that', async () => {
  const { simulated, sent, pass, logged, end } = await start();
  expect(await pass()).toEqual({ mtu: 1420, planned: [] });
  for (let turn = 0; turn < 5; turn += 1) await pass(3600);
  expect(sent).toEqual({ [hub.address]: [1420], [edge.address]: [1420] });
  expect([(await simulated.state()).pathMtu, logged()]).toEqual([null, []]);
  await end();
});

it('lowers the MTU to what passes to every peer, logs it once, and raises it after ten minutes', async () => {
  const { simulated, limits, pass, logged, end } = await start();
  limits[edge.address] = 1300;
  const lowered = await pass();
  expect(lowered.mtu).toBeGreaterThan(1291);
  expect(lowered.mtu).toBeLessThanOrEqual(1300);
  // `cpn plan` uses the same state.
  expect(lowered.planned).toEqual([]);
  expect((await simulated.state()).pathMtu).toMatchObject({ mtu: lowered.mtu, peer: 3 });
  expect(await pass(700)).toEqual(lowered);
  expect(logged()).toEqual([
    {
      message: 'large packets to a peer are lost; lowering the MTU',
      interface: 'cpn0',
      mtu: lowered.mtu,
      before: 1420,
      peer: 'peer-3',
    },
  ]);

  limits[edge.address] = 1420;
  expect((await pass(599)).mtu).toBe(lowered.mtu);
  expect(await pass(1)).toEqual({ mtu: 1420, planned: [] });
  expect((await simulated.state()).pathMtu).toBeNull();
  expect(logged().slice(1)).toEqual([
    { message: 'larger packets pass again; raising the MTU', interface: 'cpn0', mtu: 1420, before: lowered.mtu },
  ]);
  expect(simulated.widePaths.size).toBe(0);

  // A peer that answers at random does not make the MTU flap.
  limits[edge.address] = 1250;
  const again = await pass(60, () => simulated.updatePeer(3, { rxBytes: 9_000, txBytes: 900_000 }));
  expect(again.mtu).toBeLessThanOrEqual(1250);
  limits[edge.address] = 1420;
  expect((await pass(61, () => simulated.updatePeer(3, { rxBytes: 18_000, txBytes: 1_800_000 }))).mtu).toBe(again.mtu);
  expect((await pass(600)).mtu).toBe(1420);
  await end();
});

it('lowers the MTU no further than the floor, and ignores a peer that answers no echo', async () => {
  const { simulated, limits, pass, logged, end } = await start();
  limits[hub.address] = 1100;
  limits[edge.address] = 0;
  expect((await pass()).mtu).toBe(1420);
  for (let turn = 1; turn < 5; turn += 1) {
    await pass(700, () => simulated.updatePeer(2, { rxBytes: turn * 1e6, txBytes: turn * 1e6 }));
  }
  expect(logged()).toEqual([
    {
      message: 'packets of the smallest MTU to a peer are lost; the MTU is unchanged',
      interface: 'cpn0',
      peer: 'peer-2',
      passed: expect.any(Number),
      least: 1200,
    },
  ]);
  expect((await simulated.state()).pathMtu).toBeNull();
  await end();
});

it('logs each time that not even packets of the smallest MTU pass any more', async () => {
  const { limits, watch, pass, logged, end } = await start();
  for (const limit of [1100, 1420, 1100, 1100]) {
    limits[hub.address] = limit;
    watch.reset();
    await pass(700);
  }
  const messages = logged().map(({ message }) => message);
  expect(messages).toEqual(Array(2).fill('packets of the smallest MTU to a peer are lost; the MTU is unchanged'));
  await end();
});

it('leaves the MTU for echoes as it was after a measurement that failed', async () => {
  const { simulated, limits, pass, logged, end } = await start();
  limits[edge.address] = 1300;
  await pass();
  const raised: number[] = [];
  simulated.onEcho = () => {
    raised.push(simulated.widePaths.size);
    throw new MissingTool('ping', 'install it');
  };
  await pass(700);
  expect(Math.max(...raised)).toBeGreaterThan(0);
  expect(simulated.widePaths.size).toBe(0);
  expect(logged().at(-1)?.message).toBe('the path MTU cannot be measured');
  await end();
});

it('uses the state on disk after a restart, and raises the MTU when larger packets pass again', async () => {
  const { simulated, limits, pass, end } = await start();
  limits[hub.address] = 1300;
  const { mtu } = await pass();
  await end();
  const restart = async () => {
    const update = new PendingUpdate(() => {});
    const watch = new MtuProber(simulated.tools, 'cpn0', update);
    const stop = new AbortController();
    const watching = watch.run(stop.signal);
    watch.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
    for (let turn = 0; turn < 300; turn += 1) await Promise.resolve();
    stop.abort();
    await watching;
    return update.take().pathMtu;
  };
  limits[hub.address] = 0;
  expect(await restart()).toBeUndefined();
  limits[hub.address] = 1420;
  expect(await restart()).toBeNull();
  expect(mtu).toBeLessThanOrEqual(1300);
});

it('starts over on another underlay, and keeps nothing of the one before', async () => {
  const { simulated, limits, sent, pass, end } = await start();
  limits[edge.address] = 1300;
  const { mtu } = await pass();
  const { actual } = simulated;
  const elsewhere = { ...actual.underlay, gateways: [address('192.0.2.254')] };
  limits[edge.address] = 1420;
  simulated.actual = { ...actual, underlay: elsewhere };
  expect(await pass(1)).toEqual({ mtu: 1420, planned: [] });
  expect(sent[edge.address]?.at(-1)).toBe(1420);
  // Back there, the former measurement applies at once.
  simulated.actual = { ...simulated.actual, underlay: actual.underlay };
  limits[edge.address] = 1300;
  expect((await pass(1)).mtu).toBe(mtu);
  await end();
});

it('measures again what may have changed: another endpoint, a busy path, and everything after a reset', async () => {
  const { simulated, watch, sent, pass, end } = await start();
  await pass();
  await pass(1, () => simulated.updatePeer(3, { endpoint: { ...dialled(9) } as never }));
  expect([sent[hub.address], sent[edge.address]]).toEqual([[1420], [1420, 1420]]);
  await pass(1);
  await pass(700, () => simulated.updatePeer(2, busy));
  await pass(1);
  expect(sent[hub.address]).toHaveLength(2);
  watch.reset();
  await pass(1);
  expect(sent[hub.address]).toHaveLength(3);
  await end();
});

it('never changes an MTU that a user chose, and logs a failed measurement once', async () => {
  const fixed = await start({ ...joined, options: { ...options, mtu: 1400 } });
  fixed.limits[hub.address] = 1300;
  expect((await fixed.pass()).mtu).toBe(1400);
  expect(fixed.sent[hub.address]).toEqual([]);
  await fixed.end();

  const without = await start();
  without.simulated.onEcho = () => {
    throw new MissingTool('ping', 'install it: apt install iputils-ping');
  };
  for (let turn = 0; turn < 3; turn += 1)
    expect((await without.pass(700, () => without.simulated.updatePeer(2, busy))).mtu).toBe(1420);
  expect(without.logged().map(({ message }) => message)).toEqual(['the path MTU cannot be measured']);
  await without.end();
});
