import { CpnError } from './cpn-error.ts';

/** The control plane refused the request: 401, 403, 404, 413 or 422. A retry does not help. */
export class Refused extends CpnError {
  override readonly name = 'Refused';
  readonly status: number;
  /** True if an earlier attempt, whose reply was lost, may have caused this refusal. */
  readonly repeated: boolean;
  /** False if the reply has no reason in the contract's format: a proxy may have sent it. */
  readonly reasoned: boolean;
  /** The fields of the request that the reply names, each with the rule that it breaks. */
  readonly fields: readonly BrokenField[];
  /** The network that the reply reports as deleted, or null. */
  readonly deleted: StatedDeletion | null;
  /** The message without its hint. */
  readonly problem: string;
  /** The hint. The reason may contain it after a semicolon. */
  readonly remedy: string | null;

  /** @param remedy the hint; null if the reason contains it */
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

/** The network in a 410 reply. The caller checks that it is the requested network. */
export interface StatedDeletion {
  readonly id: number | string;
  readonly nonce: string;
}

interface BrokenField {
  readonly field: string;
  readonly rule: string;
}

interface RefusalFacts {
  readonly repeated?: boolean;
  readonly reasoned?: boolean;
  readonly fields?: readonly BrokenField[];
  readonly deleted?: StatedDeletion | null;
}

/** The attempts that ended in {@link Unreachable}. */
interface Attempts {
  /** False if no byte of any attempt can have reached the control plane. */
  readonly delivered: boolean;
  /** True if an attempt may have succeeded: a retry could repeat its effect. */
  readonly perhapsDone?: boolean;
  /** True if its address replied to the last attempt, even with a refusal: the path is open. */
  readonly heard: boolean;
  /** True if it replied to the last attempt with 429. */
  readonly limited?: boolean;
  /** True if it replied to the last attempt with 503 and a reason, which is the problem. */
  readonly busy?: boolean;
  /** Milliseconds from its `Retry-After`. */
  readonly retryAfterMs: number | null;
  /** The hint, if the problem contains none. */
  readonly remedy?: string | null;
  /** True if a retry fails until a person acts, such as after a rejected certificate. */
  readonly lasting?: boolean;
  /** True if a gateway may have ended a long wait, which proves nothing about the control plane. */
  readonly waitEnded?: boolean;
}

/** Until the deadline, the control plane was unreachable, or replied with 429 or 5xx. */
export class Unreachable extends CpnError implements Attempts {
  override readonly name: string = 'Unreachable';
  readonly delivered: boolean;
  readonly perhapsDone: boolean;
  readonly heard: boolean;
  readonly retryAfterMs: number | null;
  readonly remedy: string | null;
  readonly lasting: boolean;
  readonly waitEnded: boolean;

  /** @param message replaces the default message */
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

/** The proxy to the control plane refused the connection, could not make it, or was unreachable. */
export class ProxyFailed extends Unreachable {
  override readonly name = 'ProxyFailed';

  /**
   * @param proxy its URL without credentials
   * @param from the flag or variable that set it
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

/** Why a program on this host may belong to another user, and not be the control plane. */
export interface Foreignness {
  readonly problem: string;
  /** The hint. Null if a person must confirm the user. */
  readonly remedy: string | null;
}

/** A new user may listen at a loopback address without TLS, or a Unix socket. Nothing was sent. */
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

/** A captive portal, a proxy with a login or another server replies instead. */
export class Intercepted extends Unreachable {
  override readonly name = 'Intercepted';
  /** The server that replies. */
  readonly by: string;

  /**
   * @param how the evidence, as a separate clause
   * @param otherwise the remedy if the network needs no login, and only the server's name is wrong
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

/** A reply breaks the contract: no JSON, a missing field, a redirect on the host, or too long. */
export class BadReply extends CpnError {
  override readonly name = 'BadReply';

  constructor(url: string, problem: string, remedy: string, cause?: unknown) {
    super(`the reply from ${url} ${problem}; ${remedy}`, { facts: { url, problem }, cause });
  }
}

/** Routes of a connector cannot be withdrawn: no other connector would take them over. */
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

/** The server at a new URL is not the control plane of this host's network. Nothing was changed. */
export class CannotMove extends CpnError {
  override readonly name = 'CannotMove';

  constructor(networkInterface: string, url: string, problem: string, remedy: string) {
    super(`the control plane of ${networkInterface} was not changed: ${url} ${problem}; ${remedy}`, {
      facts: { interface: networkInterface, url, problem },
    });
  }
}

/** The key of a host cannot be rotated. Nothing was changed. */
export class CannotRotate extends CpnError {
  override readonly name = 'CannotRotate';

  /** @param remedy the hint, as a separate clause */
  constructor(networkInterface: string, problem: string, remedy: string, cause?: unknown) {
    super(`the key of ${networkInterface} cannot be rotated: ${problem}; ${remedy}`, {
      facts: { interface: networkInterface, problem },
      cause,
    });
  }
}

/** None of the listed peers is usable: the host is joined, but can reach no peer. */
export class NoUsablePeer extends CpnError {
  override readonly name = 'NoUsablePeer';

  constructor(network: string, networkInterface: string, reasons: readonly string[]) {
    const joined = `joined network ${network} as ${networkInterface}, where no peer can be used: ${reasons.join('; ')}`;
    super(`${joined}; have its operator correct that, and join again after "cpn leave ${networkInterface}"`, {
      facts: { network, interface: networkInterface, reasons },
    });
  }
}
