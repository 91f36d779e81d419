import { describe, expect, test, vi } from 'vitest';
import type { HostEvent } from '../../src/host/host.ts';
import { Machine } from './machine.ts';
import { hide } from './steps.ts';
import { bounded, meets, pidsOf, sees, startWatcher } from './watching.ts';

vi.setConfig({ testTimeout: 60_000 });

const monitors = (machine: Machine) => pidsOf(machine, 'ip -oneline monitor');

describe('watching a real Linux host', () => {
  test('reports each kind of change', async () => {
    await using machine = await Machine.start();
    const watcher = await startWatcher(machine);
    const announced = async (script: string, ...event: [HostEvent['kind'], string | null, boolean?]) => {
      await machine.sh(script);
      await meets(watcher, ...event);
    };
    await announced('ip link add v0 type veth peer name v1', 'link', 'v0');
    await announced('ip link set v0 mtu 1400', 'link', 'v0');
    await announced('ip link set v1 up; ip link set v0 up', 'link', 'v0');
    await announced("ip link set v0 alias 'x\nDeleted 1: lo: <'", 'link', 'v0');
    await announced('ip address add 10.1.0.1/24 dev v0', 'address', 'v0');
    await announced('ip address add fd01::1/64 dev v0 nodad', 'address', 'v0');
    await announced('ip route add 10.9.0.0/16 via 10.1.0.2', 'route', 'v0');
    await announced('ip route add fd02::/64 dev v0 table 77', 'route', 'v0');
    await announced('ip route add blackhole 10.11.0.0/16', 'route', null);
    await announced('ip rule add fwmark 5 lookup 77', 'rule', null);
    await announced('ip -6 rule add iif v0 lookup 77', 'rule', null);
    await announced('ip -6 rule del iif v0 lookup 77', 'rule', null, true);
    await announced('ip rule del fwmark 5 lookup 77', 'rule', null, true);
    await announced('ip route del blackhole 10.11.0.0/16', 'route', null, true);
    await announced('ip route del 10.9.0.0/16', 'route', 'v0', true);
    await announced('ip address del 10.1.0.1/24 dev v0', 'address', 'v0', true);
    await announced('echo 1 >/proc/sys/net/ipv4/ip_forward', 'sysctl', null);
    await announced('echo 0 >/proc/sys/net/ipv4/conf/all/forwarding', 'sysctl', null);
    await announced('echo 1 >/proc/sys/net/ipv4/conf/v0/forwarding', 'sysctl', 'v0');
    await announced('echo 1 >/proc/sys/net/ipv6/conf/all/forwarding', 'sysctl', null);
    await announced('echo 2 >/proc/sys/net/ipv4/conf/v0/rp_filter', 'sysctl', 'v0');
    await announced('ip link set v0 down', 'link', 'v0');
    await announced('ip link set v0 name v2', 'link', 'v2');
    await announced('ip link del v2', 'link', 'v2', true);
    expect(watcher.output.stdout).not.toContain('{"kind":"link","link":"lo"');
  });

  test('restarts when its process is killed', async () => {
    await using machine = await Machine.start();
    const watcher = await startWatcher(machine);
    for (const name of ['a0', 'b0']) {
      const [pid] = await monitors(machine);
      await machine.sh(`kill -KILL ${pid}`);
      await meets(watcher, 'link', null);
      await machine.sh(`ip link add ${name} type veth peer name ${name}p`);
      await meets(watcher, 'link', name);
    }
    expect(await monitors(machine)).toHaveLength(1);
  });

  test('reports that the kernel dropped events', async () => {
    await using machine = await Machine.start();
    const watcher = await startWatcher(machine);
    const [pid] = await monitors(machine);
    await machine.sh(`kill -STOP ${pid}
      seq 1 20000 | awk '{ printf "route add 10.%d.%d.0/24 dev lo table 99\\n", $1 / 250, $1 % 250 }' | ip -batch -
      kill -CONT ${pid}`);
    await meets(watcher, 'link', null);
    await machine.sh('ip link set lo mtu 1400');
    await meets(watcher, 'link', 'lo');
    expect(await monitors(machine)).toHaveLength(1);
  });

  test('leaves no process behind when it is closed', async () => {
    await using machine = await Machine.start();
    const watcher = await startWatcher(machine);
    watcher.closeInput();
    await sees(watcher, 'closed');
    expect(await monitors(machine)).toEqual([]);
    // Nothing of it keeps the program from its end either.
    expect((await watcher.endWithin(bounded.timeout)).exitCode).toBe(0);
  });

  test('leaves no process behind when the program is killed', async () => {
    await using machine = await Machine.start();
    const watcher = await startWatcher(machine);
    expect(await monitors(machine)).toHaveLength(1);
    watcher.signal('SIGKILL');
    await watcher.exited;
    await vi.waitUntil(async () => (await monitors(machine)).length === 0, bounded);
  });

  test('needs ip', async () => {
    await using machine = await Machine.start();
    await machine.sh(hide('ip'));
    await expect(machine.host.watch(() => {})).rejects.toMatchObject({ name: 'MissingTool', facts: { tool: 'ip' } });
  });
});
