import { CpnError } from './cpn-error.ts';

/** The control plane answered, and refused: 401, 403, 404, 413 or 422. Repeating the request would not help. */
export class Refused extends CpnError {
  override readonly name = 'Refused';
  readonly status: number;
  /** True when an earlier attempt, whose reply was lost, may have been carried out: this refusal may be its echo. */
  readonly repeated: boolean;

  /** @param remedy what a person does about it; null where the reason says it */
  constructor(status: number, what: string, reason: string, remedy: string | null, repeated = false) {
    super(`${what} was refused (${status}): ${reason}${remedy === null ? '' : `; ${remedy}`}`, {
      facts: { status, what },
    });
    this.status = status;
    this.repeated = repeated;
  }
}

/** What is known of the attempts that ended in {@link Unreachable}. */
interface Attempts {
  /** False when no byte of any attempt can have reached it: then nothing was done there. */
  readonly delivered: boolean;
  /** The service may have carried out what it would carry out anew. */
  readonly perhapsDone?: boolean;
  /** Something at its address answered the last attempt, if only to refuse it: the way there is open. */
  readonly heard: boolean;
  /** It answered the last attempt with 429. */
  readonly limited?: boolean;
  /** It answered the last attempt with 503 and why, which is the problem. */
  readonly busy?: boolean;
  /** Milliseconds that it asked to be left alone for. */
  readonly retryAfterMs: number | null;
  /** What a person does about it, where the problem does not say so itself. */
  readonly remedy?: string | null;
}

/** The control plane could not be reached, or kept answering 429 or 5xx, until the deadline. */
export class Unreachable extends CpnError implements Attempts {
  override readonly name = 'Unreachable';
  readonly delivered: boolean;
  readonly perhapsDone: boolean;
  readonly heard: boolean;
  readonly retryAfterMs: number | null;
  readonly remedy: string | null;

  constructor(
    url: string,
    problem: string,
    { delivered, perhapsDone, heard, limited, busy, retryAfterMs, remedy }: Attempts,
  ) {
    const state = limited ? 'asks to wait' : busy ? 'cannot answer now' : 'is out of reach';
    super(`the control plane at ${url} ${state}: ${problem}${remedy ? `; ${remedy}` : ''}`, {
      facts: { url, problem },
      retry: true,
    });
    this.delivered = delivered;
    this.perhapsDone = perhapsDone ?? false;
    this.heard = heard;
    this.retryAfterMs = retryAfterMs;
    this.remedy = remedy ?? null;
  }
}

/** What answered does not speak the contract: no JSON, a missing field, a redirect, too many bytes. */
export class BadReply extends CpnError {
  override readonly name = 'BadReply';

  constructor(url: string, problem: string, remedy: string, cause?: unknown) {
    super(`the reply from ${url} ${problem}; ${remedy}`, { facts: { url, problem }, cause });
  }
}

/** A control plane does not help to take a connector out of service: nobody else would take its routes over. */
export class CannotWithdraw extends CpnError {
  override readonly name = 'CannotWithdraw';

  constructor(url: string, problem: string) {
    super(
      `routes cannot be withdrawn through the control plane at ${url}: ${problem}; ask an admin to take them from this connector there`,
      { facts: { url, problem } },
    );
  }
}

/** A control plane does not let a host change what the network is told of it. */
export class CannotTell extends CpnError {
  override readonly name = 'CannotTell';

  constructor(url: string, problem: string) {
    super(
      `name and endpoint of this host cannot be changed through the control plane at ${url}: ${problem}; nothing was changed here: ask an admin to type "cpn peer update"`,
      { facts: { url, problem } },
    );
  }
}

/** The keys of a host cannot be changed; nothing was. */
export class CannotRotate extends CpnError {
  override readonly name = 'CannotRotate';

  /** @param remedy what to do about it, as a clause of its own */
  constructor(networkInterface: string, problem: string, remedy: string, cause?: unknown) {
    super(`the key of ${networkInterface} cannot be changed: ${problem}; ${remedy}`, {
      facts: { interface: networkInterface, problem },
      cause,
    });
  }
}
