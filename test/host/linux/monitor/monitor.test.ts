import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { eventsLost, type HostEvent } from '../../../../src/host/host.ts';
import { type Monitor, runMonitor } from '../../../../src/host/linux/monitor/monitor.ts';
import type { Start } from '../../../../src/host/process/run.ts';
import { holdCall, replaceCall } from '../../../lab/hold-call.ts';

const pid = 4242;
const monitor: Monitor = { tool: 'ip', args: [], protocol: 0, parse: () => null, isLossReport: () => false };

/** As /proc/net/netlink shows the socket of the tool once it listens. */
const sockets = `sk Eth Pid Groups Rmem\n0 0 ${pid} 00000011 0\n`;

/** A tool that never prints, and that ends when it is killed or closed. */
function prepareTool() {
  const ends: (() => void)[] = [];
  const start: Start = async () => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    ends.push(resolve);
    return { pid, ended, close: async () => resolve() };
  };
  return { start, kill: () => ends.at(-1)?.() };
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
