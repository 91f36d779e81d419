import { ForeignListener, Intercepted, Unreachable } from '../../core/errors/index.ts';
import { baseOf, type ServiceAddress } from '../../core/net/service-address.ts';
import { isSocketAddress } from '../../core/net/socket-path.ts';
import { backoffDelay } from '../../core/util/backoff.ts';
import { type Attempt, attempt, type Call, compose, type Reply } from './attempt.ts';
import { AttemptFailed, type AttemptOutcome } from './attempt-failed.ts';
import { type ClientOptions, withDefaults } from './client-options.ts';
import { Connection, Spare } from './connection.ts';
import { describeProxyFailure } from './proxy.ts';
import { type ConnectionTarget, targetOf } from './target.ts';

const usualUnconfirmed = 'it may have succeeded: check before you repeat it';

const spare = new Spare();

const backoff = { baseMs: 500, capMs: 8_000 };

/** The statuses with which gateways end slow requests. Apache's ProxyTimeout is a 502. */
const timeouts: readonly number[] = [408, 502, 503, 504];

/** Milliseconds after which the end of a wait may be a gateway timeout. Earlier ends are not. */
const shortestTimeoutMs = 5_000;

/** True if a gateway may have failed. A 503 with a reason comes from the service itself. */
export function isGatewayFailure({ status = 0, closed = false, busy = false }: AttemptOutcome): boolean {
  return closed || (status >= 500 && !busy);
}

/** True if an attempt may have ended because of a gateway timeout. */
export function isTimeoutLike({ status = 0, closed = false, busy = false }: AttemptOutcome): boolean {
  return closed || (timeouts.includes(status) && !busy);
}

/**
 * Sends requests to one control plane. A call returns a 2xx, or a 304 to `If-None-Match`. All else
 * is an error of the catalogue, also an expired deadline over all attempts, pauses and the body.
 *
 * undici's retry interceptor has no jitter, no overall deadline, and no regard to an
 * Idempotency-Key of a POST. This client retries after a 429, a 5xx, a failed connection or a
 * truncated reply. A call that is not `repeatable` is retried only if it cannot have been executed:
 * not connected, 429 or 503.
 */
export class HttpClient {
  readonly url: URL;
  /** The base address in messages. */
  readonly #shown: string;
  readonly #target: ConnectionTarget;
  readonly #options: ReturnType<typeof withDefaults>;

  constructor(address: ServiceAddress, options: ClientOptions) {
    this.url = baseOf(address);
    // Nginx and others write a path below a Unix socket like this.
    this.#shown = isSocketAddress(address.url) ? `${address.url}:` : this.url.href.replace(/\/$/, '');
    this.#target = targetOf(address, this.url);
    this.#options = withDefaults(options);
  }

  async call(asked: Call): Promise<Reply> {
    const call = { ...asked, remedies: { ...this.#options.remedies, ...asked.remedies } };
    const signals = [this.#options.signal, ...(call.wait?.signal ? [call.wait.signal] : [])];
    for (const signal of signals) signal.throwIfAborted();
    const end = new AbortController();
    const { connection: use, resolved } = this.#options;
    const connection = (use === 'keep' && spare.take(this.#target)) || new Connection(this.#target, resolved);
    const stop = () => {
      end.abort();
      connection.abort();
    };
    for (const signal of signals) signal.addEventListener('abort', stop);
    const timer = setTimeout(stop, this.#deadlineOf(call));
    let isLeft = false;
    try {
      const answer = await this.#repeat(call, connection, end.signal);
      isLeft = use !== null && !end.signal.aborted;
      return answer;
    } catch (error) {
      for (const signal of signals) signal.throwIfAborted();
      throw error;
    } finally {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', stop);
      if (isLeft) spare.leave(connection);
      else connection.close();
    }
  }

  #deadlineOf({ wait }: Call): number {
    return this.#options.deadlineMs + (wait?.seconds ?? 0) * 1000;
  }

  async #repeat(call: Call, connection: Connection, end: AbortSignal): Promise<Reply> {
    const { clock, random, maxBodyBytes, onRetry } = this.#options;
    const { attempts = this.#options.attempts } = call;
    const deadlineMs = this.#deadlineOf(call);
    const basePath = this.url.pathname.replace(/\/$/, '');
    const secrets = [call.secrets ?? [], call.bearer ?? [], this.#target.proxy?.credentials ?? []].flat();
    // Without the query, which may contain secrets.
    const url = `${this.#shown}${call.path.replace(/\?.*$/s, '')}`;
    const reading = { url, maxBytes: maxBodyBytes, secrets };
    const started = clock.monotonic();
    let sent = false;
    let perhapsDone = false;
    const late = `no complete answer came within ${deadlineMs / 1000} s`;
    let before = '';
    let gatewayFailures = 0;
    for (let number = 1; ; number++) {
      const begun = clock.monotonic();
      const isReduced = call.dispensable !== undefined && gatewayFailures >= mostGatewayFailures;
      const message = compose(isReduced ? reduce(call) : call, basePath, begun - started);
      const circumstances: Attempt = { message, reading, now: clock.wall(), perhapsDone };
      const failed = await attempt(connection, call, circumstances).catch((error: unknown) => {
        if (error instanceof AttemptFailed) return error;
        throw error;
      });
      const isLong = isLongWait(call, clock.monotonic() - begun);
      if (!(failed instanceof AttemptFailed))
        return { ...failed, waited: failed.waited || isLong, ...(isReduced && { isReduced }) };
      const { outcome, message: problem }: AttemptFailed = failed;
      if (isGatewayFailure(outcome)) gatewayFailures += 1;
      sent ||= outcome.sent;
      perhapsDone ||= outcome.perhapsDone;

      const elapsedMs = clock.monotonic() - started;
      const isUnconfirmed = perhapsDone && !call.repeatable;
      const waitEnded = isLong && outcome.sent && (end.aborted || isTimeoutLike(outcome));
      const ending = {
        number,
        elapsedMs,
        unconfirmed: isUnconfirmed ? (call.unconfirmed ?? usualUnconfirmed) : null,
        sent,
        waitEnded,
        outcome,
      };
      const giveUp = (why: string) => this.#unreachable(why, ending);
      if (end.aborted)
        throw giveUp(outcome.proxied ? `made no connection within ${deadlineMs / 1000} s` : `${late}${before}`);
      const isOver = waitEnded && call.wait?.endsWithTimeout === true;
      if (!outcome.retry || isUnconfirmed || number >= attempts || isOver) throw giveUp(problem);
      const delayMs = (outcome.retryAfterMs ?? 0) + backoffDelay(number, backoff, random());
      if (elapsedMs + delayMs >= deadlineMs) throw giveUp(`${problem}, and no time is left for another attempt`);
      onRetry({ attempt: number, delayMs, problem });
      before = `; before that, ${problem}`;
      await clock.sleep(delayMs, end).catch((error) => {
        throw end.aborted ? giveUp(`${late}${before}`) : error;
      });
    }
  }

  #unreachable(why: string, { number, elapsedMs, unconfirmed, sent, waitEnded, outcome }: CallEnding): Unreachable {
    const seconds = (elapsedMs / 1000).toFixed(1);
    const { proxy } = this.#target;
    const by = proxy === null ? '' : `, through the proxy ${proxy.url} (${proxy.from})`;
    const spent = `${number === 1 ? '1 attempt' : `${number} attempts`} in ${seconds} s${by}`;
    const url = this.#shown.replace(/:$/, '');
    if (outcome.intercepted) return new Intercepted(url, why, sent, outcome.remedy);
    if (outcome.proxied && proxy !== null) return describeProxyFailure(url, proxy, why, outcome);
    if (outcome.foreign) return new ForeignListener(url, outcome.foreign);
    return new Unreachable(url, `${why} (${spent})${unconfirmed === null ? '' : `; ${unconfirmed}`}`, {
      delivered: sent,
      perhapsDone: unconfirmed !== null,
      heard: outcome.heard,
      limited: outcome.limited ?? false,
      busy: outcome.busy ?? false,
      retryAfterMs: outcome.retryAfterMs ?? null,
      lasting: !outcome.retry,
      waitEnded,
      // If the call has its own hint, do not suggest a retry.
      remedy: unconfirmed === null || unconfirmed === usualUnconfirmed ? (outcome.remedy ?? null) : null,
    });
  }
}

/** The state of a call when it was given up. */
interface CallEnding {
  readonly number: number;
  readonly elapsedMs: number;
  /** The hint that it may have been executed and is not retried; null if that is impossible. */
  readonly unconfirmed: string | null;
  readonly sent: boolean;
  readonly waitEnded: boolean;
  /** The outcome of the last attempt. */
  readonly outcome: AttemptFailed['outcome'];
}

/** The number of gateway failures after which a call omits its dispensable headers. */
const mostGatewayFailures = 2;

function reduce(call: Call): Call {
  const headers = Object.entries(call.headers ?? {}).filter(([name]) => !call.dispensable?.includes(name));
  return { ...call, headers: Object.fromEntries(headers) };
}

/** True if an attempt took so long that the service delayed its reply. */
function isLongWait({ wait }: Call, tookMs: number): boolean {
  const seconds = wait?.seconds ?? 0;
  return seconds > 0 && tookMs >= Math.min(shortestTimeoutMs, seconds * 1000);
}
