import type { Address } from '../core/cidr.ts';
import { searchSize } from '../core/path-mtu.ts';
import type { Tools } from './tools.ts';

/** Milliseconds for the answer to an echo. */
const echoDeadline = 1_000;

/**
 * Finds the largest packet that passes to an address and back, up to `full`; null where that cannot be told, or `signal` aborts.
 * Throws MissingTool without `ping`.
 *
 * @param guesses sizes to try first
 */
export async function measureSize(
  { host }: Pick<Tools, 'host'>,
  address: Address,
  full: number,
  guesses: readonly number[],
  signal?: AbortSignal,
): Promise<number | null> {
  const search = searchSize(full, guesses);
  let step = search.next();
  while (!step.done && !signal?.aborted) {
    step = search.next(await host.echoes(address, step.value, echoDeadline));
  }
  return step.done ? step.value : null;
}
