import type { Command } from '../command.ts';
import { confirmFlag, readConfirmation } from '../confirm-flag.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';

/** Milliseconds from the order to end to the end itself: what an init system's patience is a multiple of. */
const farewell = 4_500;

export const run: Command = {
  name: 'run',
  summary: 'The daemon: keep every joined network right until stopped; the tunnels outlive it',
  flags: {
    interval: {
      kind: 'text',
      value: 'SECONDS',
      summary: 'between two passes that nothing else asked for',
      byDefault: '30',
    },
    ...confirmFlag,
  },
  examples: ['cpn run', 'cpn run --interval 60'],
  async run(input) {
    const { runDaemon } = await import('../../app/run/run.ts');
    const interval = input.number('interval', 1, 3600);
    const confirmMs = readConfirmation(input);
    const stop = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
    // A tool that hangs must not hold up the host's own shutdown.
    stop.signal.addEventListener('abort', () => setTimeout(() => process.exit(exitCodes.failed), farewell).unref());
    await runDaemon(await openTools(input, 'daemon'), {
      ...(interval !== undefined && { interval }),
      ...(confirmMs !== undefined && { confirmMs }),
      signal: stop.signal,
      onRequest: (startOver) => process.on('SIGHUP', startOver),
    });
    return exitCodes.done;
  },
};
