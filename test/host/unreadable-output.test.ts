import { describe, expect, it } from 'vitest';
import { CommandFailed, UnreadableOutput } from '../../src/core/errors/index.ts';
import { parseAddress } from '../../src/core/net/cidr.ts';
import { linuxHost } from '../../src/host/linux/linux-host.ts';
import type { Run } from '../../src/host/process/run.ts';

const shown = '[]\n[]\n[]\n[]\n';
const dump = `(none)\t(none)\t51820\toff\n`;

/** A host whose tools print these. */
function hostOf(printed: Readonly<Partial<Record<'ip' | 'wg' | 'nft', string>>>) {
  const all: Readonly<Record<string, string>> = { ip: shown, wg: dump, nft: '{"nftables":[]}', ...printed };
  const run: Run = async (tool) => all[tool] ?? '';
  return linuxHost(run);
}

const options = { link: 'cpn0', firewall: true, sysctls: [], hosts: false };

describe('output that cannot be parsed', () => {
  it.each([
    ['ip', '[]\n[]\n[{"dst":"10.0'],
    ['ip', '[]\n[{"dst":"10.0.0.0.0/8","dev":"eth0"}]\n[]\n[]\n'],
    ['wg', 'garbled\n'],
    ['wg', `${dump}not-a-key\t(none)\t(none)\t(none)\t0\t0\t0\toff\n`],
    ['nft', '{"nftables":'],
  ] as const)('of %s is no bad input of a user, and another try may succeed: %j', async (tool, text) => {
    await expect(hostOf({}).observe(options)).resolves.toMatchObject({ link: null });
    const error = await hostOf({ [tool]: text })
      .observe(options)
      .catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(UnreadableOutput);
    expect(error).toMatchObject({
      isRetryable: true,
      message: expect.stringMatching(`^the output of ${tool} cannot be`),
    });
  });

  it('is the same where a single fact is looked up', async () => {
    const ways = { forward: [], inbound: [] };
    await expect(hostOf({ wg: 'garbled' }).device('lo')).rejects.toThrow(UnreadableOutput);
    await expect(hostOf({ nft: '' }).foreignDrops('cpn0', ways)).rejects.toThrow(UnreadableOutput);
    await expect(hostOf({}).readRefused('cpn0')).rejects.toThrow(UnreadableOutput);
    await expect(hostOf({ ip: '[{' }).route(parseAddress('10.77.0.2'))).rejects.toThrow(
      'the output of ip cannot be parsed: it is not a list in JSON; cpn needs iproute2 4.20 or newer',
    );
  });
});

describe('a WireGuard in user space that ends while it answers', () => {
  const failing = (...messages: readonly string[]) => {
    let calls = 0;
    const run: Run = async (tool) => {
      if (tool !== 'wg') return tool === 'ip' ? shown : '{"nftables":[]}';
      calls += 1;
      const message = messages[calls - 1];
      if (message === undefined) return dump;
      throw new CommandFailed('wg show cpn0 dump', 1, `Unable to access interface: ${message}`);
    };
    return { host: linuxHost(run), calls: () => calls };
  };

  it('is read once more, and is gone then', async () => {
    const { host, calls } = failing('Protocol error', 'No such device');
    await expect(host.observe(options)).resolves.toMatchObject({ device: null });
    expect(calls()).toBe(2);
  });

  it('is a failure where that goes on', async () => {
    const { host, calls } = failing('Protocol error', 'Protocol error');
    await expect(host.observe(options)).rejects.toThrow('Protocol error');
    expect(calls()).toBe(2);
  });
});
