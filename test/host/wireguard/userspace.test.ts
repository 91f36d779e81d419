import { describe, expect, test, vi } from 'vitest';
import { Machine } from '../machine.ts';
import { address, configure, create, destroy, hide, question, startTunnel } from '../steps.ts';

vi.setConfig({ testTimeout: 60_000 });

describe('WireGuard in user space', () => {
  test('stays up after Ctrl-C and the end of the process that started it', async () => {
    await using machine = await startTunnel();
    await machine.interrupt();
    const { link, device } = await machine.host.observe(question);
    expect(link?.addresses).toContainEqual(address);
    expect(device).not.toBeNull();
  });

  test('is restarted after it was killed, although its socket is left', async () => {
    await using machine = await startTunnel();
    await machine.sh(
      'kill -KILL $(pgrep -x wireguard-go); while ip link show cpn0 2>/dev/null; do :; done; test -S /run/wireguard/cpn0.sock',
    );
    expect(await machine.host.observe(question)).toMatchObject({ link: null, device: null });
    await machine.host.apply(create);
    expect((await machine.host.observe(question)).device).toMatchObject({ peers: [] });
    await machine.host.apply(destroy);
    expect(await machine.sh('ls /run/wireguard')).toBe('');
  });

  test('leaves no stale socket when the link went with the program', async () => {
    await using machine = await startTunnel();
    await machine.sh(
      'kill -KILL $(pgrep -x wireguard-go); while ip link show cpn0 2>/dev/null; do :; done; test -S /run/wireguard/cpn0.sock',
    );
    await machine.host.apply(destroy);
    expect(await machine.sh('ls /run/wireguard')).toBe('');
  });

  test('of another network namespace is neither used nor changed', async () => {
    await using machine = await Machine.start();
    expect(await machine.host.foreignSocket('cpn0')).toBeNull();
    const socket = await machine.sh('unshare --net wireguard-go cpn0 2>/dev/null; ls -i /run/wireguard');
    expect(await machine.host.foreignSocket('cpn0')).toBe('/var/run/wireguard/cpn0.sock');
    expect(await machine.host.foreignSocket('cpn1')).toBeNull();
    expect(await machine.host.observe(question)).toMatchObject({ link: null, device: null });
    await expect(machine.host.apply(create)).rejects.toMatchObject({ name: 'NotOurs' });
    await machine.host.apply(destroy);
    expect(await machine.sh('ls -i /run/wireguard')).toBe(socket);
  });

  test('is boringtun where there is no wireguard-go', async () => {
    await using machine = await Machine.start();
    await machine.sh(`real=$(command -v wireguard-go); cp $real /run/other; mount -t tmpfs tmpfs /usr/local/bin
      printf '#!/bin/sh\\necho "$@" >/run/args; exec /run/other "$2"\\n' >/usr/local/bin/boringtun-cli
      chmod +x /usr/local/bin/boringtun-cli; ${hide('wireguard-go')}`);
    await machine.host.apply(create);
    expect(await machine.sh('cat /run/args')).toBe('--disable-drop-privileges cpn0\n');
    expect((await machine.host.observe(question)).device).not.toBeNull();
  });

  test('that ends right after its start is reported', async () => {
    await using machine = await Machine.start();
    await machine.sh(`printf '#!/bin/sh\\nexec ip tuntap add dev "$1" mode tun\\n' >/run/short-lived
      chmod +x /run/short-lived; ${hide('wireguard-go', '/run/short-lived')}`);
    await machine.host.apply(create);
    await expect(machine.host.apply(configure({ listenPort: 51820 }))).rejects.toMatchObject({
      name: 'CommandFailed',
      message: expect.stringMatching(
        /Protocol not supported; the userspace process of cpn0 exited.*max_user_instances/,
      ),
    });
  });

  test('is named in the error where it is missing', async () => {
    await using machine = await Machine.start();
    await machine.sh(`${hide('wireguard-go')}; ${hide('boringtun-cli')}`);
    await expect(machine.host.apply(create)).rejects.toMatchObject({
      name: 'MissingTool',
      message: expect.stringMatching(/wireguard-go.*boringtun-cli/),
    });
  });

  test('that cannot start reports the reason', async () => {
    await using machine = await Machine.start();
    await machine.sh('mount --bind /dev/null /dev/net/tun');
    await expect(machine.host.apply(create)).rejects.toMatchObject({
      name: 'CommandFailed',
      message: expect.stringMatching(/^wireguard-go cpn0 exited with 1: ERROR: \(cpn0\) .*Failed to create TUN device/),
    });
  });
});
