import { searchSize } from '../../core/health/path-mtu.ts';
import type { Address } from '../../core/net/cidr.ts';
import type { Prober } from '../../host/host.ts';

/** Milliseconds for the answer to an echo. */
const echoDeadline = 1_000;

/**
 * Finds the largest packet that passes to an address and back, up to `full`. Null if unknown, or if
 * `signal` aborts.
 *
 * @param guesses sizes to try first
 * @param mark the firewall mark of the packets; null without one
 * @throws MissingTool without `ping`
 */
export async function measurePath(
  prober: Prober,
  address: Address,
  full: number,
  guesses: readonly number[],
  { signal, mark = null }: { readonly signal?: AbortSignal | undefined; readonly mark?: number | null } = {},
): Promise<number | null> {
  if (!prober.probeSize) return null;
  const marked = mark === null ? {} : { mark };
  const search = searchSize(full, guesses);
  let step = search.next();
  while (!step.done && !signal?.aborted) {
    step = search.next(await prober.probeSize(address, { ...step.value, ...marked }, echoDeadline));
  }
  return step.done ? step.value : null;
}
