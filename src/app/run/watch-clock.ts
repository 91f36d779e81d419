import type { Tools } from '../tools.ts';

/** Seconds between two readings of the clocks, and the difference between them that counts as a jump. */
const every = 5;
const tolerance = 2;

/**
 * Calls `onJump` when the host slept, or its clock was set: then the wall clock, or the clock that includes sleep, advanced further
 * than the one that stops during sleep. Resolves when `signal` aborts.
 */
export async function watchClock(tools: Tools, signal: AbortSignal, onJump: (seconds: number) => void): Promise<void> {
  const read = () => {
    const awake = tools.monotonic();
    return [tools.now().getTime() / 1000 - awake, tools.uptime() - awake] as const;
  };
  let [wall, boot] = read();
  while (!signal.aborted) {
    await tools.sleep(every * 1000, signal);
    const [wallNow, bootNow] = read();
    const jump = [wallNow - wall, bootNow - boot].find((seconds) => Math.abs(seconds) > tolerance);
    if (jump !== undefined) onJump(Math.round(jump));
    [wall, boot] = [wallNow, bootNow];
  }
}
