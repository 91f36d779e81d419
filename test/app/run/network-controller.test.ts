import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { DriftDamper } from '../../../src/app/run/listeners/drift-damper.ts';
import { DropListener } from '../../../src/app/run/listeners/drop-listener.ts';
import { LanRouteListener } from '../../../src/app/run/listeners/lan-route-listener.ts';
import { ReportListener } from '../../../src/app/run/listeners/report-listener.ts';
import { NetworkController } from '../../../src/app/run/network-controller.ts';
import { PassScheduler } from '../../../src/app/run/pass-scheduler.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { DiskFailed, MissingTool } from '../../../src/core/errors/index.ts';
import type { HostEvent } from '../../../src/host/host.ts';
import { bare, dialled, peer } from '../../core/samples.ts';
import { eventually } from '../../lab/eventually.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

afterEach(() => void vi.restoreAllMocks());

const options = { interval: 3600, confirmMs: 0 };
const first = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const second = mapAt('"2"', [peer(3, { endpoint: dialled(3) })]);

it('ends although an update is on its way when the signal aborts', async () => {
  const simulated = await SimulatedHost.with(joinedTo(first));
  const stop = new AbortController();
  simulated.service.mapReplies = [
    async (revision, wait) => {
      await eventually('a pass', () => simulated.observations > 0);
      stop.abort();
      // Timers expire in order: that of the scheduler comes first.
      await sleep(10);
      return answerWith(second)(revision, wait);
    },
  ];
  const ended = new NetworkController(simulated.tools, 'cpn0', { interval: 3600, confirmMs: 0 })
    .run(stop.signal)
    .then(() => 'ended');
  expect(await Promise.race([ended, sleep(5000, 'still there')])).toBe('ended');
  expect((await simulated.state()).membership.map.revision).toBe('"1"');
});

it('sends a new request at once when a pass finds that the host has joined again', async () => {
  const state = joinedTo(first);
  const simulated = await SimulatedHost.with(state);
  const stop = new AbortController();
  simulated.service.mapReplies = [
    answerWith(first, true),
    // A service that does not end a long poll whose token was revoked.
    (_, wait) => new Promise((_, reject) => wait?.signal?.addEventListener('abort', () => reject(new Error('ended')))),
  ];
  const controller = new NetworkController(simulated.tools, 'cpn0', { interval: 3600, confirmMs: 0 });
  const ended = controller.run(stop.signal);
  await eventually('a request', () => simulated.service.mapRequests.length === 2);
  const membership = { ...state.membership, accessToken: new Secret('cpp_y') };
  const { store } = simulated.tools;
  await store.lock(async () => store.write({ ...(await simulated.state()), membership }));
  controller.onEvent({ kind: 'address', link: 'cpn0', removed: false });
  await eventually('a request with the new token', () => simulated.service.mapRequests.length > 2);
  stop.abort();
  await ended;
});

it('is settled once the resolver uses the names that the daemon serves', async () => {
  const simulated = await SimulatedHost.with(joinedTo(first));
  simulated.actual = { ...bare, dns: { program: 'systemd-resolved', own: null, others: [], isServing: false } };
  simulated.service.mapReplies = [answerWith(first)];
  const stop = new AbortController();
  const servers: unknown[] = [];
  const controller = new NetworkController(simulated.tools, 'cpn0', options, () => {
    if (controller.status.isSettled) servers.push(simulated.actual.dns?.own?.servers);
  });
  const ended = controller.run(stop.signal);
  await eventually('it is settled', () => servers.length > 0);
  expect(servers[0]).toEqual(['10.77.0.1:553']);
  stop.abort();
  await ended;
});

it('retries after a listener failed, as after a failed pass', async () => {
  const simulated = await SimulatedHost.with(joinedTo(first));
  simulated.service.mapReplies = [answerWith(first)];
  const stop = new AbortController();
  const info = (facts: object, message: string) => {
    // The first listener logs this.
    if (message === 'drift repaired') throw new DiskFailed('write', '/log', {} as NodeJS.ErrnoException);
    simulated.tools.log.info(facts, message);
  };
  const tools = { ...simulated.tools, log: { ...simulated.tools.log, info } };
  const controller = new NetworkController(tools, 'cpn0', { interval: 3600, confirmMs: 0 });
  const ended = controller.run(stop.signal);
  const isLogged = (text: string) => simulated.logged.some(({ message }) => message === text);
  await eventually('the failure', () => isLogged('reconciliation failed'));
  expect(controller.status.problem).toContain('/log');
  await eventually('the retry', () => isLogged('reconciliation succeeds again'));
  await eventually('a report', () => simulated.service.reports.length > 0);
  expect(simulated.service.reports[0]).toMatchObject({ complete: true, problem: null });
  expect(controller.status).toEqual({ link: 'cpn0', isSettled: true, problem: null });
  stop.abort();
  await ended;
});

it('makes a pass once the state changes, after an error that no retry can fix', async () => {
  const state = joinedTo(first);
  const simulated = await SimulatedHost.with(state);
  simulated.service.mapReplies = [answerWith(first)];
  simulated.refusesStep = () => {
    throw new MissingTool('ip', 'install iproute2');
  };
  const stop = new AbortController();
  const controller = new NetworkController(simulated.tools, 'cpn0', { interval: 3600, confirmMs: 0 });
  const ended = controller.run(stop.signal);
  await eventually('a failure', () => controller.status.problem !== null);
  simulated.refusesStep = () => false;
  const { store } = simulated.tools;
  await store.lock(async () => store.write({ ...(await simulated.state()), drained: true }));
  await eventually('a pass', () => controller.status.problem === null);
  stop.abort();
  await ended;
});

it('makes a pass once an option changes', async () => {
  const state = joinedTo(first);
  const simulated = await SimulatedHost.with(state);
  simulated.service.mapReplies = [answerWith(first)];
  const stop = new AbortController();
  const controller = new NetworkController(simulated.tools, 'cpn0', options);
  const ended = controller.run(stop.signal);
  await eventually('a pass', () => controller.status.isSettled);
  const { observations } = simulated;
  await simulated.tools.store.lock(async () =>
    simulated.tools.store.write({ ...(await simulated.state()), options: { ...state.options, dns: false } }),
  );
  await eventually('a pass', () => simulated.observations > observations, { timeoutMs: 5_000 });
  stop.abort();
  await ended;
});

it('ends when the network is no longer joined, and leaves no timer that delays the end of the process', async () => {
  const simulated = await SimulatedHost.with(joinedTo(first));
  simulated.service.mapReplies = [answerWith(first)];
  const start = vi.spyOn(globalThis, 'setTimeout');
  const clear = vi.spyOn(globalThis, 'clearTimeout');
  const controller = new NetworkController(simulated.tools, 'cpn0', { interval: 3600, confirmMs: 0 });
  const ended = controller.run(new AbortController().signal);
  await eventually('a pass', () => controller.status.isSettled);
  await simulated.tools.store.forget('cpn0', []);
  controller.reset();
  await ended;
  const isLong = start.mock.calls.map(([, milliseconds = 0]) => milliseconds > 1_000_000);
  const pending = new Set(start.mock.results.filter((_, index) => isLong[index]).map(({ value }) => value));
  expect(pending.size).toBeGreaterThan(0);
  for (const [timer] of clear.mock.calls) pending.delete(timer);
  expect(pending.size).toBe(0);
});

it('ends at once when the state is removed, also after a pass that found the network down', async () => {
  const simulated = await SimulatedHost.with({ ...joinedTo(first), enabled: false });
  simulated.service.mapReplies = [answerWith(first)];
  const stop = new AbortController();
  const controller = new NetworkController(simulated.tools, 'cpn0', options);
  const ended = controller.run(stop.signal).then(() => 'ended');
  await eventually('a pass', () => controller.status.isSettled);
  await simulated.tools.store.forget('cpn0', []);
  expect(await Promise.race([ended, sleep(3000, 'still there')])).toBe('ended');
  stop.abort();
});

it('removes what the network removed from a host that cannot be observed, and does not restore it in the next pass', async () => {
  const removed = peer(5, { endpoint: dialled(5) });
  const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
  const others = [peer(3, { endpoint: dialled(3) }), peer(4, { endpoint: dialled(4) })];
  const after = mapAt('"2"', [relay, ...others]);
  const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [relay, ...others, removed])));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  const observed = simulated.actual;
  simulated.actual = { ...bare, device: observed.device, unread: 'ip did not finish' };
  simulated.service.mapReplies = [
    answerWith(after),
    // Confirms the removal.
    answerWith(after),
    (_, wait) => new Promise((_, reject) => wait?.signal?.addEventListener('abort', () => reject(new Error('ended')))),
  ];
  const stop = new AbortController();
  const controller = new NetworkController(simulated.tools, 'cpn0', { ...options, confirmMs: 20_000 });
  const ended = controller.run(stop.signal);
  const peers = () => simulated.actual.device?.peers.map(({ publicKey }) => publicKey);
  await eventually('the removal', () => peers()?.length === 3);
  simulated.actual = { ...observed, device: simulated.actual.device };
  controller.reset();
  await eventually('the next pass', () => controller.status.isSettled && controller.status.problem === null);
  expect(peers()).not.toContain(removed.publicKey);
  stop.abort();
  await ended;
});

it('keeps the problem of a failed pass while its repair is postponed', async () => {
  const simulated = await SimulatedHost.with(joinedTo(first));
  simulated.service.mapReplies = [answerWith(first)];
  simulated.refusesStep = () => true;
  const results = vi.spyOn(ReportListener.prototype, 'onResult');
  const stop = new AbortController();
  const controller = new NetworkController(simulated.tools, 'cpn0', options);
  const ended = controller.run(stop.signal);
  await eventually('a failure', () => controller.status.problem !== null);
  const { problem } = controller.status;
  simulated.refusesStep = () => false;
  const pause = vi.spyOn(DriftDamper.prototype, 'pauseBefore').mockReturnValue(3600);
  controller.reset();
  expect(controller.status.isSettled).toBe(false);
  await eventually('a postponed repair', () => pause.mock.calls.length > 0 && controller.status.isSettled);
  expect(controller.status.problem).toBe(problem);
  expect(results.mock.calls).not.toContainEqual([null]);
  pause.mockRestore();
  controller.reset();
  await eventually('a repair', () => controller.status.problem === null);
  expect(results.mock.lastCall).toEqual([null]);
  stop.abort();
  await ended;
});

describe('an event of the host', () => {
  it.each<[string, HostEvent, boolean]>([
    ['of its own interface is urgent', { kind: 'address', link: 'cpn0', removed: false }, true],
    ['without an interface is urgent', { kind: 'rule', link: null, removed: false }, true],
    ['of another interface is not urgent', { kind: 'address', link: 'eth7', removed: false }, false],
    ['of an uplink is urgent', { kind: 'link', link: 'eth0', removed: false }, true],
  ])('%s, and each listener receives it', async (_, event, isUrgent) => {
    const simulated = await SimulatedHost.with(joinedTo(first));
    simulated.actual = { ...bare, underlay: { ...bare.underlay, uplinks: ['eth0'] } };
    simulated.service.mapReplies = [answerWith(first)];
    const urgency = vi.spyOn(PassScheduler.prototype, 'triggerByEvent');
    const received = [DropListener, LanRouteListener].map((each) => vi.spyOn(each.prototype, 'onEvent'));
    const stop = new AbortController();
    const controller = new NetworkController(simulated.tools, 'cpn0', options);
    const ended = controller.run(stop.signal);
    await eventually('a pass', () => controller.status.isSettled);
    controller.onEvent(event);
    expect(urgency.mock.lastCall).toEqual([isUrgent]);
    for (const spy of received) expect(spy).toHaveBeenCalledWith(event);
    stop.abort();
    await ended;
  });
});
