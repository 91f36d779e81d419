import type { Tools } from '../tools.ts';

/** Seconds between two looks at the clocks, and how far they may drift apart meanwhile before it is a jump. */
const every = 5;
const tolerance = 2;

/**
 * Calls `onJump` when the host slept, or somebody set its clock: then the wall clock, or the one that counts sleep, went on by
 * more than the one that stands still. Resolves when `signal` aborts.
 */
export async function watchClock(tools: Tools, signal: AbortSignal, onJump: (seconds: number) => void): Promise<void> {
  const read = () => {
    const still = tools.monotonic();
    return [tools.now().getTime() / 1000 - still, tools.uptime() - still] as const;
  };
  let [wall, awake] = read();
  while (!signal.aborted) {
    await tools.sleep(every * 1000, signal);
    const [wallNow, awakeNow] = read();
    const jumps = [wallNow - wall, awakeNow - awake];
    const jump = jumps.find((seconds) => Math.abs(seconds) > tolerance);
    if (jump !== undefined) onJump(Math.round(jump));
    [wall, awake] = [wallNow, awakeNow];
  }
}
