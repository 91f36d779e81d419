import { expect, it, onTestFinished, vi } from 'vitest';
import { keepAlive } from '../../../src/cli/daemon/daemon-unit.ts';
import type { SupervisorReport } from '../../../src/host/supervisor.ts';

it('a process that is alive reports so twice within the timeout of the watchdog, and no more once it stops', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  for (const watchdogMs of [2_000, 60_000]) {
    const reports: SupervisorReport[] = [];
    const stop = keepAlive({ watchdogMs, report: async (report) => void reports.push(report) });
    for (const count of [2, 4, 6]) {
      vi.advanceTimersByTime(watchdogMs);
      expect(reports).toEqual(Array(count).fill({ isAlive: true }));
    }
    stop();
    vi.advanceTimersByTime(10 * watchdogMs);
    expect(reports).toHaveLength(6);
  }
});

it('without a watchdog nothing is reported', () => {
  const report = vi.fn();
  for (const supervisor of [null, { watchdogMs: null, report }]) keepAlive(supervisor)();
  expect(report).not.toHaveBeenCalled();
});
