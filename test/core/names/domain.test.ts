import { describe, expect, test } from 'vitest';
import { parseDomain } from '../../../src/core/names/domain.ts';

const label = 'a'.repeat(63);
/** A name of so many characters, in labels of 63. */
const nameOf = (length: number) => `${`${label}.`.repeat(3)}${'b'.repeat(length - 192)}`;

describe('a domain', () => {
  test.each([
    ['corp.example', 'corp.example'],
    ['Corp.EXAMPLE.', 'corp.example'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['BÜCHER.example.', 'xn--bcher-kva.example'],
    ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['a_b.corp.example', 'a_b.corp.example'],
    ['1.corp.example', '1.corp.example'],
    ['50.168.192.in-addr.arpa', '50.168.192.in-addr.arpa'],
    ['latest.example', 'latest.example'],
    [`${label}.example`, `${label}.example`],
    [nameOf(253), nameOf(253)],
    [`${nameOf(253)}.`, nameOf(253)],
  ])('%s is %s', (text, domain) => {
    expect(parseDomain(text)).toBe(domain);
  });

  test.each([
    ['', 'is no domain'],
    ['.', 'is no domain'],
    ['corp', 'has one label'],
    ['bücher', 'has one label'],
    ['localhost', 'ends in "localhost", which is reserved'],
    ['web.localhost', 'ends in "localhost", which is reserved'],
    ['printer.ONION.', 'ends in "onion", which is reserved'],
    ['büro.test', 'ends in "test", which is reserved'],
    ['local', 'has one label'],
    ['a.invalid', 'ends in "invalid", which is reserved'],
    ['a.onion', 'ends in "onion", which is reserved'],
    ['a.test', 'ends in "test", which is reserved'],
    [`${label}a.example`, 'is no domain'],
    [`${'ü'.repeat(60)}.example`, 'is no domain'],
    [nameOf(254), 'is no domain'],
    ['corp..example', 'is no domain'],
    ['.corp.example', 'is no domain'],
    ['corp.example..', 'is no domain'],
    ['-corp.example', 'is no domain'],
    ['corp-.example', 'is no domain'],
    ['_corp.example', 'is no domain'],
    ['*.corp.example', 'is a wildcard; write corp.example, which includes all names below it'],
    ['*.*.example', 'is a wildcard; write a domain such as corp.example'],
    ['https://corp.example/x', 'is a URL; write corp.example, which'],
    ['https://bücher.example', 'is a URL; write bücher.example, which'],
    ['https://192.168.50.53', 'is a URL; write a domain such as corp.example'],
    ['https://', 'is a URL; write a domain such as corp.example'],
    ['corp.example:53', 'has a port; write corp.example, which'],
    ['fd00::53', 'is an address; write a domain such as corp.example'],
    ['corp example', 'is no domain'],
    ['ü/corp.example', 'is no domain'],
    ['ü%2ecorp.example', 'is no domain'],
    ['192.168.50.53', 'is an address; write a domain such as corp.example'],
    ['１２７.１', 'is no domain'],
    ['a.0x7f', 'is no domain'],
  ])('%j %s', (text, rule) => {
    expect(() => parseDomain(text, 'domains')).toThrow(
      `domains ${JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text)} ${rule}`,
    );
  });
});
