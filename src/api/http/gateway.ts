import type { AttemptOutcome } from './attempt-failed.ts';

/** The statuses with which gateways end what takes them too long. Apache's ProxyTimeout is a 502. */
const timeouts: readonly number[] = [408, 502, 503, 504];

/** Milliseconds of a wait after which its end may be a timeout of a gateway; what ends earlier has another reason. */
export const shortestTimeoutMs = 5_000;

/** Whether a gateway may have failed in place of the service, which gives a reason for its 503. */
export function isGatewayFailure({ status = 0, closed = false, busy = false }: AttemptOutcome): boolean {
  return closed || (status >= 500 && !busy);
}

/** Whether an attempt may have ended because it took a gateway too long. */
export function isTimeoutLike({ status = 0, closed = false, busy = false }: AttemptOutcome): boolean {
  return closed || (timeouts.includes(status) && !busy);
}
