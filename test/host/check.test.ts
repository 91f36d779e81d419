import { describe, expect, test, vi } from 'vitest';
import { Machine } from './machine.ts';
import { hide } from './steps.ts';

vi.setConfig({ testTimeout: 60_000 });

/** As nft 0.9.3 does, which is that of Ubuntu 20.04. */
const olderNft = `#!/bin/sh
if grep -q "ip prefix to"; then echo "/dev/stdin:4:13-18: Error: syntax error, unexpected prefix" >&2; exit 1; fi
`;

describe('check', () => {
  test('passes where nothing is missing', async () => {
    await using machine = await Machine.start();
    await machine.host.check({ firewall: true });
  });

  test('fails without CAP_NET_ADMIN, even for root', async () => {
    await using machine = await Machine.start('setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin');
    await expect(machine.host.check({ firewall: false })).rejects.toMatchObject({ name: 'MissingPrivilege' });
  });

  test.each([
    ['wg', false, 'wireguard-tools'],
    ['ip', false, 'iproute2'],
    ['nft', true, 'nftables'],
  ])('fails without %s where it is not executable', async (tool, firewall, debianPackage) => {
    await using machine = await Machine.start();
    await machine.sh(`${hide(tool)}`);
    await expect(machine.host.check({ firewall })).rejects.toMatchObject({
      name: 'MissingTool',
      message: expect.stringContaining(`${tool} was not found on this host; install it: apt install ${debianPackage}`),
    });
  });

  test('fails where nft cannot map prefixes, and loads nothing to find out', async () => {
    await using machine = await Machine.start();
    await machine.host.check({ firewall: true, maps: true });
    expect(await machine.sh('nft list tables')).toBe('');
    await machine.sh(
      `printf '%s' '${olderNft}' >/run/older-nft; chmod +x /run/older-nft; ${hide('nft', '/run/older-nft')}`,
    );
    await machine.host.check({ firewall: true });
    await expect(machine.host.check({ firewall: true, maps: true })).rejects.toMatchObject({
      name: 'MapsUnsupported',
      message: expect.stringMatching(/^nft on this host cannot map prefixes 1:1: .*prefix.*; --map needs nft 0\.9\.5/),
    });
  });

  test('needs no nft without a firewall', async () => {
    await using machine = await Machine.start();
    await machine.sh(`${hide('nft')}`);
    await machine.host.check({ firewall: false });
  });
});
