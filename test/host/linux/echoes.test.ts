import { expect, it } from 'vitest';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { parseAddress } from '../../../src/core/net/cidr.ts';
import { linuxHost } from '../../../src/host/linux/linux-host.ts';
import type { ToolOptions } from '../../../src/host/process/run-options.ts';

it('sends echoes that must not be fragmented', async () => {
  const host = linuxHost();
  const here = parseAddress('127.0.0.1');
  expect(await host.probeSize(here, { bytes: 1400, count: 2 }, 1_000)).toBe(true);
  // As large as loopback's MTU allows.
  expect(await host.probeSize(here, { bytes: 65_535, count: 1 }, 1_000)).toBe(true);
  expect(await host.probeSize(here, { bytes: 1400, count: 1, mark: 0xca6c }, 1_000)).toBe(true);
  expect(await host.probeSize(parseAddress('::1'), { bytes: 65_535 + 40, count: 1 }, 200)).toBe(false);
});

it('gives echoes the mark of WireGuard packets, where there is one', async () => {
  const args: (readonly string[])[] = [];
  const host = linuxHost(async (_, given) => {
    args.push(given);
    return '';
  });
  for (const mark of [{}, { mark: 0xca6c }]) {
    await host.probeSize(parseAddress('192.0.2.1'), { bytes: 1400, count: 1, ...mark }, 1_000);
  }
  expect(args.map((given) => given.join(' ').match(/ -m \d+/)?.[0])).toEqual([undefined, ' -m 51820']);
});

it.each([
  ['192.0.2.1', 28],
  ['2001:db8::1', 48],
])(
  'gives echoes to %s their whole size, %i bytes of it headers, and ping the time for all of them',
  async (to, headers) => {
    const calls: [readonly string[], number | undefined][] = [];
    const host = linuxHost(async (_, args, { deadlineMs } = {}) => {
      calls.push([args, deadlineMs]);
      return '';
    });
    await host.probeSize(parseAddress(to), { bytes: 1400, count: 5 }, 1_500);
    const [args = [], deadlineMs = 0] = calls[0] ?? [];
    const wordAfter = (flag: string) => args[args.indexOf(flag) + 1];
    expect(['-s', '-c', '-W', '-M', '-Q'].map(wordAfter)).toEqual([`${1400 - headers}`, '5', '1.5', 'do', '0x04']);
    // Five echoes at intervals, and the wait for the last one.
    expect(deadlineMs).toBeGreaterThan(4 * Number(wordAfter('-i')) * 1000 + 1_500);
    expect(args.at(-1)).toBe(to);
  },
);

it('allows only echoes to exceed the MTU of the interface, and removes their routes', async () => {
  const inputs: ToolOptions['input'][] = [];
  let fails = false;
  const host = linuxHost(async (tool, _, { input } = {}) => {
    inputs.push(input);
    if (fails) throw new CommandFailed(tool, 1, 'Cannot find device "cpn0"');
    return '';
  });
  const narrow = await host.raiseProbeMtu('cpn0', [parseAddress('10.77.0.2'), parseAddress('10.77.0.3')], 1420);
  expect(inputs).toEqual([
    'route replace 10.77.0.2/32 tos 0x04 dev cpn0 proto 157 mtu 1420\nroute replace 10.77.0.3/32 tos 0x04 dev cpn0 proto 157 mtu 1420\n',
  ]);
  // The interface went meanwhile.
  fails = true;
  await narrow();
  expect(inputs[1]).toBe(
    'route delete 10.77.0.2/32 tos 0x04 dev cpn0 proto 157\nroute delete 10.77.0.3/32 tos 0x04 dev cpn0 proto 157\n',
  );
  await expect(host.raiseProbeMtu('cpn0', [], 1420)).rejects.toBeInstanceOf(CommandFailed);
});
