import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type CpnError, MissingTool } from '../../../src/core/errors/index.ts';
import type { Run } from '../../../src/host/process/run.ts';
import { systemdSupervisor } from '../../../src/host/systemd/notify.ts';

const socket = '/run/systemd/notify';

function begin(environment: Record<string, string>, failure?: Error) {
  const calls: unknown[][] = [];
  const troubles: CpnError[] = [];
  const runWith =
    (variables: Readonly<Record<string, string>>): Run =>
    async (tool, args) => {
      calls.push([tool, ...args, variables]);
      if (failure) throw failure;
      return '';
    };
  return { calls, troubles, supervisor: systemdSupervisor(environment, (error) => troubles.push(error), runWith, 7) };
}

describe('the supervisor systemd', () => {
  it('receives assignments of sd_notify, in order, at its socket', async () => {
    const { calls, supervisor } = begin({ NOTIFY_SOCKET: socket });
    void supervisor?.report({ state: 'ready', status: 'reconciling cpn0' });
    void supervisor?.report({ state: 'reloading' });
    void supervisor?.report({ isAlive: true });
    await supervisor?.report({ state: 'stopping' });
    const where = { NOTIFY_SOCKET: socket };
    expect(calls).toEqual([
      ['systemd-notify', 'READY=1', 'STATUS=reconciling cpn0', where],
      ['systemd-notify', 'RELOADING=1', expect.stringMatching(/^MONOTONIC_USEC=\d+$/), where],
      ['systemd-notify', 'WATCHDOG=1', where],
      ['systemd-notify', 'STOPPING=1', where],
    ]);
  });

  it('receives a report only after the one before, which may take seconds or fail', async () => {
    const runs: PromiseWithResolvers<string>[] = [];
    const runWith = (): Run => () => {
      const run = Promise.withResolvers<string>();
      runs.push(run);
      return run.promise;
    };
    const supervisor = systemdSupervisor({ NOTIFY_SOCKET: socket }, () => {}, runWith);
    const reports = [{ state: 'ready' }, { isAlive: true }, { state: 'stopping' }] as const;
    const delivered = reports.map((report) => supervisor?.report(report));
    for (const count of [1, 2, 3]) {
      await setImmediate();
      expect(runs).toHaveLength(count);
      if (count === 2) runs.at(-1)?.reject(new MissingTool('systemd-notify', 'install it'));
      else runs.at(-1)?.resolve('');
    }
    await Promise.all(delivered);
  });

  it.each([
    ['none', {}],
    ['empty', { NOTIFY_SOCKET: '' }],
    ['relative', { NOTIFY_SOCKET: 'here' }],
  ])('does not exist where its socket is %s', (_, environment) => {
    expect(begin(environment).supervisor).toBe(null);
  });

  it.each([
    [{ WATCHDOG_USEC: '3000000' }, 3000],
    [{ WATCHDOG_USEC: '3000000', WATCHDOG_PID: '7' }, 3000],
    [{ WATCHDOG_USEC: '3000000', WATCHDOG_PID: '8' }, null],
    [{ WATCHDOG_USEC: '0' }, null],
    [{ WATCHDOG_USEC: 'soon' }, null],
    [{}, null],
  ])('%j gives a watchdog timeout of %j ms', (environment, patience) => {
    expect(begin({ NOTIFY_SOCKET: socket, ...environment }).supervisor?.watchdogMs).toBe(patience);
  });

  it('that receives no report is reported once, and the daemon continues', async () => {
    const { troubles, supervisor } = begin({ NOTIFY_SOCKET: socket }, new MissingTool('systemd-notify', 'get it'));
    await supervisor?.report({ isAlive: true });
    await supervisor?.report({ isAlive: true });
    expect(troubles.map(({ name }) => name)).toEqual(['MissingTool']);
  });
});
