import { describe, expect, it } from 'vitest';
import { type CpnError, MissingTool } from '../../../src/core/errors.ts';
import type { Run } from '../../../src/host/run.ts';
import { systemdSupervisor } from '../../../src/host/systemd/notify.ts';

const socket = '/run/systemd/notify';

function begin(environment: Record<string, string>, failure?: Error) {
  const calls: unknown[][] = [];
  const troubles: CpnError[] = [];
  const run: Run = async (tool, args, options) => {
    calls.push([tool, ...args, options?.environment]);
    if (failure) throw failure;
    return '';
  };
  return { calls, troubles, supervisor: systemdSupervisor(environment, (error) => troubles.push(error), run, 7) };
}

describe('the supervisor systemd', () => {
  it('is told in the words of sd_notify, in order, at its own socket', async () => {
    const { calls, supervisor } = begin({ NOTIFY_SOCKET: socket });
    void supervisor?.tell({ state: 'ready', status: 'keeping cpn0' });
    void supervisor?.tell({ state: 'reloading' });
    void supervisor?.tell({ isAlive: true });
    await supervisor?.tell({ state: 'stopping' });
    const where = { NOTIFY_SOCKET: socket };
    expect(calls).toEqual([
      ['systemd-notify', 'READY=1', 'STATUS=keeping cpn0', where],
      ['systemd-notify', 'RELOADING=1', expect.stringMatching(/^MONOTONIC_USEC=\d+$/), where],
      ['systemd-notify', 'WATCHDOG=1', where],
      ['systemd-notify', 'STOPPING=1', where],
    ]);
  });

  it.each([
    ['none', {}],
    ['empty', { NOTIFY_SOCKET: '' }],
    ['relative', { NOTIFY_SOCKET: 'here' }],
  ])('is not there where its socket is %s', (_, environment) => {
    expect(begin(environment).supervisor).toBe(null);
  });

  it.each([
    [{ WATCHDOG_USEC: '3000000' }, 3000],
    [{ WATCHDOG_USEC: '3000000', WATCHDOG_PID: '7' }, 3000],
    [{ WATCHDOG_USEC: '3000000', WATCHDOG_PID: '8' }, null],
    [{ WATCHDOG_USEC: '0' }, null],
    [{ WATCHDOG_USEC: 'soon' }, null],
    [{}, null],
  ])('%j gives a patience of %j ms', (environment, patience) => {
    expect(begin({ NOTIFY_SOCKET: socket, ...environment }).supervisor?.patienceMs).toBe(patience);
  });

  it('that cannot be told is complained of once, and the daemon goes on', async () => {
    const { troubles, supervisor } = begin({ NOTIFY_SOCKET: socket }, new MissingTool('systemd-notify', 'get it'));
    await supervisor?.tell({ isAlive: true });
    await supervisor?.tell({ isAlive: true });
    expect(troubles.map(({ name }) => name)).toEqual(['MissingTool']);
  });
});
