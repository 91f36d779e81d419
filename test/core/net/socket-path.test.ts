import { describe, expect, test } from 'vitest';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { dialledHost, findEnvironmentProxy, proxyOf } from '../../../src/core/net/proxy.ts';
import { baseOf, isCheckedByListener, parseServiceAddress } from '../../../src/core/net/service-address.ts';
import { parseSocketAddress } from '../../../src/core/net/socket-path.ts';

const url = 'unix:/run/cp/api.sock';

describe('the address of a Unix socket', () => {
  test.each([url, 'unix:///run/cp/api.sock', 'UNIX:/run/cp/api.sock'])('%s', (text) => {
    expect(parseServiceAddress(text, false)).toEqual({ url, insecureHttp: false });
  });

  test.each([
    ['unix:', 'has no absolute path'],
    ['unix:api.sock', 'has no absolute path'],
    ['unix://run/api.sock', 'has "//"'],
    ['unix:/run/', 'ends with "/"'],
    ['unix:/', 'ends with "/"'],
    ['unix:/run/../api.sock', '".."'],
    ['unix:/run/./api.sock', '"."'],
    ['unix:/run/..', '".."'],
    ['unix:/run/a b', 'other characters'],
    ['unix:/run/a?b', 'other characters'],
    ['unix:/run/a\u0000b', 'other characters'],
    ['unix:/run/a\nb', 'other characters'],
    [`unix:/${'x'.repeat(107)}`, 'more than 107 bytes'],
  ])('is refused as %j', (text, rule) => {
    expect(() => parseSocketAddress('--listen', text)).toThrow(InvalidValue);
    expect(() => parseSocketAddress('--listen', text)).toThrow(rule);
    expect(() => parseServiceAddress(text, true)).toThrow(rule);
  });

  test('may have the longest path that the kernel takes', () => {
    expect(parseSocketAddress('--listen', `unix:/${'x'.repeat(106)}`)).toHaveLength(107);
  });

  test('is on this host: no proxy, no name to resolve, and its owner is checked', () => {
    const proxy = { url: 'http://proxy:3128', credentials: null, from: '--proxy' };
    const service = { url, insecureHttp: false, proxy };
    expect(proxyOf(service)).toBeNull();
    expect(findEnvironmentProxy(url, { http_proxy: 'http://proxy:3128' })).toBeNull();
    expect(dialledHost(service)).toBe('127.0.0.1');
    expect(baseOf(service).href).toBe('http://localhost/');
    expect(isCheckedByListener(url)).toBe(true);
  });
});
