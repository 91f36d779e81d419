import { describe, expect, test } from 'vitest';
import { resolvePath } from '../../../src/api/http/target.ts';
import { InvalidValue } from '../../../src/core/errors/index.ts';

const root = new URL('https://cp.example.net');
const deep = new URL('https://cp.example.net/tenant/a');

describe('a path below a base address', () => {
  test.each([
    ['/api/networks', '/api/networks'],
    ['api/networks', '/api/networks'],
    ['/api/networks?page=2&x=a%20b', '/api/networks?page=2&x=a%20b'],
    ['/api/zone/ü', '/api/zone/%C3%BC'],
    ['/api/./a/../b', '/api/b'],
    ['/', '/'],
    ['?a=1', '/?a=1'],
    ['/a//b', '/a//b'],
    ['/a:b@c', '/a:b@c'],
  ])('%s', (given, path) => {
    expect(resolvePath(root, given)).toBe(path);
    expect(resolvePath(deep, given)).toBe(path);
  });

  test.each([
    ['https://evil.example/x'],
    ['HTTP://cp.example.net/x'],
    ['file:///etc/passwd'],
    ['//evil.example/x'],
    ['/\\evil.example/x'],
    ['\\\\evil.example/x'],
    ['/a\\..\\b'],
    ['/a b'],
    ['/a\nb'],
    ['/a\u0000b'],
    ['/a#b'],
  ])('is not %j', (given) => {
    for (const base of [root, deep]) expect(() => resolvePath(base, given)).toThrow(InvalidValue);
  });

  test.each(['/../b/x', '/..', '/%2e%2e/b', '/x/../../b', '../../x', '/.%2E/b/'])(
    'is not %j, which leads out',
    (given) => {
      expect(() => resolvePath(deep, given)).toThrow('leads out of the base address');
    },
  );

  test('shows no query when it is wrong', () => {
    expect(() => resolvePath(root, '/a b?token=canary')).toThrow(expect.not.stringContaining('canary'));
  });
});
