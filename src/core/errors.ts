import { getSystemErrorMap } from 'node:util';

/** What a failure knows beside its sentence; never a secret, because facts are logged. */
export type Facts = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

interface Details {
  readonly facts?: Facts;
  readonly cause?: unknown;
  /** True when the same attempt may succeed later with nothing changed by a person. */
  readonly retry?: boolean;
}

/**
 * The base of every failure this program foresees. The message is for a person: what was wrong, with which value, and
 * what to do next. Exit codes are given in cli/exit-code, HTTP statuses in control-plane/error-reply, nowhere else.
 */
export abstract class CpnError extends Error {
  abstract override readonly name: string;
  readonly facts: Facts;
  readonly retry: boolean;

  constructor(message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.facts = details.facts ?? {};
    this.retry = details.retry ?? false;
  }
}

/** A value that a person, a file or the wire gave breaks a rule; a value that must not be seen is left undefined. */
export class InvalidValue extends CpnError {
  override readonly name = 'InvalidValue';
  readonly field: string;
  readonly rule: string;

  constructor(field: string, value: unknown, rule: string, remedy?: string) {
    const shown = value === undefined ? '' : ` ${quote(value)}`;
    super(`${field}${shown} ${rule}${remedy ? `; ${remedy}` : ''}`, { facts: { field, rule } });
    this.field = field;
    this.rule = rule;
  }
}

/** The command as given cannot be carried out: a flag is missing, or two of them exclude each other. */
export class WrongUsage extends CpnError {
  override readonly name = 'WrongUsage';
}

/** The program lacks a right on this host. */
export class MissingPrivilege extends CpnError {
  override readonly name = 'MissingPrivilege';

  constructor(what: string, remedy: string) {
    super(`${what} needs root (CAP_NET_ADMIN); ${remedy}`, { facts: { what } });
  }
}

/** A tool of the operating system is not there. */
export class MissingTool extends CpnError {
  override readonly name = 'MissingTool';

  constructor(tool: string, remedy: string) {
    super(`${tool} was not found on this host; ${remedy}`, { facts: { tool } });
  }
}

/** What is asked for cannot be done on this kind of host, whatever a person changes on it. */
export class Unsupported extends CpnError {
  override readonly name = 'Unsupported';

  /** @param remedy what does it instead, as a clause of its own */
  constructor(what: string, driver: string, remedy: string) {
    super(`${what} cannot be had on a host that is kept by ${driver} alone; ${remedy}`, { facts: { what, driver } });
  }
}

/** An interface, a file or a table that we would have to touch is somebody else's. */
export class NotOurs extends CpnError {
  override readonly name = 'NotOurs';

  constructor(what: string, target: string, remedy: string) {
    super(`${what} ${quote(target)} exists and was not made by cpn; ${remedy}`, { facts: { what, target } });
  }
}

/** A tool of the operating system failed; says which, how, and what it wrote to stderr. */
export class CommandFailed extends CpnError {
  override readonly name = 'CommandFailed';

  constructor(command: string, exitCode: number | null, stderr: string, cause?: unknown) {
    const ending = exitCode === null ? 'did not finish' : `exited with ${exitCode}`;
    const said = stderr.trim().replaceAll('\n', '; ');
    super(`${command} ${ending}${said ? `: ${said}` : ''}`, {
      facts: { command, exitCode, stderr },
      cause,
      retry: true,
    });
  }
}

/** A program of somebody else listens on the UDP port that an interface is to have. */
export class PortTaken extends CpnError {
  override readonly name = 'PortTaken';

  constructor(networkInterface: string, port: number | null, cause?: unknown) {
    const which = port === null ? 'its UDP port' : `UDP port ${port}`;
    super(
      `${networkInterface} cannot listen: ${which} is in use; choose another with --listen-port, or end what has it ("ss -lunp" names it)`,
      { facts: { interface: networkInterface, port }, cause, retry: true },
    );
  }
}

/** The hosts file is not one that we can change; the tunnel works without names. */
export class NotNamed extends CpnError {
  override readonly name = 'NotNamed';

  /** @param trouble what is wrong with the file, and what to do about it */
  constructor(networkInterface: string, trouble: string) {
    super(`the hosts file does not name the peers of ${networkInterface}: ${trouble}`, {
      facts: { interface: networkInterface },
    });
  }
}

/** Somebody else's packet rules drop what this host, a connector, is there to forward. */
export class ForwardingDropped extends CpnError {
  override readonly name = 'ForwardingDropped';

  /** @param drops a sentence each: what is dropped, by whom, and what to do about it */
  constructor(drops: readonly string[]) {
    super(drops.join('; '), { facts: { drops } });
  }
}

/** The host does not hold what was just applied to it. */
export class NotConverged extends CpnError {
  override readonly name = 'NotConverged';

  constructor(networkInterface: string, pending: readonly string[]) {
    super(`${networkInterface} is not as it should be after the change; still pending: ${pending.join(', ')}`, {
      facts: { interface: networkInterface, pending },
      retry: true,
    });
  }
}

/** After a change nobody answered who answered before; the host was made again what it was. */
export class NotConfirmed extends CpnError {
  override readonly name = 'NotConfirmed';

  constructor(networkInterface: string, revision: string | null, withinMs: number) {
    const what = revision === null ? 'the newest map' : `revision ${printable(revision)}`;
    super(
      `${networkInterface} was changed back: with ${what} neither the control plane nor a peer that answered before was heard within ${withinMs / 1000} s; it is not tried again until the network changes`,
      { facts: { interface: networkInterface, revision, withinMs } },
    );
  }
}

/** With other options nobody answered who answered before; the host has the ones again that it had. */
export class NotKept extends CpnError {
  override readonly name = 'NotKept';

  constructor(networkInterface: string, withinMs: number) {
    super(
      `the options of ${networkInterface} are what they were before: with the new ones neither the control plane nor a peer that answered before was heard within ${withinMs / 1000} s; try others, or a longer --confirm-within`,
      { facts: { interface: networkInterface, withinMs } },
    );
  }
}

/** An answer of the control plane would take away all that this host reaches, and no second one confirmed it yet. */
export class Unconfirmed extends CpnError {
  override readonly name = 'Unconfirmed';

  constructor(url: string, problem: string, seconds: number) {
    super(
      `the control plane at ${url} ${problem}; the tunnel stays as it is until a second answer, ${seconds} s later or more, says the same`,
      { facts: { url, problem }, retry: true },
    );
  }
}

/** Of a peer another thing is claimed than what a person was shown. */
export class ClaimChanged extends CpnError {
  override readonly name = 'ClaimChanged';

  constructor(peer: string, claimed: string) {
    super(
      `nothing was accepted of ${quote(peer)}: what is claimed of it became another thing meanwhile (${claimed}); look at "cpn status", and accept that or not`,
      { facts: { peer, claimed } },
    );
  }
}

/** A network gives this host an address with which it would cut itself off. */
export class AddressRefused extends CpnError {
  override readonly name = 'AddressRefused';

  constructor(network: string, address: string, reason: string) {
    super(
      `network ${network} gives this host ${address}, which ${reason}; it is not taken: ask an admin of the network why, and join again`,
      { facts: { network, address, reason } },
    );
  }
}

/** The host has not joined what the command names. */
export class NotJoined extends CpnError {
  override readonly name = 'NotJoined';
}

/** A state file or a wg-quick file cannot be read as what it should be; it is left as it is. */
export class UnreadableFile extends CpnError {
  override readonly name = 'UnreadableFile';

  constructor(path: string, problem: string, remedy: string, cause?: unknown) {
    super(`${path} ${problem}; ${remedy}`, { facts: { path, problem }, cause });
  }
}

/** The disk did not do what was asked of it: it is full, read-only or broken, or does not let us. */
export class DiskFailed extends CpnError {
  override readonly name = 'DiskFailed';

  /** @param action what was to be done with `path`, such as `write` */
  constructor(action: string, path: string, { code = 'EIO', errno = 0 }: NodeJS.ErrnoException) {
    const reason = getSystemErrorMap().get(errno)?.[1] ?? 'the disk failed';
    super(
      `cannot ${action} ${path}: ${reason} (${code}); ${diskRemedies[code] ?? 'look at that place, and try again'}`,
      {
        facts: { path, code },
        retry: true,
      },
    );
  }
}

const diskRemedies: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space',
  EDQUOT: 'free some space',
  EROFS: 'mount it writable, and see in the kernel log why it is not',
  EIO: 'see in the kernel log what is wrong with the disk',
  EACCES: 'run as root, or correct the permissions',
  EPERM: 'run as root, or correct the permissions',
};

/** Another cpn is at work on this host. */
export class Locked extends CpnError {
  override readonly name = 'Locked';

  /** @param program what is at work: any command of `cpn`, or the daemon */
  constructor(path: string, pid: string, program: 'cpn' | 'cpn run' = 'cpn') {
    super(`another ${program} (pid ${pid}) holds ${path}; wait for it to end, or stop it`, {
      facts: { path, pid },
      retry: true,
    });
  }
}

/** The control plane answered, and refused: 401, 403, 404, 413 or 422. Repeating the request would not help. */
export class Refused extends CpnError {
  override readonly name = 'Refused';
  readonly status: number;
  /** True when an earlier attempt, whose reply was lost, may have been carried out: this refusal may be its echo. */
  readonly repeated: boolean;

  constructor(status: number, what: string, reason: string, remedy: string, repeated = false) {
    super(`${what} was refused (${status}): ${reason}; ${remedy}`, { facts: { status, what } });
    this.status = status;
    this.repeated = repeated;
  }
}

/** What is known of the attempts that ended in {@link Unreachable}. */
interface Attempts {
  /** False when no byte of any attempt can have reached it: then nothing was done there. */
  readonly delivered: boolean;
  /** Something at its address answered the last attempt, if only to refuse it: the way there is open. */
  readonly heard: boolean;
  /** Milliseconds that it asked to be left alone for. */
  readonly retryAfterMs: number | null;
  /** What a person does about it, where the problem does not say so itself. */
  readonly remedy?: string | null;
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

/** Nobody who answered before answered to a new key; the old one is in use again. */
export class NotRotated extends CpnError {
  override readonly name = 'NotRotated';

  constructor(networkInterface: string, withinMs: number) {
    super(
      `the key of ${networkInterface} was changed back: within ${withinMs / 1000} s no peer that answered before answered to the new one; peers that are not told of changes at once need a longer --confirm-within`,
      { facts: { interface: networkInterface, withinMs }, retry: true },
    );
  }
}

/** A change of keys was begun, and cannot be ended yet; it goes on by itself. */
export class RotationPending extends CpnError {
  override readonly name = 'RotationPending';

  constructor(networkInterface: string, problem: string, cause?: unknown) {
    super(
      `the change of the key of ${networkInterface} is not over: ${problem}; the daemon, or the next "cpn reconcile", goes on with it`,
      { facts: { interface: networkInterface, problem }, cause, retry: true },
    );
  }
}

/** The control plane could not be reached, or kept answering 429 or 5xx, until the deadline. */
export class Unreachable extends CpnError implements Attempts {
  override readonly name = 'Unreachable';
  readonly delivered: boolean;
  readonly heard: boolean;
  readonly retryAfterMs: number | null;

  constructor(url: string, problem: string, { delivered, heard, retryAfterMs, remedy }: Attempts) {
    super(`the control plane at ${url} is out of reach: ${problem}${remedy ? `; ${remedy}` : ''}`, {
      facts: { url, problem },
      retry: true,
    });
    this.delivered = delivered;
    this.heard = heard;
    this.retryAfterMs = retryAfterMs;
  }
}

/** What answered does not speak the contract: no JSON, a missing field, a redirect, too many bytes. */
export class BadReply extends CpnError {
  override readonly name = 'BadReply';

  constructor(url: string, problem: string, remedy: string, cause?: unknown) {
    super(`the reply from ${url} ${problem}; ${remedy}`, { facts: { url, problem }, cause });
  }
}

/** The metrics of the daemon cannot be served where somebody wants them. */
export class MetricsFailed extends CpnError {
  override readonly name = 'MetricsFailed';

  constructor(host: string, port: number, { code = 'EIO', errno = 0 }: NodeJS.ErrnoException) {
    const reason = getSystemErrorMap().get(errno)?.[1] ?? 'the system says no more';
    super(`metrics cannot be served on ${host} port ${port}: ${reason} (${code}); choose another with --metrics`, {
      facts: { host, port, code },
      retry: true,
    });
  }
}

/** A value as people read it in a message: short, and with nothing a terminal would obey. */
export function quote(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  const shown = printable(text);
  return JSON.stringify(shown.length > 80 ? `${shown.slice(0, 77)}...` : shown);
}

/** `text` without control, C1, bidirectional and zero-width characters: what came over the wire, made safe for a terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}');
}
