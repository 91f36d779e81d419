import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import type { HostEvent } from '../../../src/host/host.ts';
import type { Run } from '../../../src/host/process/run.ts';
import { watchDevices } from '../../../src/host/wireguard/watch-devices.ts';
import { at, makePeer, newKeyPair, newPresharedKey } from '../samples.ts';
import { configure, create, startTunnel } from '../steps.ts';
import { bounded, eventsOf, meets, pidsOf, sees, startWatcher } from '../watching.ts';

vi.setConfig({ testTimeout: 60_000 });

describe('watching the WireGuard tables of a real Linux host', () => {
  test('reports each change of the configuration once', async () => {
    await using machine = await startTunnel();
    const { host } = machine;
    const peer = makePeer({ presharedKey: newPresharedKey(), endpoint: at('192.0.2.1', 1), keepalive: 25 });
    const key = peer.publicKey;
    await host.apply(configure({ privateKey: newKeyPair().privateKey, listenPort: 51820, peers: [peer] }));
    const watcher = await startWatcher(machine, 'watchDevices');
    const scripts = [
      `wg set cpn0 peer ${key} allowed-ips 10.77.0.9/32,10.99.0.0/16`,
      `wg set cpn0 peer ${key} persistent-keepalive 7`,
      `wg set cpn0 peer ${key} persistent-keepalive 0`,
      `wg genpsk | wg set cpn0 peer ${key} preshared-key /dev/stdin`,
      `wg set cpn0 peer ${key} preshared-key /dev/null`,
      'wg set cpn0 listen-port 51999',
      'wg set cpn0 fwmark 7',
      `wg set cpn0 peer $(wg genkey | wg pubkey)`,
      `wg set cpn0 peer ${key} remove`,
      'wg genkey | wg set cpn0 private-key /dev/stdin',
      'wg set cpn0 private-key /dev/null',
    ];
    for (const script of scripts) {
      await machine.sh(script);
      await meets(watcher, 'device', 'cpn0');
    }
    expect(eventsOf(watcher)).toHaveLength(scripts.length);
    await host.apply({ ...create, link: 'far0' });
    await meets(watcher, 'device', 'far0');
    await machine.sh('ip link delete cpn0');
    await meets(watcher, 'device', 'cpn0', true);
    await machine.sh('ip link delete far0');
    await meets(watcher, 'device', 'far0', true);
    expect(eventsOf(watcher)).toHaveLength(scripts.length + 3);
  });

  test('reports no existing device, endpoint and counter', async () => {
    await using machine = await startTunnel();
    const { host } = machine;
    const peer = makePeer({ endpoint: at('127.0.0.1', 1), keepalive: 1 });
    await host.apply(configure({ privateKey: newKeyPair().privateKey, listenPort: 51820, peers: [peer] }));
    const watcher = await startWatcher(machine, 'watchDevices');
    await machine.sh(`wg set cpn0 peer ${peer.publicKey} endpoint 127.0.0.1:2`);
    const sent = async () => Number((await machine.sh('wg show cpn0 transfer')).trim().split('\t')[2]);
    const before = await sent();
    await vi.waitUntil(async () => (await sent()) > before, bounded);
    await host.apply({ ...create, link: 'far0' });
    await meets(watcher, 'device', 'far0');
    expect(eventsOf(watcher)).toHaveLength(1);
  });

  test('leaves nothing behind when it is closed', async () => {
    await using machine = await startTunnel();
    const watcher = await startWatcher(machine, 'watchDevices');
    watcher.closeInput();
    await sees(watcher, 'closed');
    expect(await pidsOf(machine, 'wg show')).toEqual([]);
    expect((await watcher.endWithin(bounded.timeout)).exitCode).toBe(0);
  });
});

describe('watching WireGuard tables', () => {
  const dumpOf = (port: number) => `wg0\t(none)\t(none)\t${port}\toff\n`;
  const device = { kind: 'device', link: 'wg0', removed: false };

  test('continues after failed polls, with the last result before them', async () => {
    const texts = [dumpOf(1), null, 'no dump', dumpOf(1), null, dumpOf(2), dumpOf(2)];
    let looks = 0;
    const run: Run = async () => {
      const text = texts[looks++];
      if (text === undefined) return dumpOf(2);
      if (text === null) throw new CommandFailed('wg show all dump', null, 'took too long');
      return text;
    };
    const events: HostEvent[] = [];
    const watch = await watchDevices(run, (event) => events.push(event), 1);
    await vi.waitUntil(() => looks > texts.length, bounded);
    await watch.close();
    expect(events).toEqual([device]);
  });

  test('never polls twice at once, and reports nothing after it is closed', async () => {
    let [looks, now, most] = [0, 0, 0];
    const run: Run = async () => {
      now += 1;
      most = Math.max(most, now);
      await sleep(3);
      now -= 1;
      looks += 1;
      return dumpOf(looks);
    };
    const listener = vi.fn();
    const watch = await watchDevices(run, listener, 1);
    await vi.waitUntil(() => looks > 5 && now === 1, { timeout: 20_000, interval: 1 });
    const closed = watch.close();
    listener.mockClear();
    await closed;
    expect([most, now]).toEqual([1, 0]);
    expect(listener).not.toHaveBeenCalled();
  });
});
