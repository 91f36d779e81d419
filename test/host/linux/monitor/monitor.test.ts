import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { eventsLost, type HostEvent } from '../../../../src/host/host.ts';
import { type Monitor, runMonitor } from '../../../../src/host/linux/monitor/monitor.ts';
import type { Start } from '../../../../src/host/process/run.ts';
import { holdCall, replaceCall } from '../../../lab/hold-call.ts';

const pid = 4242;
const monitor: Monitor = {
  tool: 'ip',
  args: [],
  protocol: 0,
  parse: () => null,
  isLossReport: (line) => line === 'lost',
};

/** As /proc/net/netlink shows the socket of the tool once it listens. */
const sockets = `sk Eth Pid Groups Rmem\n0 0 ${pid} 00000011 0\n`;

/** A tool that never prints, and that ends when it is killed or closed. */
function prepareTool() {
  const ends: (() => void)[] = [];
  const lines: ((line: string | null) => void)[] = [];
  const start: Start = async (_tool, _args, onLine) => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    ends.push(resolve);
    lines.push(onLine);
    return { pid, ended, close: async () => resolve() };
  };
  return { start, kill: () => ends.at(-1)?.(), print: (line: string | null) => lines.at(-1)?.(line), lines };
}

it('a watch is open, and open again after its tool ended, only once the tool listens', async () => {
  replaceCall('readFile', () => async () => sockets);
  const { start, kill } = prepareTool();
  const events: HostEvent[] = [];
  const first = holdCall('readFile');
  let isOpen = false;
  const opening = runMonitor(monitor, (event) => events.push(event), start, { baseMs: 0, capMs: 0 });
  void opening.then(() => {
    isOpen = true;
  });
  await first.reached;
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  expect(isOpen).toBe(false);
  first.release();
  const watch = await opening;
  onTestFinished(() => watch.close());

  const second = holdCall('readFile');
  kill();
  await second.reached;
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  expect(events).toEqual([]);
  second.release();
  await expect.poll(() => events).toEqual([eventsLost]);
});

it('a tool listens once its socket is in a group, and the socket is its own and of the protocol', async () => {
  const rows = [`0 0 ${pid} 00000000 0`, `0 12 ${pid} 00000011 0`, '0 0 4243 00000011 0', `0 0 ${pid} 00000011 0`];
  let reads = 0;
  replaceCall('readFile', () => async () => {
    reads += 1;
    return `sk Eth Pid Groups Rmem\n${rows[reads - 1] ?? rows.at(-1)}\n`;
  });
  const watch = await runMonitor(monitor, () => {}, prepareTool().start, { baseMs: 0, capMs: 0 });
  onTestFinished(() => watch.close());
  expect(reads).toBe(rows.length);
});

it.each([
  ['a report of a loss', 'lost'],
  ['a line that is too long to be read', null],
])('after %s, a new tool is started, because events are missing', async (_, line) => {
  replaceCall('readFile', () => async () => sockets);
  const { start, print, lines } = prepareTool();
  const events: HostEvent[] = [];
  const watch = await runMonitor(monitor, (event) => events.push(event), start, { baseMs: 0, capMs: 0 });
  onTestFinished(() => watch.close());
  print('an event that does not matter');
  print(line);
  await expect.poll(() => events).toEqual([eventsLost]);
  expect(lines).toHaveLength(2);
});

describe('a watch of a monitor', () => {
  /** Children that end when they are closed; the second one starts once `second` is resolved. */
  async function open() {
    const children: { close: ReturnType<typeof vi.fn>; line: (line: string | null) => void }[] = [];
    const second = Promise.withResolvers<void>();
    const start: Start = async (_tool, _args, line) => {
      const ended = Promise.withResolvers<void>();
      const close = vi.fn(async () => ended.resolve());
      children.push({ close, line });
      if (children.length === 2) await second.promise;
      return { pid: undefined, ended: ended.promise, close };
    };
    const events: HostEvent[] = [];
    const parse = (link: string): HostEvent => ({ kind: 'link', link, removed: false });
    const watch = await runMonitor({ ...monitor, parse }, (event) => void events.push(event), start, {
      baseMs: 0,
      capMs: 0,
    });
    return { watch, children, events, second };
  }

  it.each([['lost'], [null]])('replaces a child after the line %j, and reports that events were lost', async (line) => {
    const { watch, children, events, second } = await open();
    children[0]?.line('eth0');
    children[0]?.line(line);
    expect(children[0]?.close).toHaveBeenCalledOnce();
    second.resolve();
    await vi.waitUntil(() => events.length === 2);
    expect(events).toEqual([{ kind: 'link', link: 'eth0', removed: false }, eventsLost]);
    await watch.close();
    expect(children[1]?.close).toHaveBeenCalledOnce();
  });

  it('closes a child that starts while the watch is closed, and reports nothing any more', async () => {
    const { watch, children, events, second } = await open();
    children[0]?.line('lost');
    await vi.waitUntil(() => children.length === 2);
    const closed = watch.close();
    for (const { line } of children) line('eth0');
    second.resolve();
    await closed;
    expect(children[1]?.close).toHaveBeenCalledOnce();
    expect(events).toEqual([]);
  });
});
