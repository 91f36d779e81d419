import { expect, it, vi } from 'vitest';
import { deferSignals } from '../../../src/cli/daemon/stop-signals.ts';
import { Interrupted } from '../../../src/core/errors/index.ts';

it('a signal during a change within another reaches both, and is said once', async () => {
  const said: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said.push(String(text));
    return true;
  });
  try {
    const reasons = await deferSignals((outer) =>
      deferSignals(async (inner) => {
        process.emit('SIGHUP', 'SIGHUP');
        return [outer.reason, inner.reason];
      }),
    );
    expect(reasons).toEqual([expect.any(Interrupted), expect.any(Interrupted)]);
  } finally {
    write.mockRestore();
  }
  expect(said.join('').match(/rolling back after SIGHUP/g)).toHaveLength(1);
});
