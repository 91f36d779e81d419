import { describe, expect, test } from 'vitest';
import { InvalidValue } from '../../../../src/core/errors/index.ts';
import { parseRouteGet } from '../../../../src/host/linux/ip/route-get.ts';

/** Printed by iproute2 6.1.0 for `route get` and `route get fibmatch`. */
const got =
  '[{"type":"1","dst":"192.168.60.1","gateway":"203.0.113.1","dev":"eth0","table":"254","prefsrc":"203.0.113.22","flags":[],"uid":0,"cache":[]}]';
const matched =
  '[{"type":"1","dst":"192.168.60.0/24","table":"254","protocol":"3","scope":"0","flags":[],"nexthops":[{"dev":"cpn0","weight":1,"flags":[]},{"gateway":"203.0.113.1","dev":"eth0","weight":1,"flags":[]}]}]';

describe('parseRouteGet', () => {
  test('takes the link that the kernel chose of a multipath route', () => {
    expect(parseRouteGet(`${got}\n${matched}\n`)).toEqual({
      link: 'eth0',
      local: false,
      source: '203.0.113.22',
      gateway: '203.0.113.1',
      table: 'main',
      prefix: '192.168.60.0/24',
      protocol: 'boot',
    });
  });

  test.each([
    ['one line', `${got}\n`],
    ['no JSON', `${got}\nRTNETLINK\n`],
    ['no link', `${matched}\n${matched}\n`],
    ['no prefix', `${got}\n[{"type":"1"}]\n`],
  ])('refuses %s', (_, text) => {
    expect(() => parseRouteGet(text)).toThrow(InvalidValue);
  });
});
