import { CpnError } from './cpn-error.ts';

/** The control plane refused the request: 401, 403, 404, 413 or 422. A retry does not help. */
export class Refused extends CpnError {
  override readonly name = 'Refused';
  readonly status: number;
  /** True when an earlier attempt, whose reply was lost, may have succeeded: this refusal may follow from it. */
  readonly repeated: boolean;
  /** False where the reply has no reason in the contract's form: a proxy may have sent it. */
  readonly reasoned: boolean;
  /** The fields of the request that the reason names. */
  readonly fields: readonly string[];
  /** The network that the reply states to be deleted; null for none. */
  readonly deleted: StatedDeletion | null;
  /** The message without its hint. */
  readonly problem: string;
  /** The hint, which the reason may have after a semicolon. */
  readonly remedy: string | null;

  /** @param remedy the hint; null where the reason has one */
  constructor(
    status: number,
    what: string,
    reason: string,
    remedy: string | null,
    { repeated = false, reasoned = true, fields = [], deleted = null }: RefusalFacts = {},
  ) {
    const [cause, ...hints] = remedy === null ? reason.split('; ') : [reason, remedy];
    const problem = `${what} was refused (${status}): ${cause}`;
    super([problem, ...hints].join('; '), { facts: { status, what } });
    this.problem = problem;
    this.remedy = hints.join('; ') || null;
    this.status = status;
    this.repeated = repeated;
    this.reasoned = reasoned;
    this.fields = fields;
    this.deleted = deleted;
  }
}

/** A network as a 410 names it; whether it is the one that was meant is for the caller to check. */
export interface StatedDeletion {
  readonly id: number | string;
  readonly nonce: string;
}

/** How a refusal came about. */
interface RefusalFacts {
  readonly repeated?: boolean;
  readonly reasoned?: boolean;
  readonly fields?: readonly string[];
  readonly deleted?: StatedDeletion | null;
}

/** The attempts that ended in {@link Unreachable}. */
interface Attempts {
  /** False when no byte of any attempt can have reached it: nothing happened there. */
  readonly delivered: boolean;
  /** An attempt may have succeeded; a retry could do the work twice. */
  readonly perhapsDone?: boolean;
  /** Its address answered the last attempt, if only with a refusal: the path is open. */
  readonly heard: boolean;
  /** It answered the last attempt with 429. */
  readonly limited?: boolean;
  /** It answered the last attempt with 503 and a reason, which is the problem. */
  readonly busy?: boolean;
  /** Milliseconds of its `Retry-After`. */
  readonly retryAfterMs: number | null;
  /** The hint, where the problem has none. */
  readonly remedy?: string | null;
  /** Another attempt ends the same way until someone acts, such as one with a certificate that is not accepted. */
  readonly lasting?: boolean;
  /** A gateway may have ended a wait of several seconds, which says nothing about the control plane. */
  readonly waitEnded?: boolean;
}

/** The control plane was unreachable, or kept answering 429 or 5xx, until the deadline. */
export class Unreachable extends CpnError implements Attempts {
  override readonly name: string = 'Unreachable';
  readonly delivered: boolean;
  readonly perhapsDone: boolean;
  readonly heard: boolean;
  readonly retryAfterMs: number | null;
  readonly remedy: string | null;
  readonly lasting: boolean;
  readonly waitEnded: boolean;

  /** @param message replaces the usual message */
  constructor(url: string, problem: string, attempts: Attempts, message = explainSilence(url, problem, attempts)) {
    super(message, { facts: { url, problem }, isRetryable: true });
    this.delivered = attempts.delivered;
    this.perhapsDone = attempts.perhapsDone ?? false;
    this.heard = attempts.heard;
    this.retryAfterMs = attempts.retryAfterMs;
    this.remedy = attempts.remedy ?? null;
    this.lasting = attempts.lasting ?? false;
    this.waitEnded = attempts.waitEnded ?? false;
  }
}

function explainSilence(url: string, problem: string, { limited, busy, remedy }: Attempts): string {
  const state = limited ? 'limits requests' : busy ? 'is busy' : 'is unreachable';
  return `the control plane at ${url} ${state}: ${problem}${remedy ? `; ${remedy}` : ''}`;
}

/** The proxy between this host and the control plane refused the connection, did not make it, or was unreachable itself. */
export class ProxyFailed extends Unreachable {
  override readonly name = 'ProxyFailed';

  /**
   * @param proxy its URL without credentials
   * @param from the flag or variable that named it
   * @param problem a clause whose subject is the proxy
   */
  constructor(url: string, proxy: string, from: string, problem: string, remedy: string) {
    const path = `the proxy ${proxy} (${from}) ${problem}`;
    super(
      url,
      path,
      { delivered: false, heard: false, retryAfterMs: null, remedy },
      `the control plane at ${url} is unreachable: ${path}; ${remedy}`,
    );
  }
}

/** Why a program on this host may be another user's, and not the control plane. */
export interface Foreignness {
  readonly problem: string;
  /** The hint; null where a person confirms the user. */
  readonly remedy: string | null;
}

/** Another user than before may answer at a loopback address without TLS, or at a Unix socket; nothing was sent. */
export class ForeignListener extends Unreachable {
  override readonly name = 'ForeignListener';

  constructor(url: string, foreign: Foreignness) {
    const problem = `${foreign.problem}; nothing was sent`;
    const confirm = `if the control plane runs as that user now, confirm it with "cpn set --api ${url}", and with "cpn login --api ${url}"`;
    const remedy = foreign.remedy ?? confirm;
    super(
      url,
      problem,
      { delivered: false, heard: false, retryAfterMs: null, remedy, lasting: true },
      `the control plane at ${url} is not trusted: ${problem}; ${remedy}`,
    );
  }
}

/** A captive portal, a proxy that requires a login or a server with another name answers in place of the control plane. */
export class Intercepted extends Unreachable {
  override readonly name = 'Intercepted';
  /** The server that answers. */
  readonly by: string;

  /**
   * @param how the evidence, as a clause of its own
   * @param otherwise the remedy where the network requires no login, and only the name of the server is wrong
   */
  constructor(url: string, how: string, delivered: boolean, otherwise: string | null = null) {
    const by = otherwise === null ? 'a captive portal or proxy' : 'another server';
    const remedy =
      otherwise === null
        ? 'log in to the network in a browser, then retry; if it needs no login, check the URL of the control plane'
        : `${otherwise}; if this network requires a login, log in in a browser first`;
    super(
      url,
      how,
      { delivered, heard: false, retryAfterMs: null, remedy, lasting: true },
      `${by} answers in place of the control plane at ${url} (${how}); ${remedy}`,
    );
    this.by = by;
  }
}

/** A reply breaks the contract: no JSON, a missing field, a redirect on the same host, too many bytes. */
export class BadReply extends CpnError {
  override readonly name = 'BadReply';

  constructor(url: string, problem: string, remedy: string, cause?: unknown) {
    super(`the reply from ${url} ${problem}; ${remedy}`, { facts: { url, problem }, cause });
  }
}

/** The control plane cannot withdraw the routes of a connector: no other connector would take them over. */
export class CannotWithdraw extends CpnError {
  override readonly name = 'CannotWithdraw';

  constructor(url: string, problem: string) {
    super(
      `routes cannot be withdrawn through the control plane at ${url}: ${problem}; ask an admin to remove them from this connector`,
      { facts: { url, problem } },
    );
  }
}

/** The control plane does not let a host change its own name and endpoint. */
export class CannotReport extends CpnError {
  override readonly name = 'CannotReport';

  constructor(url: string, problem: string) {
    super(
      `name and endpoint of this host cannot be changed through the control plane at ${url}: ${problem}; nothing was changed; ask an admin to run "cpn peer update"`,
      { facts: { url, problem } },
    );
  }
}

/** The server at a new URL is not the control plane of this host's network; nothing was changed. */
export class CannotMove extends CpnError {
  override readonly name = 'CannotMove';

  constructor(networkInterface: string, url: string, problem: string, remedy: string) {
    super(`the control plane of ${networkInterface} was not changed: ${url} ${problem}; ${remedy}`, {
      facts: { interface: networkInterface, url, problem },
    });
  }
}

/** The key of a host cannot be rotated; nothing was changed. */
export class CannotRotate extends CpnError {
  override readonly name = 'CannotRotate';

  /** @param remedy the hint, as a clause of its own */
  constructor(networkInterface: string, problem: string, remedy: string, cause?: unknown) {
    super(`the key of ${networkInterface} cannot be rotated: ${problem}; ${remedy}`, {
      facts: { interface: networkInterface, problem },
      cause,
    });
  }
}

/** Of the peers that the control plane listed, none can be used: the host is joined, and reaches none. */
export class NoUsablePeer extends CpnError {
  override readonly name = 'NoUsablePeer';

  constructor(network: string, networkInterface: string, reasons: readonly string[]) {
    const joined = `joined network ${network} as ${networkInterface}, where no peer can be used: ${reasons.join('; ')}`;
    super(`${joined}; have its operator correct that, and join again after "cpn leave ${networkInterface}"`, {
      facts: { network, interface: networkInterface, reasons },
    });
  }
}
