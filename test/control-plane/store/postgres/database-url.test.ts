import { describe, expect, test } from 'vitest';
import { type DatabaseTarget, parseDatabaseUrl } from '../../../../src/control-plane/store/postgres/database-url.ts';
import { describeUnfit } from '../../../../src/control-plane/store/postgres/store.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../../../src/core/errors/index.ts';

const parse = (url: string) => parseDatabaseUrl(new Secret(url));

describe('the URL of a database', () => {
  test.each<[string, Partial<DatabaseTarget>]>([
    ['postgres://cpn@127.0.0.1/net', { redactedUrl: '127.0.0.1:5432/net', host: '127.0.0.1', user: 'cpn', tls: false }],
    ['postgresql://localhost:5433/net', { redactedUrl: 'localhost:5433/net', port: 5433, tls: false }],
    ['postgres://cpn@[::1]/net', { redactedUrl: '[::1]:5432/net', host: '::1', tls: false }],
    ['postgres:///net?host=/run/postgresql&user=cpn', { host: '/run/postgresql', user: 'cpn', tls: false }],
    ['postgres:///net?host=/run/postgresql&port=5433', { redactedUrl: '/run/postgresql:5433/net', port: 5433 }],
    ['postgres://a%40b@db.example.net/n%2Dt', { user: 'a@b', database: 'n-t', tls: {} }],
    ['postgres://db.example.net/net?sslmode=verify-full&sslrootcert=/ca.pem', { tls: { ca: '/ca.pem' } }],
    ['postgres://127.0.0.1/net?sslmode=verify-full', { tls: {} }],
    ['postgres://db.example.net/net?sslmode=disable', { tls: false }],
  ])('%s', (url, expected) => {
    const target = parse(url);
    expect(target).toMatchObject(expected);
    expect(target.password).toBeUndefined();
  });

  test('may hold a password, which nothing shows', () => {
    const target = parse('postgres://cpn:p%40ss@127.0.0.1/net');
    expect(target.password?.reveal()).toBe('p@ss');
    expect(JSON.stringify(target)).not.toContain('p@ss');
  });

  test.each([
    ['', 'is not a PostgreSQL URL'],
    ['mysql://cpn:canary@host/net', 'is not a PostgreSQL URL'],
    ['postgres://cpn:canary@/net', 'is not a PostgreSQL URL'],
    ['postgres:///net?user=canary', 'names no host'],
    ['postgres://cpn:canary@host', 'names no database'],
    ['postgres://cpn:canary@host/net/other', 'names no database'],
    ['postgres://cpn:canary@host/net?port=0', 'has no port from 1 to 65535'],
    ['postgres://host/net?password=canary', 'has its password in a parameter'],
    ['postgres://cpn:canary@host/net?sslmod=verify-full', 'has a parameter that is not one of'],
    ['postgres://cpn:canary@host/net?sslmode=prefer', 'has an sslmode that is neither verify-full nor disable'],
    ['postgres://cpn:canary@127.0.0.1/net?sslrootcert=/ca.pem', 'names certificates, and no sslmode=verify-full'],
    ['postgres://%zz:canary@host/net', 'has a broken % escape'],
  ])('%s is refused without being shown', (url, rule) => {
    expect(() => parse(url)).toThrow(InvalidValue);
    expect(() => parse(url)).toThrow(new RegExp(`^--database ${rule}.*; write postgres://`));
    expect(() => parse(url)).not.toThrow(/canary/);
  });
});

describe('a server', () => {
  const fit = { version: 150_012, encoding: 'UTF8', readOnly: 'off' };

  test.each([
    ['of now', fit, null],
    ['that is too old', { ...fit, version: 90_624 }, /PostgreSQL 9, which is too old; upgrade it to PostgreSQL 14/],
    ['of the oldest version that will do', { ...fit, version: 140_000 }, null],
    ['of another encoding', { ...fit, encoding: 'SQL_ASCII' }, /its encoding is SQL_ASCII; .*UTF8/],
    ['that is a standby', { ...fit, readOnly: 'on' }, /read-only; name the primary/],
  ])('%s', (_, facts, problem) => {
    const found = describeUnfit(facts);
    if (problem === null) expect(found).toBeNull();
    else expect(found?.join('; ')).toMatch(problem);
  });
});
