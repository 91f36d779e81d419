import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { REPOSITORY } from '../lab/built-program.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';

let lab: Lab;
let host: Host;

beforeAll(async () => {
  lab = await Lab.start();
  host = await lab.addHost('origin', { address: '203.0.113.22/24' });
});
afterAll(() => lab?.stop());

/** A configuration of systemd-networkd that matches foreign interfaces too. */
const everything =
  '[Match]\nName=cpn0 other0\n\n[Network]\nAddress=198.51.100.7/24\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n';

it("systemd-networkd leaves the program's interfaces alone, whatever other files match", async () => {
  const units = path(host.folder, 'run/systemd/network');
  await mkdir(units, { recursive: true });
  await writeFile(path(units, '20-everything.network'), everything);
  await copyFile(path(REPOSITORY, 'packaging/networkd/10-cpn.network'), path(units, '10-cpn.network'));
  for (const link of ['cpn0', 'other0']) {
    await host.exec(['ip', 'link', 'add', link, 'type', 'veth', 'peer', 'name', `${link}p`]);
    for (const end of [link, `${link}p`]) await host.exec(['ip', 'link', 'set', end, 'up']);
  }
  await host.exec(['ip', 'address', 'add', '10.77.0.2/32', 'dev', 'cpn0']);
  await host.exec(['ip', 'route', 'add', '192.168.50.0/24', 'dev', 'cpn0', 'proto', '157']);
  await host.exec(['ip', 'rule', 'add', 'lookup', '8350', 'priority', '31471', 'protocol', '157']);

  // It waits for no udev where /sys is not to be written to, as in a container.
  const script = 'mount -o remount,bind,ro /sys && exec /lib/systemd/systemd-networkd 2>&1';
  const env = { SYSTEMD_LOG_LEVEL: 'debug' };
  const networkd = host.spawn(['unshare', '--mount', 'sh', '-c', script], { env });
  await networkd.waitForLine(/cpn0: State changed: .* -> unmanaged/);
  await networkd.waitForLine(/other0: State changed: configuring -> configured/);
  const { stdout } = await networkd.stop(10_000);

  expect(stdout).not.toMatch(/10-cpn\.network:\d+/);
  const show = async (link: string) =>
    (await host.exec(['sh', '-c', `ip -4 address show dev ${link}; ip route show dev ${link}`])).stdout;
  const ours = await show('cpn0');
  for (const kept of ['10.77.0.2', '192.168.50.0/24 proto 157']) expect(ours).toContain(kept);
  expect(ours).not.toContain('198.51.100.7');
  expect((await host.exec(['ip', 'rule'])).stdout).toContain('lookup 8350');
  expect(await show('other0')).toContain('198.51.100.7');
});
