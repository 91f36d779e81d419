import { expect, it } from 'vitest';
import { readSysctls, writeSysctl } from '../../../src/host/linux/sysctl.ts';

it('a setting that the kernel lacks is left out, and one that cannot be read is an error', async () => {
  const known = await readSysctls(['net.ipv4.ip_forward', 'net.ipv4.conf.no-such-link.forwarding']);
  expect(known).toEqual({ 'net.ipv4.ip_forward': expect.stringMatching(/^[01]$/) });
  await expect(readSysctls(['net.ipv4.route.flush'])).rejects.toMatchObject({
    name: 'CommandFailed',
    message: expect.stringContaining('/proc/sys/net/ipv4/route/flush'),
  });
});

it.each(['kernel.hostname', 'net', 'net..x', 'net.ipv4.../../kernel/x', 'net.ipv4.ip_forward ', 'net/ipv4'])(
  'no setting is called %j',
  async (key) => {
    await expect(readSysctls([key])).rejects.toThrow('is not a sysctl of the network');
    await expect(writeSysctl(key, '1')).rejects.toThrow('is not a sysctl of the network');
  },
);
