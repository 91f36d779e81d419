import { describe, expect, test } from 'vitest';
import { type Call, compose, userAgent } from '../../../src/api/http/attempt.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';

const call = (fields: Partial<Call> = {}): Call => {
  return { what: 'a call', method: 'GET', path: '/api/x', repeatable: true, answered: true, ...fields };
};
const usual = { accept: 'application/json', 'accept-encoding': 'gzip', 'user-agent': userAgent };

describe('the request of a call', () => {
  test('has the base path before its own, and no more than it needs', () => {
    expect(compose(call(), '/vpn', 0)).toEqual({ method: 'GET', path: '/vpn/api/x', headers: usual, body: null });
  });

  test('has its token, its JSON and their types', () => {
    expect(compose(call({ method: 'POST', bearer: new Secret('t'), json: { a: 1 } }), '', 0)).toEqual({
      ...{ method: 'POST', path: '/api/x', body: '{"a":1}' },
      headers: { ...usual, authorization: 'Bearer t', 'content-type': 'application/json' },
    });
  });

  test('opens its content again for each attempt, with the headers of the content', () => {
    let opened = 0;
    const open = () => {
      opened += 1;
      return `body ${opened}`;
    };
    const content = { headers: { 'content-type': 'text/csv' }, open };
    const bodies = [1, 2].map(() => compose(call({ content }), '', 0));
    expect(bodies.map(({ body, headers }) => [body, headers['content-type']])).toEqual([
      ['body 1', 'text/csv'],
      ['body 2', 'text/csv'],
    ]);
  });

  test('has its own headers before the usual ones', () => {
    const headers = { accept: 'text/csv', 'user-agent': 'x', 'if-none-match': '"1"' };
    expect(compose(call({ headers }), '', 0).headers).toEqual({ ...usual, ...headers });
  });

  test.each([
    [{ seconds: 20 }, 0, 'wait=20'],
    [{ seconds: 20 }, 1, 'wait=20'],
    [{ seconds: 20 }, 8_000, 'wait=12'],
    [{ seconds: 20 }, 8_001, 'wait=12'],
    [{ seconds: 20 }, 19_999, 'wait=1'],
    [{ seconds: 20 }, 20_000, 'wait=0'],
    [{ seconds: 20 }, 90_000, 'wait=0'],
    [{ seconds: 0 }, 0, 'wait=0'],
    [{ seconds: null }, 0, undefined],
    [undefined, 0, undefined],
  ])('that may wait %j has after %i ms the preference %s', (wait, elapsedMs, prefer) => {
    expect(compose(call(wait && { wait }), '', elapsedMs).headers.prefer).toBe(prefer);
  });

  test.each(['', ' ', 'a b', 'a\r\nb', 'ä', '\u007f'])(
    'is none with the token %j, which it does not repeat',
    (token) => {
      const refused = () => compose(call({ bearer: new Secret(token) }), '', 0);
      expect(refused).toThrow(InvalidValue);
      if (token.trim() !== '') expect(refused).toThrow(expect.not.stringContaining(token));
    },
  );
});
