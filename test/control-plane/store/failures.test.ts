import { describe, expect, test } from 'vitest';
import { OutcomeUnknown, Unavailable } from '../../../src/control-plane/errors.ts';
import { explainStart, translate } from '../../../src/control-plane/store/postgres/errors.ts';
import { isBusy, isOfDisk, isPassing, translateSqlite } from '../../../src/control-plane/store/sqlite/errors.ts';

const ofSqlite = (errcode: number) => Object.assign(new Error('sqlite'), { code: 'ERR_SQLITE_ERROR', errcode });
const ofPostgres = (code: string, message = 'postgres') =>
  Object.assign(new Error(message), { code, severity: 'ERROR' });
const ofNode = (code: string, message = code) => Object.assign(new Error(message), { code });

/** What a caller gets: the class of its error, or `same` for the error as it came. */
function outcomeOf(error: unknown, translated: unknown): string {
  if (translated === error) return 'same';
  if (translated instanceof OutcomeUnknown) return 'unknown';
  return translated instanceof Unavailable ? 'unavailable' : 'other';
}
const problemOf = (translated: unknown) => (translated instanceof Unavailable ? translated.facts?.problem : undefined);

describe('a failure of SQLite', () => {
  test.each([
    [5, 'another program keeps the database locked', 'unavailable'],
    [517, 'another program keeps the database locked', 'unavailable'],
    [8, 'the database cannot be written, it is read-only', 'unavailable'],
    [776, 'the database cannot be written, it is read-only', 'unavailable'],
    [10, "the disk of the control plane's database fails", 'unknown'],
    [1034, "the disk of the control plane's database fails", 'unknown'],
    [4874, "the disk of the control plane's database is full", 'unavailable'],
    [13, "the disk of the control plane's database is full", 'unavailable'],
    [14, "the files of the control plane's database cannot be opened", 'unavailable'],
  ])('%i passes, and nothing was done: %s; at a commit it is %s', (code, problem, atCommit) => {
    const error = ofSqlite(code);
    const translated = translateSqlite(error, false);
    expect(problemOf(translated)).toBe(problem);
    expect((translated as Unavailable).cause).toBe(error);
    expect(outcomeOf(error, translateSqlite(error, true))).toBe(atCommit);
  });

  test.each([1, 11, 19, 2067, 26])('%i is a fault, and stays as it is', (code) => {
    const error = ofSqlite(code);
    expect([translateSqlite(error, false), translateSqlite(error, true)]).toEqual([error, error]);
    expect([isBusy(error), isOfDisk(error), isPassing(error)]).toEqual([false, false, false]);
  });

  test.each([
    [5, { busy: true, disk: false, passes: true }],
    [8, { busy: false, disk: true, passes: false }],
    [10, { busy: false, disk: true, passes: true }],
    [13, { busy: false, disk: true, passes: true }],
    [14, { busy: false, disk: true, passes: false }],
  ])('%i at a start is %j', (code, { busy, disk, passes }) => {
    const error = ofSqlite(code);
    expect([isBusy(error), isOfDisk(error), isPassing(error)]).toEqual([busy, disk, passes]);
  });
});

test.each([
  ...(['EDQUOT', 'EIO', 'EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC'] as const).map((code) => [code, true] as const),
  ...(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ELOOP'] as const).map((code) => [code, false] as const),
])('%s of the data folder may pass without an operator: %s', (code, passes) => {
  expect(isPassing(ofNode(code))).toBe(passes);
});

describe('a failure of PostgreSQL', () => {
  test.each([
    ['08003', 'the database does not answer', 'unknown'],
    ['08006', 'the database does not answer', 'unknown'],
    ['57P01', 'the database does not answer', 'unknown'],
    ['57P02', 'the database does not answer', 'unknown'],
    ['57P03', 'the database does not answer', 'unknown'],
    ['53000', 'the database does not answer', 'unavailable'],
    ['53100', 'the disk of the database is full', 'unavailable'],
    ['53200', 'the database is out of memory', 'unavailable'],
    ['53300', 'the database has too many connections', 'unavailable'],
    ['25006', 'the database is read-only', 'unavailable'],
    ['54000', 'a limit of PostgreSQL is reached, such as that of its queue of notifications', 'unavailable'],
    ['57014', 'the database does not answer', 'unavailable'],
    ['55P03', 'the database does not answer', 'unavailable'],
  ])('%s passes, and nothing was done: %s; of a commit it is %s', (state, problem, decisive) => {
    const error = ofPostgres(state);
    const translated = translate(error, false);
    expect(problemOf(translated)).toBe(problem);
    expect((translated as Unavailable).cause).toBe(error);
    expect(outcomeOf(error, translate(error, true))).toBe(decisive);
  });

  test.each(['40001', '40P01', '23503', '23505', '23P01', '22001', '23502', '42601', '42P01', 'XX000'])(
    '%s stays as it is',
    (state) => {
      const error = ofPostgres(state);
      expect([translate(error, false), translate(error, true)]).toEqual([error, error]);
    },
  );

  test('that is a broken connection leaves the outcome of a commit unknown, and a fault of ours is none', () => {
    const broken = new Error('Connection terminated unexpectedly');
    expect([false, true].map((decisive) => outcomeOf(broken, translate(broken, decisive)))).toEqual([
      'unavailable',
      'unknown',
    ]);
    const fault = new TypeError('x is not a function');
    expect([translate(fault, false), translate(fault, true)]).toEqual([fault, fault]);
  });
});

describe('a start that fails at PostgreSQL', () => {
  const target = { redactedUrl: 'db:5432/cpn', host: 'db', port: 5432, database: 'cpn', user: 'ada' } as const;
  const explain = (error: unknown, tls: false | object = false) => explainStart(error, { ...target, tls });

  test.each<[string, unknown, string, 'passes' | 'lasts']>([
    ['a wrong password', ofPostgres('28P01'), 'put the correct one into PGPASSWORD', 'lasts'],
    [
      'no password',
      new Error('SASL: client password must be a string'),
      'put the correct one into PGPASSWORD',
      'lasts',
    ],
    ['an unknown user', ofPostgres('28000'), 'let ada in by pg_hba.conf', 'lasts'],
    ['no database', ofPostgres('3D000'), 'createdb --encoding UTF8', 'lasts'],
    ['no right', ofPostgres('42501'), 'make ada the owner of the database', 'lasts'],
    ['foreign tables', ofPostgres('42P07'), 'a database of its own', 'lasts'],
    ['a pooler', new Error('notifications do not arrive (LISTEN)'), 'a pooler in session mode', 'lasts'],
    ['a newer version', new Error('it has x, which this version of cpn does not have'), 'run that version', 'lasts'],
    ['no TLS', new Error('The server does not support SSL connections'), 'turn ssl on there', 'lasts'],
    ['another refusal', ofPostgres('42601'), 'see its log', 'lasts'],
    ['too many clients', ofPostgres('53300'), 'raise max_connections', 'passes'],
    ['a server that starts', ofPostgres('57P03'), 'see its log', 'passes'],
    ['a full disk', ofPostgres('53100'), 'see its log', 'passes'],
    ['no server', ofNode('ECONNREFUSED'), 'check that PostgreSQL runs there', 'passes'],
    ['no name', ofNode('ENOTFOUND'), 'check that PostgreSQL runs there', 'passes'],
    ['an altered name', ofNode('ERR_TLS_CERT_ALTNAME_INVALID'), 'check that PostgreSQL', 'lasts'],
    ['an old version of TLS', ofNode('ERR_SSL_UNSUPPORTED_PROTOCOL'), 'check that PostgreSQL', 'lasts'],
    ['a broken key', ofNode('ERR_OSSL_PEM_NO_START_LINE'), 'check that PostgreSQL', 'lasts'],
    ['an own certificate', ofNode('DEPTH_ZERO_SELF_SIGNED_CERT'), 'check that PostgreSQL', 'lasts'],
    ['an unknown issuer', ofNode('UNABLE_TO_GET_ISSUER_CERT_LOCALLY'), 'check that PostgreSQL', 'lasts'],
    ['no issuer', ofNode('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 'check that PostgreSQL', 'lasts'],
  ])('by %s says what to do, and whether it may pass', (_what, cause, remedy, kind) => {
    // The pool wraps what it gets; a host with several addresses has one error of each.
    for (const error of [cause, new Unavailable('the database does not answer', 1, cause)]) {
      const explained = explain(error);
      expect(explained.message).toContain('the database db:5432/cpn cannot be used');
      expect(explained.message).toContain((cause as Error).message);
      expect(explained.message).toContain(remedy);
      expect(explained.isRetryable).toBe(kind === 'passes');
    }
  });

  test('names the first of the addresses that failed, and with TLS the certificate too', () => {
    const all = new AggregateError([ofNode('ECONNREFUSED', 'refused at ::1'), ofNode('ECONNREFUSED', 'at 127.0.0.1')]);
    const explained = explain(all, {});
    expect(explained.message).toMatch(/refused at ::1; check the host, the port and the certificate/);
    expect(explained.isRetryable).toBe(true);
  });
});
