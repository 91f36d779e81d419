import type { AttemptOutcome } from './attempt-failed.ts';

/** The statuses with which gateways end slow requests. Apache's ProxyTimeout is a 502. */
const timeouts: readonly number[] = [408, 502, 503, 504];

/** Milliseconds after which the end of a wait may be a gateway timeout. Earlier ends are not. */
export const shortestTimeoutMs = 5_000;

/** True if a gateway may have failed. A 503 with a reason comes from the service itself. */
export function isGatewayFailure({ status = 0, closed = false, busy = false }: AttemptOutcome): boolean {
  return closed || (status >= 500 && !busy);
}

/** True if an attempt may have ended because of a gateway timeout. */
export function isTimeoutLike({ status = 0, closed = false, busy = false }: AttemptOutcome): boolean {
  return closed || (timeouts.includes(status) && !busy);
}
