import { chmod, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runDaemon } from '../../../src/app/run/daemon.ts';
import { LoopHealth } from '../../../src/app/run/loop-health.ts';
import type { Tools } from '../../../src/app/tools.ts';
import { CommandFailed, Unreachable } from '../../../src/core/errors/index.ts';
import type { HostEvent, Watch } from '../../../src/host/host.ts';
import type { SupervisorReport } from '../../../src/host/supervisor.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, peer } from '../../core/samples.ts';
import { eventually as waitFor } from '../../lab/eventually.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const map = mapAt('"1"', [peer(2, { type: 'connector', endpoint: dialled(2) })]);
const link: HostEvent = { kind: 'link', link: 'eth9', removed: false };
const eventually = (what: string, probe: () => unknown) => waitFor(what, probe as () => boolean, { everyMs: 5 });

afterEach(() => void vi.restoreAllMocks());

/** A daemon whose next search for networks comes with an event or a reload only, until the test ends. */
async function startDaemon({
  states = [],
  onOpen = () => {},
  onReport = async () => {},
}: {
  states?: readonly Joined[];
  onOpen?: (name: string) => unknown;
  onReport?: (report: SupervisorReport) => Promise<void>;
}) {
  const simulated = await SimulatedHost.empty();
  for (const state of states) await simulated.tools.store.write(state);
  const stop = new AbortController();
  const waiting = (signal: AbortSignal | undefined) =>
    new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  simulated.service.mapReplies = [(_, wait) => waiting(wait?.signal)];
  const opened: string[] = [];
  const reports: SupervisorReport[] = [];
  const listeners: ((event: HostEvent) => void)[] = [];
  const watch = (name: string) => async (listener: (event: HostEvent) => void) => {
    opened.push(name);
    await onOpen(name);
    listeners.push(listener);
    return { close: async () => void opened.push(`${name} closed`) } satisfies Watch;
  };
  const beats: (() => void)[] = [];
  const tools: Tools = {
    ...simulated.tools,
    host: {
      ...simulated.tools.host,
      ...{ watch: watch('links'), watchDevices: watch('devices'), watchFirewall: watch('firewall') },
    },
    // The daemon rests until it ends; the beats of its watchdog come as the test says.
    sleep: async (milliseconds, signal) => {
      if (signal === undefined) return setImmediate();
      const { promise, resolve } = Promise.withResolvers<void>();
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve());
      if (milliseconds === 500) beats.push(resolve);
      await promise;
    },
  };
  let reload = () => {};
  const ended = runDaemon(tools, {
    ...{ interval: 100_000, signal: stop.signal },
    onRequest(handler) {
      reload = handler;
    },
    supervisor: {
      watchdogMs: 1_000,
      report: async (report) => {
        reports.push(report);
        await onReport(report);
      },
    },
  });
  const end = async () => {
    stop.abort();
    await ended;
  };
  onTestFinished(end);
  await eventually('the first search', () => reports.some(({ state }) => state === 'ready'));
  return {
    ...{ simulated, tools, opened, reports, end, reload: () => reload() },
    emit: (event: HostEvent) => listeners.forEach((listener) => void listener(event)),
    beat: async () => {
      const before = beats.length;
      beats.at(-1)?.();
      await eventually('the next beat', () => beats.length > before);
    },
    statusOf: () => reports.findLast(({ status }) => status !== undefined)?.status,
    linesOf: (message: string) => simulated.logged.filter((each) => each.message === message),
  };
}

describe('the networks of a daemon', () => {
  it('are found with an interface that appears, end when they are left, and are found again', async () => {
    const { simulated, emit, linesOf, statusOf, tools } = await startDaemon({});
    expect(statusOf()).toBe('no network is joined');
    for (const round of [1, 2]) {
      await tools.store.write(joinedTo(map));
      emit({ ...link, removed: true });
      emit(link);
      await eventually('a pass', () => linesOf('drift repaired').length === round);
      expect([linesOf('reconciling the network').length, statusOf()]).toEqual([round, 'reconciling cpn0']);
      await tools.store.lock(() => tools.store.forget('cpn0', []));
      emit({ ...link, kind: 'address', link: 'cpn0' });
      await eventually('the end', () => linesOf('stopped reconciling the network').length === round);
      expect(statusOf()).toBe('no network is joined');
      simulated.actual = { ...simulated.actual, link: null, device: null, routes: [] };
    }
  });

  it('are searched once one ended: its interface may be of another network, whose event came before', async () => {
    const { tools, linesOf } = await startDaemon({ states: [joinedTo(map)] });
    await eventually('a pass', () => linesOf('drift repaired').length === 1);
    const list = tools.store.list.bind(tools.store);
    tools.store.list = async () => {
      if (linesOf('stopped reconciling the network').length === 1) await tools.store.write(joinedTo(map));
      return list();
    };
    await tools.store.forget('cpn0', []);
    await eventually('another network', () => linesOf('reconciling the network').length === 2);
  });

  it('are reconciled while there is one whose state cannot be read, which the status names until it can', async () => {
    const { tools, reload, statusOf, linesOf } = await startDaemon({ states: [joinedTo(map)] });
    const path = join(dirname(tools.store.formerPath), 'cpn1.json');
    await writeFile(path, '{');
    await chmod(path, 0o600);
    reload();
    await eventually('the problem', () => statusOf()?.includes('cpn1.json'));
    expect(statusOf()).toMatch(/^reconciling cpn0; .*cpn1\.json is damaged/);
    await tools.store.forget('cpn1', []);
    reload();
    await eventually('the end', () => statusOf() === 'reconciling cpn0');
    expect([linesOf('a state cannot be read').length, linesOf('every state can be read again').length]).toEqual([1, 1]);
  });
});

describe('the watches of a daemon', () => {
  const plain = joinedTo(map);
  const { enrollment } = plain;
  it.each<[string, readonly Joined[], readonly string[]]>([
    ['of a host without networks', [], ['links']],
    ['of a host without packet rules', [{ ...plain, enabled: false }], ['links', 'devices']],
    [
      'of a connector',
      [{ ...plain, enrollment: { ...enrollment, type: 'connector' } }],
      ['links', 'devices', 'firewall'],
    ],
    [
      'of a host with packet rules and one without',
      [
        { ...plain, enabled: false },
        { ...plain, interface: 'cpn1', enabled: false, receipt: [{ made: 'firewall', link: 'cpn1' }] },
      ],
      ['links', 'devices', 'firewall'],
    ],
  ])('%s are opened once, and closed at its end', async (_, states, names) => {
    const { opened, reload, reports, end } = await startDaemon({ states });
    for (const round of [2, 3]) {
      reload();
      await eventually('a search', () => reports.filter(({ state }) => state === 'ready').length === round);
    }
    expect(opened).toEqual(names);
    await end();
    expect(opened.slice(names.length).toSorted()).toEqual(names.map((name) => `${name} closed`).toSorted());
  });

  it('are opened by the next search where that failed, and hold up no network', async () => {
    let fails = true;
    const { opened, reload, statusOf } = await startDaemon({
      states: [plain],
      onOpen: (name) => {
        if (name === 'devices' && fails) throw new CommandFailed('wg', 1, 'no');
      },
    });
    await eventually('a pass', () => statusOf()?.startsWith('reconciling cpn0; wg'));
    fails = false;
    reload();
    await eventually('the watch', () => statusOf() === 'reconciling cpn0');
    expect(opened.slice(0, 3)).toEqual(['links', 'devices', 'devices']);
  });
});

describe('the supervisor of a daemon', () => {
  it('receives that a reload begins, and that it is over once the search and each pass are', async () => {
    const { simulated, reload, reports } = await startDaemon({ states: [joinedTo(map)] });
    const { promise, resolve } = Promise.withResolvers<void>();
    const { observe } = simulated.tools.host;
    simulated.tools.host.observe = (options) => promise.then(() => observe(options));
    reports.length = 0;
    reload();
    expect(reports).toEqual([{ state: 'reloading' }]);
    resolve();
    await eventually('the end', () => reports.length > 1);
    expect(reports[1]).toEqual({ state: 'ready', status: 'reconciling cpn0' });
  });

  it('does not receive that a reload is over while only the search is missing', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let opens = 0;
    const { reload, reports } = await startDaemon({
      states: [joinedTo(map)],
      onOpen: async (name) => {
        if (name !== 'devices') return;
        opens += 1;
        if (opens === 1) throw new CommandFailed('wg', 1, 'no');
        await promise;
      },
    });
    onTestFinished(() => resolve());
    await eventually('a pass', () => reports.some(({ status }) => status?.startsWith('reconciling cpn0; wg')));
    const passed = vi.spyOn(LoopHealth.prototype, 'end');
    reports.length = 0;
    reload();
    await eventually('the next pass', () => passed.mock.calls.length > 0);
    await setImmediate();
    expect(reports).toEqual([{ state: 'reloading' }]);
    resolve();
    await eventually('the end', () => reports.length > 1);
    expect(reports[1]).toMatchObject({ state: 'ready' });
  });

  it('receives that it is alive while its next search is due within the interval and its jitter', async () => {
    const { simulated, beat, reports, linesOf } = await startDaemon({});
    const alive = () => reports.filter(({ isAlive }) => isAlive).length;
    const began = alive();
    simulated.seconds += 1.2 * 100_000 + 59;
    await beat();
    expect([alive(), linesOf('the daemon hangs; its supervisor may restart it')]).toEqual([began + 1, []]);
    simulated.seconds += 2;
    await beat();
    expect(alive()).toBe(began + 1);
    expect(linesOf('the daemon hangs; its supervisor may restart it')).toMatchObject([
      { facts: { stuck: 'networks' } },
    ]);
  });
});

/** A network that was left while its control plane was unreachable. */
async function leaveFormer({ store }: Tools): Promise<void> {
  const { service, features, keyPair, membership } = joinedTo(map);
  await store.writeFormer({
    folders: [],
    memberships: [
      {
        ...{ interface: 'cpn7', leftAt: '2026-01-01T00:00:00.000Z', service, features, identity: null, keySerial: 0 },
        ...{ network: { id: 9, name: 'former' }, peer: { id: 4, name: 'host' }, publicKey: keyPair.publicKey },
        accessToken: membership.accessToken,
      },
    ],
  });
}

it('a daemon tries to remove the peers of networks that were left at each search', async () => {
  const { simulated, tools, reload } = await startDaemon({ states: [joinedTo(map)] });
  let tries = 0;
  simulated.service.onRemovePeer = () => {
    tries += 1;
    if (tries < 3) throw new Unreachable('https://x', 'no', { delivered: false, heard: false, retryAfterMs: null });
    return true;
  };
  await leaveFormer(tools);
  for (const round of [1, 2, 3]) {
    reload();
    await eventually('a try', () => tries === round);
    await setImmediate();
  }
  await eventually('the end', async () => (await tools.store.readFormer()).memberships.length === 0);
});

describe('the end of a daemon', () => {
  it('waits for the report that it stops', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const onReport = async ({ state }: SupervisorReport) => {
      if (state === 'stopping') await promise;
    };
    const { end, reports } = await startDaemon({ onReport });
    onTestFinished(() => resolve());
    expect(await isWaiting(end())).toBe(true);
    expect(reports.at(-1)).toMatchObject({ state: 'stopping' });
    resolve();
    await end();
  });

  it('waits for the removal of a former peer that is on its way', async () => {
    const { simulated, tools, reload, end } = await startDaemon({});
    const { promise, resolve } = Promise.withResolvers<void>();
    const connect = vi.spyOn(tools, 'connect').mockImplementation(async () => {
      await promise;
      throw new Unreachable('https://x', 'no', { delivered: false, heard: false, retryAfterMs: null });
    });
    onTestFinished(() => resolve());
    await leaveFormer(simulated.tools);
    reload();
    await eventually('a try', () => connect.mock.calls.length > 0);
    expect(await isWaiting(end())).toBe(true);
    resolve();
    await end();
  });
});

/** True if the work does not end although all else went on. */
async function isWaiting(work: Promise<void>): Promise<boolean> {
  const ended = work.then(() => false);
  for (let turn = 0; turn < 50; turn += 1) await setImmediate();
  return Promise.race([ended, Promise.resolve(true)]);
}
