import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { deferSignals, explainEnding, untilStopped } from '../../../src/cli/daemon/stop-signals.ts';
import { Interrupted } from '../../../src/core/errors/index.ts';

const signals = ['SIGINT', 'SIGHUP', 'SIGTERM'] as const;
const count = () => signals.map((signal) => process.listenerCount(signal));

let said: string;
let before: number[];
beforeEach(() => {
  said = '';
  before = count();
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  // A signal that is ignored after the work could not end the program.
  expect(count()).toEqual(before);
});

const saysRollback = () => said.match(/rolling back after SIG[A-Z]+/g) ?? [];

describe('work that defers signals', () => {
  it('within other such work is interrupted with it, which is said once', async () => {
    const reasons = await deferSignals((outer) =>
      deferSignals(async (inner) => {
        process.emit('SIGHUP', 'SIGHUP');
        return [outer.reason, inner.reason];
      }),
    );
    expect(reasons).toEqual([expect.any(Interrupted), expect.any(Interrupted)]);
    expect(saysRollback()).toEqual(['rolling back after SIGHUP']);
  });

  it.each(signals)('is interrupted by the first %s, and goes on after all further signals', async (signal) => {
    const reason = await deferSignals(async (interrupted) => {
      process.emit(signal, signal);
      for (const each of signals) process.emit(each, each);
      return interrupted.reason;
    });
    expect(reason).toMatchObject({ message: expect.stringContaining(signal) });
    expect(saysRollback()).toEqual([`rolling back after ${signal}`]);
  });

  it('says so too where it is the second of a program, and after work that failed', async () => {
    await expect(deferSignals(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await deferSignals(async () => void process.emit('SIGINT', 'SIGINT'));
    await deferSignals(async () => void process.emit('SIGTERM', 'SIGTERM'));
    expect(saysRollback()).toEqual(['rolling back after SIGINT', 'rolling back after SIGTERM']);
  });
});

describe('work whose end by a signal is explained', () => {
  it.each(signals)('says at %s what to type next, and then ends by it', async (signal) => {
    const listeners: number[] = [];
    const killed = vi.spyOn(process, 'kill').mockImplementation(() => {
      // The signal would only come back with a listener.
      listeners.push(process.listenerCount(signal));
      return true;
    });
    await explainEnding('type "cpn join"', async () => void process.emit(signal, signal));
    expect([said, killed.mock.calls]).toEqual(['type "cpn join"\n', [[process.pid, signal]]]);
    expect(listeners).toEqual([before[signals.indexOf(signal)]]);
  });

  it('leaves a signal to a part of it that defers signals', async () => {
    const killed = vi.spyOn(process, 'kill').mockReturnValue(true);
    await explainEnding('type "cpn join"', () => deferSignals(async () => void process.emit('SIGINT', 'SIGINT')));
    expect([killed.mock.calls, said.includes('cpn join')]).toEqual([[], false]);
  });

  it('says nothing once it is over, or has failed', async () => {
    expect(await explainEnding('type "cpn join"', async () => 7)).toBe(7);
    await expect(explainEnding('x', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(said).toBe('');
  });
});

it.each(['SIGTERM', 'SIGINT'] as const)(
  'a program runs until the first %s, and the second one ends it',
  async (signal) => {
    const stopped = untilStopped();
    expect(count()).not.toEqual(before);
    process.emit(signal, signal);
    await stopped;
  },
);
