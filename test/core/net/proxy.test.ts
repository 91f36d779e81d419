import { describe, expect, it } from 'vitest';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import {
  dialledHost,
  findEnvironmentProxy,
  isExcluded,
  isSameProxy,
  parseProxy,
  proxyOf,
  revealProxy,
} from '../../../src/core/net/proxy.ts';

const service = 'https://cp.example.net';

describe('the URL of a proxy', () => {
  it.each([
    ['http://proxy:3128', 'http://proxy:3128'],
    ['proxy:3128', 'http://proxy:3128'],
    ['https://proxy.example', 'https://proxy.example:443'],
    ['http://[2001:db8::1]:8080/', 'http://[2001:db8::1]:8080'],
    ['http://user:p%40ss@proxy:3128', 'http://proxy:3128'],
  ])('%s is %s in messages', (text, url) => {
    expect(parseProxy(text, '--proxy').url).toBe(url);
  });

  it.each([
    ['http://user:p%40ss%3A%2F@proxy:3128', 'user:p@ss:/'],
    ['http://user@proxy:3128', 'user:'],
  ])('%s comes back whole, and decoded for the proxy', (text, credentials) => {
    const proxy = parseProxy(text, '--proxy');
    expect(proxy.credentials?.reveal()).toBe(credentials);
    expect(parseProxy(revealProxy(proxy), '--proxy').credentials?.reveal()).toBe(credentials);
    expect(JSON.stringify(proxy)).not.toContain('ss');
  });

  it.each([
    'socks5://user:hunter2@proxy',
    'http://user:hunter2@',
    'http://user:hunter2@proxy/path',
    'http://u:hunter2%@p',
  ])('%s is refused without its password', (text) => {
    expect(() => parseProxy(text, 'HTTPS_PROXY')).toThrow(InvalidValue);
    expect(() => parseProxy(text, 'HTTPS_PROXY')).toThrow(/^HTTPS_PROXY (?!.*hunter2)/);
  });
});

describe('the proxy that the environment names', () => {
  it.each([
    ['https', { HTTPS_PROXY: 'http://a:1', HTTP_PROXY: 'http://b:1' }, 'HTTPS_PROXY'],
    ['https', { HTTPS_PROXY: 'http://a:1', https_proxy: 'http://b:1' }, 'https_proxy'],
    ['http', { HTTPS_PROXY: 'http://a:1', HTTP_PROXY: 'http://b:1' }, 'HTTP_PROXY'],
    ['https', { HTTPS_PROXY: 'http://a:1', https_proxy: '' }, undefined],
    ['https', { HTTP_PROXY: 'http://a:1', ALL_PROXY: 'http://a:1' }, undefined],
    ['https', { HTTPS_PROXY: 'http://a:1', NO_PROXY: 'example.net' }, undefined],
    ['https', { HTTPS_PROXY: 'http://a:1', NO_PROXY: 'example.net', no_proxy: 'other' }, 'HTTPS_PROXY'],
  ])('%s by %o: %s', (scheme, environment, from) => {
    expect(findEnvironmentProxy(`${scheme}://cp.example.net`, environment)?.from).toBe(from);
  });

  it('is none for a control plane on this host, even where --proxy names one', () => {
    const proxy = parseProxy('http://a:1', '--proxy');
    for (const url of ['http://127.0.0.1:8787', 'http://localhost:8787', 'https://[::1]']) {
      expect(findEnvironmentProxy(url, { HTTP_PROXY: 'http://a:1', HTTPS_PROXY: 'http://a:1' })).toBeNull();
      expect(proxyOf({ url, insecureHttp: false, proxy })).toBeNull();
    }
  });

  it.each([
    ['cp.example.net', true],
    ['example.net', true],
    ['.example.net', true],
    ['*.example.net', true],
    ['*.cp.example.net', false],
    ['ample.net', false],
    ['other, CP.Example.NET.', true],
    ['cp.example.net:443', true],
    ['cp.example.net:8443', false],
    ['*', true],
    ['*:80', false],
    ['10.0.0.0/8', false],
    ['', false],
  ])('NO_PROXY=%s: %s for https://cp.example.net', (list, excluded) => {
    expect(isExcluded(service, list)).toBe(excluded);
  });

  it.each([
    ['https://10.1.2.3', '10.0.0.0/8', true],
    ['https://10.1.2.3', '10.1.2.9/8', true],
    ['https://10.1.2.3', '10.1.2.3:443', true],
    ['https://10.1.2.3', '.2.3', false],
    ['https://10.1.2.3', '11.0.0.0/8,10.0.0.0/99', false],
    ['https://[2001:db8::1]', '2001:DB8:0::1', true],
    ['https://[2001:db8::1]:8443', '[2001:db8::1]:8443', true],
    ['https://[2001:db8::1]:8443', '[2001:db8::1]:443', false],
    ['https://[2001:db8::1]', '2001:db8::/32', true],
  ])('%s with NO_PROXY=%s: %s', (url, list, excluded) => {
    expect(isExcluded(url, list)).toBe(excluded);
  });
});

it('what is dialled is the proxy where there is one', () => {
  const proxy = parseProxy('http://user:x@[2001:db8::5]:3128', '--proxy');
  expect(dialledHost({ url: service, insecureHttp: false, proxy })).toBe('2001:db8::5');
  expect(dialledHost({ url: service, insecureHttp: false, proxy: 'none' })).toBe('cp.example.net');
  expect(dialledHost({ url: service, insecureHttp: false })).toBe('cp.example.net');
});

it('two proxies are the same with the same URL and the same credentials', () => {
  const proxy = (text: string | null) => (text === null ? null : parseProxy(text, '--proxy'));
  const same = (one: string | null, other: string | null) => isSameProxy(proxy(one), proxy(other));
  expect(same('http://proxy.example', 'proxy.example:80')).toBe(true);
  expect(same('http://me:a@proxy.example', 'http://me:a@proxy.example')).toBe(true);
  expect(same('http://me:a@proxy.example', 'http://me:b@proxy.example')).toBe(false);
  expect(same('http://me:a@proxy.example', 'http://proxy.example')).toBe(false);
  expect(same('http://proxy.example', 'https://proxy.example')).toBe(false);
  expect(same('http://proxy.example', null)).toBe(false);
  expect(same(null, null)).toBe(true);
});
