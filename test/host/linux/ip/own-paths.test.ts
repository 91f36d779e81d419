import { expect, it } from 'vitest';
import { parseAddress } from '../../../../src/core/net/cidr.ts';
import { readPaths, renderPaths } from '../../../../src/host/linux/ip/own-paths.ts';

const addresses = ['203.0.113.1', '198.51.100.1', '2001:db8::1'].map((each) => parseAddress(each));

it('the path of own packets is interface, gateway and source, or the refusal of the kernel', () => {
  expect(renderPaths(addresses)).toEqual(addresses.map((each) => `route get ${each}`));
  // As iproute2 6.1 prints them.
  const direct =
    '[{"type":"1","dst":"203.0.113.1","dev":"ppp0","table":"254","prefsrc":"192.0.2.31","flags":[],"uid":0}]';
  const six =
    '[{"dst":"2001:db8::1","gateway":"fe80::1","dev":"eth1","prefsrc":"2001:db8::9","metric":1024,"flags":[]}]';
  const answers = [{ json: direct }, { refusal: 'Network is unreachable' }, { json: six }];
  expect(readPaths(addresses, answers)).toEqual({
    '203.0.113.1': 'ppp0 - 192.0.2.31',
    '198.51.100.1': 'Network is unreachable',
    '2001:db8::1': 'eth1 fe80::1 2001:db8::9',
  });
});
