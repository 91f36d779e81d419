import { expect, it } from 'vitest';
import {
  allForwardingKey,
  commonFilterKey,
  forwardingKey,
  isForwardingKey,
  isStrict,
  sourceFilterKey,
} from '../../../src/core/host-state/sysctl-keys.ts';

it('forwarding is the key of one interface or of all, also of an interface with a dot', () => {
  expect(forwardingKey('eth0.7')).toBe('net.ipv4.conf.eth0/7.forwarding');
  for (const key of [allForwardingKey, forwardingKey('eth0'), forwardingKey('eth0.7')])
    expect(isForwardingKey(key), key).toBe(true);
  for (const key of [sourceFilterKey('eth0'), commonFilterKey, 'net.ipv6.conf.eth0.forwarding'])
    expect(isForwardingKey(key), key).toBe(false);
});

it.each([
  // An interface gets the value of `default`, which is 1 on many hosts, when it is created.
  [undefined, undefined, true],
  [undefined, '0', true],
  [undefined, '2', false],
  ['0', undefined, false],
  ['0', '0', false],
  ['0', '1', true],
  ['1', '0', true],
  ['1', '2', false],
  ['2', '1', false],
])('the greater value decides whether the filter is strict: %s of the interface, %s of all', (own, all, strict) => {
  const key = sourceFilterKey('cpn0');
  const sysctls = { ...(own !== undefined && { [key]: own }), ...(all !== undefined && { [commonFilterKey]: all }) };
  expect(isStrict(key, sysctls)).toBe(strict);
});
