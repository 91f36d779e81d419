import { describe, expect, test, vi } from 'vitest';
import { Machine } from './machine.ts';
import { bounded, startWatcher } from './watching.ts';

vi.setConfig({ testTimeout: 60_000 });

/** Copies of `sleep` under other names, by which a process is known; a script as the parent of one. */
const impostors = `
  mkdir /run/bin
  for name in NetworkManager systemd-networkd ip harmless; do cp "$(readlink -f "$(command -v sleep)")" /run/bin/$name; done
  printf '#!/bin/sh\\n/run/bin/ip 1000\\n:\\n' >/run/bin/fix-routes
  chmod +x /run/bin/fix-routes
`;

describe('conflicting processes on a real Linux host', () => {
  test('are those of the same network namespace, with their parents', async () => {
    await using machine = await Machine.start();
    await machine.sh(impostors);
    expect(await machine.host.conflictingProcesses()).toEqual([]);
    await machine.sh(`for name in NetworkManager systemd-networkd harmless fix-routes; do
        setsid /run/bin/$name 1000 >/dev/null 2>&1 &
      done
      setsid unshare --net /run/bin/NetworkManager 2000 >/dev/null 2>&1 &`);
    const started = ['NetworkManager', 'systemd-networkd', 'ip'].map((name) => `/run/bin/${name} 1000`);
    const script = '/bin/sh /run/bin/fix-routes 1000';
    const pids = await vi.waitFor(async () => {
      const found = new Map(
        (await machine.sh('ps -ww -eo pid=,args='))
          .split('\n')
          .map((line) => line.trim().split(/ +(.*)/))
          .map(([pid, args = '']) => [args, pid]),
      );
      expect([...found.keys()]).toEqual(
        expect.arrayContaining([...started, script, '/run/bin/harmless 1000', '/run/bin/NetworkManager 2000']),
      );
      return found;
    }, bounded);
    const expected = [...started, script].map((args) => {
      const [name] = /[\w-]+(?= 1000$)/.exec(args) ?? [];
      return `${name} (pid ${pids.get(args)})`;
    });
    expect([...(await machine.host.conflictingProcesses())].sort()).toEqual(expected.sort());
  });

  test('are found without the privilege to inspect processes', async () => {
    await using machine = await Machine.start('setpriv', '--bounding-set=-all,+net_admin', '--inh-caps=-all');
    await machine.sh(`${impostors} setsid /run/bin/NetworkManager 1000 >/dev/null 2>&1 &`);
    await vi.waitFor(async () => {
      expect(await machine.host.conflictingProcesses()).toEqual([
        expect.stringMatching(/^NetworkManager \(pid \d+\)$/),
      ]);
    }, bounded);
  });

  test('exclude tools that only watch', async () => {
    await using machine = await Machine.start();
    await startWatcher(machine);
    await startWatcher(machine, 'watchFirewall');
    expect(await machine.host.conflictingProcesses()).toEqual([]);
  });
});
