import { describe, expect, test, vi } from 'vitest';
import { Machine } from './machine.ts';
import { hide } from './steps.ts';

vi.setConfig({ testTimeout: 60_000 });

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

  test('needs no nft without a firewall', async () => {
    await using machine = await Machine.start();
    await machine.sh(`${hide('nft')}`);
    await machine.host.check({ firewall: false });
  });
});
