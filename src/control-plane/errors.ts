import type { DeviceCodeError } from '../contract/device-code.ts';
import { CpnError } from '../core/errors/index.ts';

/** The fields of a log line about a failure. An expected error has no stack. */
export function failureFields(error: unknown): { readonly error: string } | { readonly err: unknown } {
  return error instanceof CpnError ? { error: error.message } : { err: error };
}

/** The rules that each field of a request broke. */
export type BrokenRules = Readonly<Record<string, readonly string[]>>;

export class InvalidRequest extends CpnError {
  override readonly name = 'InvalidRequest';
  readonly fields: BrokenRules;
  /** The valid fields of the body, if other fields do not follow the schema. */
  readonly validFields: object | null;

  constructor(fields: BrokenRules, rest: object | null = null) {
    const names = Object.keys(fields);
    super(`the request breaks a rule for ${names.join(', ')}`, { facts: { fields: names } });
    this.fields = fields;
    this.validFields = rest;
  }
}

export class Unauthenticated extends CpnError {
  override readonly name = 'Unauthenticated';
}

/** The issuer of OpenID Connect refused a login, or gave something that is not valid. */
export class IssuerRefused extends CpnError {
  override readonly name = 'IssuerRefused';
  /** True if the issuer ended the user's login. */
  readonly isEnd: boolean;

  constructor(problem: string, { cause, isEnd = false }: { readonly cause?: unknown; readonly isEnd?: boolean } = {}) {
    super(problem, { cause });
    this.isEnd = isEnd;
  }
}

export class Forbidden extends CpnError {
  override readonly name = 'Forbidden';
}

/** The request contradicts a state that its headers or fields name. */
export class Conflict extends CpnError {
  override readonly name = 'Conflict';
}

export class PreconditionFailed extends CpnError {
  override readonly name = 'PreconditionFailed';
}

/** A device code gives no session, or not yet. */
export class DeviceCodeRefused extends CpnError {
  override readonly name = 'DeviceCodeRefused';
  readonly code: DeviceCodeError;

  constructor(code: DeviceCodeError) {
    super(deviceCodeProblems[code], { facts: { code } });
    this.code = code;
  }
}

const deviceCodeProblems: Readonly<Record<DeviceCodeError, string>> = {
  authorization_pending: 'no user has approved the login yet; send it again after the interval',
  slow_down: 'this is too soon after the last request; wait 5 s longer between requests',
  access_denied: 'the login was refused in the console; start it again',
  expired_token: 'the device code is unknown, used or expired; start the login again',
};

/** The object does not exist or belongs to another organization. The reply is the same for both. */
export class NotFound extends CpnError {
  override readonly name = 'NotFound';

  constructor(what: string) {
    super(`there is no such ${what}`, { facts: { what } });
  }
}

export class NetworkDeleted extends CpnError {
  override readonly name = 'NetworkDeleted';
  readonly deleted: { readonly id: number; readonly nonce: string };

  constructor(id: number, nonce: string) {
    super('the network was deleted');
    this.deleted = { id, nonce };
  }
}

export class MethodNotAllowed extends CpnError {
  override readonly name = 'MethodNotAllowed';
  readonly allowed: readonly string[];

  constructor(method: string, allowed: readonly string[]) {
    super(`the path does not take ${method}; it takes ${allowed.join(', ')}`, { facts: { method, allowed } });
    this.allowed = allowed;
  }
}

export class UnsupportedEncoding extends CpnError {
  override readonly name = 'UnsupportedEncoding';

  constructor(encoding: string) {
    super(`the body of the request has Content-Encoding ${JSON.stringify(encoding)}; send it without one`, {
      facts: { encoding },
    });
  }
}

export class TooManyRequests extends CpnError {
  override readonly name = 'TooManyRequests';
  readonly retryAfterSeconds: number;

  constructor(what: string, retryAfterSeconds: number) {
    super(`too many ${what}; try again in ${retryAfterSeconds} s`, {
      facts: { what, retryAfterSeconds },
      isRetryable: true,
    });
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The client closed its connection before its request ran. No reply reaches it. */
export class Disconnected extends CpnError {
  override readonly name = 'Disconnected';

  constructor() {
    super('the client closed its connection while the request waited');
  }
}

/** The request cannot be served now, through no fault of the caller, which may retry later. */
export class Unavailable extends CpnError {
  override readonly name = 'Unavailable';
  readonly retryAfterSeconds: number;

  /** @param problem the problem, in words that any client may read */
  constructor(problem: string, retryAfterSeconds = 1, cause?: unknown) {
    super(`${problem}; try again in ${retryAfterSeconds} s`, { facts: { problem }, cause, isRetryable: true });
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The connection to the database broke after a commit was sent and before it was confirmed. */
export class OutcomeUnknown extends CpnError {
  override readonly name = 'OutcomeUnknown';

  constructor(cause: unknown) {
    super('the database was lost before it confirmed the change; check whether it was made before you repeat it', {
      cause,
    });
  }
}

export class UnusableDatabase extends CpnError {
  override readonly name = 'UnusableDatabase';

  /** @param isRetryable false if an operator must act before a start can succeed */
  constructor(database: string, problem: string, remedy: string, isRetryable: boolean, cause?: unknown) {
    super(`the database ${database} cannot be used: ${problem}; ${remedy}`, {
      facts: { database, problem },
      isRetryable,
      cause,
    });
  }
}

/** A file or folder that the control plane needs to start is unusable. */
export class UnusableFile extends CpnError {
  override readonly name = 'UnusableFile';

  constructor(path: string, problem: string, remedy: string, { cause, isRetryable = false }: StartFailure = {}) {
    super(`${path} ${problem}; ${remedy}`, { facts: { path, problem }, isRetryable, cause });
  }
}

interface StartFailure {
  readonly cause?: unknown;
  /** False if an operator must act before a start can succeed. */
  readonly isRetryable?: boolean;
}

/** A newer version changed the database incompatibly. */
export class NewerDatabase extends CpnError {
  override readonly name = 'NewerDatabase';

  constructor(migration: string) {
    super(`it has the migration ${migration}, which this version of cpn does not have`, { facts: { migration } });
  }
}

export class CannotListen extends CpnError {
  override readonly name = 'CannotListen';

  /** @param port null for a Unix socket */
  constructor(host: string, port: number | null, cause: unknown, flag = '--listen') {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const { code = '' } = (cause ?? {}) as NodeJS.ErrnoException;
    super(`cannot listen on ${port === null ? host : `${host} port ${port}`}: ${reason}; choose another with ${flag}`, {
      facts: { host, port },
      // The address may be in use, not present yet, or not resolvable yet.
      isRetryable: !neverListens.includes(code),
      cause,
    });
  }
}

const neverListens = ['EACCES', 'EPERM', 'EINVAL', 'EAFNOSUPPORT', 'ENOTSOCK'];
