import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { CommandFailed, CpnError, InvalidValue } from '../../../src/core/errors/index.ts';
import type { HostEvent } from '../../../src/host/host.ts';
import { linuxHost } from '../../../src/host/linux/linux-host.ts';
import type { Run } from '../../../src/host/process/run.ts';
import { digestDevices, digestDump, watchDevices } from '../../../src/host/wireguard/watch-devices.ts';
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
    const watch = await watchDevices(run, (event) => events.push(event), { everyMs: 1 });
    await vi.waitUntil(() => looks > texts.length, bounded);
    await watch.close();
    expect(events).toEqual([device]);
  });

  test('compares with what a pass saw since the last poll', async () => {
    const texts = [dumpOf(1), dumpOf(1), dumpOf(2), dumpOf(2)];
    // What a pass changed was changed back; then a pass changed it again, and it stays.
    const seen = [digestDump('wg0', '(none)\t(none)\t2\toff\n'), digestDevices(dumpOf(2)).get('wg0')];
    let looks = 0;
    const events: number[] = [];
    const watch = await watchDevices(
      async () => texts[looks++] ?? dumpOf(2),
      () => events.push(looks),
      { everyMs: 1, takeSeen: () => seen.shift() },
    );
    await vi.waitUntil(() => looks > texts.length, bounded);
    await watch.close();
    expect(events).toEqual([2]);
  });

  test('reports what a pass changed, and another program changed back between two polls', async () => {
    let port = 1;
    const run: Run = async (tool, args) => {
      const line = `(none)\t(none)\t${port}\toff\n`;
      if (tool === 'wg') return args.includes('all') ? `lo\t${line}` : line;
      return tool === 'ip' ? '[]\n[]\n[]\n[]\n' : '{"nftables":[]}';
    };
    const host = linuxHost(run);
    const question = { link: 'lo', firewall: false, sysctls: [], hosts: false } as const;
    const events: HostEvent[] = [];
    const watch = await host.watchDevices((event) => events.push(event), 50);
    const around = await host.observe(question);
    port = 2;
    await host.observe({ ...question, previous: around });
    port = 1;
    await vi.waitUntil(() => events.length > 0, bounded);
    await watch.close();
    expect(events).toEqual([{ kind: 'device', link: 'lo', removed: false }]);
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
    const watch = await watchDevices(run, listener, { everyMs: 1 });
    await vi.waitUntil(() => looks > 5 && now === 1, { timeout: 20_000, interval: 1 });
    const closed = watch.close();
    listener.mockClear();
    await closed;
    expect([most, now]).toEqual([1, 0]);
    expect(listener).not.toHaveBeenCalled();
  });
});

const self = newKeyPair();
const [one, two] = [newKeyPair().publicKey, newKeyPair().publicKey];
const presharedKey = newPresharedKey().reveal();

const device = ['wg0', self.privateKey.reveal(), self.publicKey, '51820', 'off'];
const peer = ['wg0', one, '(none)', '203.0.113.2:51820', '10.0.0.2/32,10.1.0.0/16', '1763677842', '92', '180', '25'];
const other = ['wg0', two, presharedKey, '(none)', '(none)', '0', '0', '148', 'off'];

/** The text of `wg show all dump`. */
const dumpOf = (...lines: readonly (readonly string[])[]) => lines.map((fields) => `${fields.join('\t')}\n`).join('');
const digest = (...lines: readonly (readonly string[])[]) => digestDevices(dumpOf(...lines)).get('wg0');
/** A line with another word in one field. */
const put = (line: readonly string[], at: number, word: string) => line.with(at, word);

describe('digestDevices', () => {
  const before = digest(device, peer, other);

  test('separates links, and has only digests of keys', () => {
    const elsewhere = [device, peer].map((line) => put(line, 0, 'wg1'));
    const digests = digestDevices(dumpOf(device, peer, other, ...elsewhere, ['wg2', '(none)', '(none)', '0', 'off']));
    expect([...digests.keys()]).toEqual(['wg0', 'wg1', 'wg2']);
    expect(digests.get('wg0')).toBe(before);
    expect(new Set(digests.values()).size).toBe(3);
    for (const text of digests.values()) expect(text).toMatch(/^[\w+/]{43}=$/);
    expect(digestDevices('')).toEqual(new Map());
  });

  test('ignores what changes by itself', () => {
    const same = [
      digest(device, other, peer),
      digest(device, put(peer, 3, '198.51.100.9:4000'), other),
      digest(device, put(peer, 4, '10.1.0.0/16,10.0.0.2/32'), other),
      digest(device, put(put(put(peer, 5, '1763677999'), 6, '93'), 7, '181'), other),
    ];
    expect(new Set(same)).toEqual(new Set([before]));
  });

  test('differs with each part of the configuration', () => {
    const different = [
      digest(put(device, 1, newKeyPair().privateKey.reveal()), peer, other),
      digest(put(device, 1, '(none)'), peer, other),
      digest(put(device, 2, '(none)'), peer, other),
      digest(put(device, 3, '51821'), peer, other),
      digest(put(device, 4, '0x7'), peer, other),
      digest(device, put(peer, 1, newKeyPair().publicKey), other),
      digest(device, put(peer, 2, presharedKey), other),
      digest(device, peer, put(other, 2, '(none)')),
      digest(device, put(peer, 4, '10.0.0.2/32'), other),
      digest(device, put(peer, 4, '(none)'), other),
      digest(device, put(peer, 8, 'off'), other),
      digest(device, peer),
      digest(device),
    ];
    expect(new Set([before, ...different]).size).toBe(different.length + 1);
  });

  test.each([dumpOf(peer), dumpOf(device, peer.slice(1)), dumpOf(device, device), dumpOf([...device, 'x'])])(
    'refuses a text of another form, and shows no key of it',
    (text) => {
      expect(() => digestDevices(text)).toThrow(InvalidValue);
      expect(() => digestDevices(text)).toThrow(expect.not.stringContaining(self.privateKey.reveal()));
    },
  );

  test('throws nothing but a CpnError', () => {
    const line = fc.array(fc.oneof(fc.string(), fc.constantFrom('wg0', 'wg1', 'off')), { maxLength: 10 });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 4 }), (lines) => {
        try {
          digestDevices(dumpOf(...lines));
        } catch (error) {
          expect(error).toBeInstanceOf(CpnError);
        }
      }),
    );
  });
});
