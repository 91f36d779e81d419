import { CpnError } from '../core/errors.ts';

/** The rules that each field of a request broke. */
export type BrokenRules = Readonly<Record<string, readonly string[]>>;

/** A request says something that breaks a rule; each field is named with its rules. */
export class InvalidRequest extends CpnError {
  override readonly name = 'InvalidRequest';
  readonly fields: BrokenRules;
  /** The fields of the body that follow its schema, where others do not. */
  readonly rest: object | null;

  constructor(fields: BrokenRules, rest: object | null = null) {
    const names = Object.keys(fields);
    super(`the request breaks a rule for ${names.join(', ')}`, { facts: { fields: names } });
    this.fields = fields;
    this.rest = rest;
  }
}

/** The request brought no credential, or one that nobody holds. */
export class Unauthenticated extends CpnError {
  override readonly name = 'Unauthenticated';
}

/** The caller is known, and may not do this. */
export class Forbidden extends CpnError {
  override readonly name = 'Forbidden';
}

/** What the request asks for does not go together with what the caller says of itself. */
export class Conflict extends CpnError {
  override readonly name = 'Conflict';
}

/** What the request names is not there, or belongs to another organization: the caller cannot tell which. */
export class NotFound extends CpnError {
  override readonly name = 'NotFound';

  constructor(what: string) {
    super(`there is no such ${what}`, { facts: { what } });
  }
}

/** The path is there, and does not take the method of the request. */
export class MethodNotAllowed extends CpnError {
  override readonly name = 'MethodNotAllowed';
  readonly allowed: readonly string[];

  constructor(method: string, allowed: readonly string[]) {
    super(`the path does not take ${method}; it takes ${allowed.join(', ')}`, { facts: { method, allowed } });
    this.allowed = allowed;
  }
}

/** The body of the request is compressed, or otherwise encoded. */
export class UnsupportedEncoding extends CpnError {
  override readonly name = 'UnsupportedEncoding';

  constructor(encoding: string) {
    super(`the body of the request has Content-Encoding ${JSON.stringify(encoding)}; send it without one`, {
      facts: { encoding },
    });
  }
}

/** The caller asked too often, and may ask again after a while. */
export class TooManyRequests extends CpnError {
  override readonly name = 'TooManyRequests';
  readonly retryAfterSeconds: number;

  constructor(what: string, retryAfterSeconds: number) {
    super(`too many ${what}; try again in ${retryAfterSeconds} s`, { facts: { what, retryAfterSeconds }, retry: true });
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The request cannot be served just now, through no fault of the caller's, who may ask again after a while. */
export class Unavailable extends CpnError {
  override readonly name = 'Unavailable';
  readonly retryAfterSeconds: number;

  /** @param problem what is wrong, in words that anybody may read */
  constructor(problem: string, retryAfterSeconds = 1, cause?: unknown) {
    super(`${problem}; try again in ${retryAfterSeconds} s`, { facts: { problem }, cause, retry: true });
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The database was lost after it was told to keep a change and before it said that it did. */
export class OutcomeUnknown extends CpnError {
  override readonly name = 'OutcomeUnknown';

  constructor(cause: unknown) {
    super('the database was lost before it said whether this is done; look before you ask for it again', { cause });
  }
}

/** The database that was named cannot be used. */
export class UnusableDatabase extends CpnError {
  override readonly name = 'UnusableDatabase';

  constructor(database: string, problem: string, remedy: string, cause?: unknown) {
    super(`the database ${database} cannot be used: ${problem}; ${remedy}`, { facts: { database, problem }, cause });
  }
}

/** The database was changed by a newer version in a way that this one must know of. */
export class NewerDatabase extends CpnError {
  override readonly name = 'NewerDatabase';

  constructor(migration: string) {
    super(`it has the migration ${migration}, which this cpn does not know`, { facts: { migration } });
  }
}

/** The address to listen on cannot be had. */
export class CannotListen extends CpnError {
  override readonly name = 'CannotListen';

  constructor(host: string, port: number, cause: unknown, flag = '--listen') {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`cannot listen on ${host} port ${port}: ${reason}; choose another with ${flag}`, {
      facts: { host, port },
      cause,
    });
  }
}
