import { OutcomeUnknown, Unavailable, UnusableDatabase } from '../../errors.ts';
import { isConflict, sqlStateOf } from '../transact.ts';
import type { DatabaseTarget } from './database-url.ts';

/** A `decisive` statement may have been executed although its reply was lost. */
export function translate(error: unknown, decisive: boolean): unknown {
  if (isConflict(error) || error instanceof TypeError || !(error instanceof Error)) return error;
  const state = sqlStateOf(error);
  if (decisive && (state === null || isLoss.test(state))) return new OutcomeUnknown(error);
  return state === null || isPassing.test(state) ? notAnswering(error) : error;
}

/** The error for a request without a connection. Nothing was done, so the caller may retry. */
export function notAnswering(cause: unknown): Unavailable {
  return new Unavailable(problems[sqlStateOf(cause) ?? ''] ?? 'the database does not answer', 1, cause);
}

const problems: Readonly<Record<string, string>> = {
  '53100': 'the disk of the database is full',
  '53200': 'the database is out of memory',
  '53300': 'the database has too many connections',
  '25006': 'the database is read-only',
  // A commit fails with it if another session keeps the notification queue from being emptied.
  '54000': 'a limit of PostgreSQL is reached, such as that of its queue of notifications',
};

/** Explains a failed start and its remedy. The error contains neither the URL nor a password. */
export function explainStart(error: unknown, { redactedUrl, user, tls }: DatabaseTarget): UnusableDatabase {
  const cause = error instanceof Unavailable ? error.cause : error;
  const message = firstMessage(cause);
  const found = remedies.find(({ state, says }) => (state ? state === sqlStateOf(cause) : says?.test(message)));
  const unreachable = tls ? unreachableByTls : 'check that PostgreSQL runs there, and the host and port in the URL';
  const remedy = found?.remedy ?? (sqlStateOf(cause) === null ? unreachable : 'see its log');
  const isRetryable = found ? found.passes === true : !isLasting(cause);
  return new UnusableDatabase(redactedUrl, message, remedy.replace('USER', user ?? 'the user'), isRetryable, cause);
}

/** True if PostgreSQL refuses the login or the statement, or if its certificate is not trusted. */
function isLasting(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state !== null) return /^(28|3D|42)/.test(state);
  const { code = '' } = (error ?? {}) as NodeJS.ErrnoException;
  return /^ERR_(TLS|SSL|OSSL)|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)/.test(code);
}

/** The connection ended before the reply: a server shutdown, or an administrator ended it. */
const isLoss = /^(08|57P)/;
/** Failures that pass: lost connections, exhausted resources, timeouts, a standby. */
const isPassing = /^(08|53|57P|57014|55P03|25006|54000)/;

const password =
  'put the correct one into PGPASSWORD, into ~/.pgpass, or into the URL in a file that --database file:PATH names';
const unreachableByTls =
  'check the host, the port and the certificate; sslrootcert=FILE in the URL names its authority, and sslmode=disable turns TLS off';
const remedies: readonly {
  readonly state?: string;
  readonly says?: RegExp;
  readonly remedy: string;
  readonly passes?: true;
}[] = [
  { state: '28P01', remedy: password },
  { says: /password must be a (non-empty )?string/, remedy: password },
  { state: '28000', remedy: 'let USER in by pg_hba.conf, or name another user in the URL' },
  {
    state: '3D000',
    remedy: 'make it with createdb --encoding UTF8 --template template0, or name another one in the URL',
  },
  { state: '42501', remedy: 'make USER the owner of the database' },
  { state: '42P07', remedy: 'give the control plane a database of its own' },
  {
    says: /^notifications do not arrive/,
    remedy: 'connect to PostgreSQL itself, or through a pooler in session mode',
  },
  { says: /which this version of cpn does not have$/, remedy: 'it was written by a newer cpn: run that version' },
  { state: '53300', remedy: 'raise max_connections there, or end other clients', passes: true },
  {
    says: /does not support SSL/,
    remedy: 'turn ssl on there, or add sslmode=disable to the URL where the network is trusted',
  },
];

/** A host with several addresses fails with one error per address. */
function firstMessage(error: unknown): string {
  const [first = error] = error instanceof AggregateError ? error.errors : [];
  return first instanceof Error ? first.message : String(first);
}
