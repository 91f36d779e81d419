import { describe, expect, test } from 'vitest';
import { CommandFailed, InvalidValue } from '../../../../src/core/errors/index.ts';
import { parseAddress } from '../../../../src/core/net/cidr.ts';
import { getRoute, parseRouteGet } from '../../../../src/host/linux/ip/route-get.ts';
import type { Run } from '../../../../src/host/process/run.ts';

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

  test.each([
    ['2', true],
    ['1', false],
  ])('of type %s leads to this host itself: %s', (type, local) => {
    expect(parseRouteGet(`${got.replace('"type":"1"', `"type":"${type}"`)}\n${matched}\n`)).toMatchObject({ local });
  });

  test.each([
    ['10.9.0.1', '0.0.0.0/0'],
    ['2001:db8::1', '::/0'],
  ])('gives the default route of the family of %s', (address, prefix) => {
    const path = `[{"dst":"${address}","dev":"eth0"}]`;
    expect(parseRouteGet(`${path}\n[{"dst":"default"}]\n`)).toMatchObject({ prefix, table: 'main', protocol: 'boot' });
  });
});

describe('getRoute', () => {
  test.each([
    ['Network is unreachable', 'none'],
    ['No route to host', 'unreachable'],
    ['Permission denied', 'prohibit'],
    ['Invalid argument', 'blackhole'],
  ])('has a reason for a refusal with %j', async (error, why) => {
    const refuse = async () => {
      throw new CommandFailed('ip', 2, `RTNETLINK answers: ${error}`);
    };
    expect(await getRoute(refuse, parseAddress('10.9.0.1'))).toEqual({ link: null, why });
  });

  test('passes on any other failure, and queries with source and mark', async () => {
    const inputs: unknown[] = [];
    const fail: Run = async (_tool, _args, options) => {
      inputs.push(options?.input);
      throw new CommandFailed('ip', 1, 'Cannot open netlink socket');
    };
    const packet = { source: parseAddress('10.77.0.5'), mark: 7 };
    await expect(getRoute(fail, parseAddress('10.9.0.1'), packet)).rejects.toThrow('Cannot open netlink socket');
    const query = '10.9.0.1 from 10.77.0.5 mark 7';
    expect(inputs).toEqual([`route get ${query}\nroute get fibmatch ${query}\n`]);
  });
});
