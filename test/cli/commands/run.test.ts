import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import * as daemon from '../../../src/app/run/daemon.ts';
import { run } from '../../../src/cli/commands/run.ts';
import * as context from '../../../src/cli/context.ts';
import * as publishing from '../../../src/cli/daemon/metrics/publish.ts';
import { runCommand } from './run-command.ts';

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const listenersOf = () => signals.map((signal) => process.listeners(signal));
let before: ReturnType<typeof listenersOf>;
beforeEach(() => {
  before = listenersOf();
  // A daemon that is stopped has a timer, which would end the process of the tests.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  for (const [at, signal] of signals.entries()) {
    for (const each of process.listeners(signal)) if (!before[at]?.includes(each)) process.off(signal, each);
  }
});

type Options = Parameters<typeof daemon.runDaemon>[1];

/** Runs the daemon with these flags, and returns what it got. */
async function begin(given: object, during: (options: Options) => void = () => {}) {
  vi.spyOn(context, 'openSupervisor').mockResolvedValue(null);
  const begun = vi.spyOn(daemon, 'runDaemon').mockImplementation(async (_, options) => during(options));
  const published = vi.spyOn(publishing, 'publishMetrics').mockResolvedValue();
  const outcome = await runCommand(run, { ...given }, { tools: { log: {} } });
  const [tools, options] = begun.mock.calls[0] ?? [];
  await options?.background?.(new AbortController().signal);
  return { ...outcome, tools, options, outlets: published.mock.calls[0]?.[2] };
}

describe('cpn run', () => {
  it('takes its times from its flags, and else those of the daemon', async () => {
    const { options } = await begin({});
    expect(options).not.toHaveProperty('interval');
    expect(options).not.toHaveProperty('confirmMs');
    expect(options).not.toHaveProperty('background');
    vi.restoreAllMocks();
    const given = await begin({ interval: '60', 'confirm-within': '1m' });
    expect(given.options).toMatchObject({ interval: 60, confirmMs: 60_000 });
  });

  it('ends at the first SIGTERM or SIGINT, and starts over at each SIGHUP', async () => {
    const seen: unknown[] = [];
    await begin({}, ({ signal, onRequest }) => {
      onRequest?.(() => void seen.push('again'));
      process.emit('SIGHUP', 'SIGHUP');
      process.emit('SIGHUP', 'SIGHUP');
      seen.push(signal.aborted);
      process.emit('SIGTERM', 'SIGTERM');
      seen.push(signal.aborted);
    });
    expect(seen).toEqual(['again', 'again', false, true]);
  });

  it('ends 4.5 seconds after its signal, although a tool still runs', async () => {
    const ended = vi.spyOn(process, 'exit').mockImplementation((() => {}) as never);
    await begin({}, () => void process.emit('SIGINT', 'SIGINT'));
    vi.advanceTimersByTime(4_499);
    expect(ended).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(ended).toHaveBeenCalledExactlyOnceWith(1);
  });

  it.each([
    ['9586', { host: '127.0.0.1', port: 9586 }],
    ['0.0.0.0:9586', { host: '0.0.0.0', port: 9586 }],
    ['[::1]:9586', { host: '::1', port: 9586 }],
  ])('serves metrics at %s, on this host alone unless an address says otherwise', async (metrics, listen) => {
    const { outlets, tools } = await begin({ metrics });
    expect([outlets?.listen, outlets?.file, tools?.meter]).toEqual([listen, null, expect.any(Object)]);
  });
});
