import type { Tools } from './tools.ts';

/** Milliseconds within which a tool that was asked for is started: some turns of the event loop, and a look for its file. */
const beginningMs = 5;

/** Does work that holds the event loop while others are at something already: once they had the time to begin. */
export async function meanwhile<T, W>(
  { sleep }: Pick<Tools, 'sleep'>,
  begun: Promise<T>,
  work: () => W,
): Promise<readonly [T, W]> {
  await Promise.race([begun, sleep(beginningMs)]);
  const done = work();
  return [await begun, done];
}
