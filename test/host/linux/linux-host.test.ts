import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { PublicKey } from '../../../src/core/crypto/keys.ts';
import { forwardRulesOf } from '../../../src/core/forward/forward-rule.ts';
import { firewallMarks, unreadable, withoutTool } from '../../../src/core/forward/own-table.ts';
import type { Firewall } from '../../../src/core/forward/packet-rule.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import { sourceFilterKey } from '../../../src/core/host-state/sysctl-keys.ts';
import { comparePrefixes, hostPrefix, maskPrefix, parseAddress, parsePrefix } from '../../../src/core/net/cidr.ts';
import type { LinkCommand, Step } from '../../../src/core/reconcile/step.ts';
import { rulePairOf } from '../../../src/core/routing/route-table.ts';
import type { DesiredPeer } from '../../../src/core/wg-quick/parse.ts';
import type { ObserveOptions } from '../../../src/host/host.ts';
import { Machine } from '../machine.ts';
import { at, makePeer, newKeyPair, newPresharedKey } from '../samples.ts';
import {
  addRoutes,
  address,
  address6,
  configure,
  create,
  everything,
  hide,
  peersOf,
  prefixesOf,
  question,
  removePeers,
  settle,
  silent,
  sortPeers,
  startTunnel,
} from '../steps.ts';

vi.setConfig({ testTimeout: 60_000 });

describe('a real Linux host', () => {
  test('is observed as it was configured, with two or three processes', async () => {
    await using machine = await Machine.start();
    const { host } = machine;
    const empty = await host.observe(everything);
    expect(empty).toMatchObject({ link: null, device: null, routes: [], onLink: [], firewall: null, sysctls: {} });

    const self = newKeyPair();
    const peers = [
      makePeer({ presharedKey: newPresharedKey(), endpoint: at('203.0.113.22', 51820), keepalive: 25 }),
      makePeer({
        endpoint: at('2001:db8::1', 3),
        allowedIps: ['10.77.0.3/32', '192.168.7.0/24', 'fd07::/64'].map((each) => parsePrefix(each)),
      }),
      makePeer({ allowedIps: [] }),
    ];
    await host.apply(create);
    expect((await host.observe(question)).device).toEqual({
      publicKey: null,
      listenPort: expect.any(Number),
      fwmark: null,
      peers: [],
    });
    await host.apply(configure({ privateKey: self.privateKey, listenPort: 51820, peers }));
    await host.apply(
      settle(
        { set: 'alias', value: "cpn:7 it's ours" },
        { set: 'mtu', value: 1380 },
        { add: 'address', address },
        { add: 'address', address: address6 },
        { set: 'up' },
        ...addRoutes('192.168.7.0/24', '10.99.0.1/32', '0.0.0.0/0', 'fd07::/64', '::/0'),
      ),
    );
    expect(machine.spawned).toEqual(['ip -force -batch -']);

    const actual = await host.observe(question);
    expect([...machine.spawned].sort()).toEqual(['ip -json -details -Numeric -batch -', 'wg show cpn0 dump']);
    const { addresses = [], ...link } = actual.link ?? {};
    expect(link).toEqual({ name: 'cpn0', mtu: 1380, up: true, alias: "cpn:7 it's ours" });
    expect(addresses.filter((each) => !each.address.startsWith('fe80:'))).toEqual([address, address6]);
    expect(actual.device).toMatchObject({ publicKey: self.publicKey, listenPort: 51820 });
    expect(peersOf(actual)).toEqual(sortPeers(peers.map(silent)));
    expect([...actual.routes].sort((a, b) => comparePrefixes(a.prefix, b.prefix))).toEqual(
      ['0.0.0.0/0', '10.99.0.1/32', '192.168.7.0/24', '::/0', 'fd07::/64'].map((prefix) => ({
        prefix,
        table: 'main',
        protocol: '157',
        metric: prefix.includes(':') ? 1024 : 0,
      })),
    );
    // The tunnel's own subnets and default routes are not around it.
    expect(actual.underlay).toMatchObject({ connected: [], gateways: [], underlayMtu: null });

    await host.observe(everything);
    expect(machine.spawned).toHaveLength(3);
    expect(JSON.stringify(await host.observe(everything))).not.toContain(self.privateKey.reveal());
  });

  test('clears removed settings of a peer', async () => {
    await using machine = await startTunnel();
    const { host } = machine;
    const full = makePeer({ presharedKey: newPresharedKey(), keepalive: 25, endpoint: at('192.0.2.1', 1) });
    const bare: DesiredPeer = { ...full, presharedKey: null, keepalive: null, endpoint: null, allowedIps: [] };
    await host.apply(configure({ privateKey: newKeyPair().privateKey, peers: [full] }));
    expect(peersOf(await host.observe(question))).toEqual([silent(full)]);
    await host.apply(configure({ peers: [bare] }));
    expect(peersOf(await host.observe(question))).toEqual([{ ...silent(bare), endpoint: full.endpoint }]);
    expect(await machine.sh('wg show cpn0 preshared-keys')).toBe(`${full.publicKey}\t(none)\n`);
    expect(await machine.sh('wg show cpn0 persistent-keepalive')).toBe(`${full.publicKey}\toff\n`);
  });

  test('adds and removes a thousand peers with one process each', async () => {
    await using machine = await startTunnel();
    const { host } = machine;
    const peers = Array.from({ length: 1000 }, (_, index) =>
      makePeer({ allowedIps: [hostPrefix(parseAddress(`10.78.${index >> 8}.${index & 255}`))] }),
    );
    await host.apply(configure({ peers }));
    expect(machine.spawned).toEqual(['wg addconf cpn0 /dev/stdin']);
    expect((await host.observe(question)).device?.peers).toHaveLength(1000);
    await host.apply(removePeers(...peers.slice(1).map((peer) => peer.publicKey)));
    expect(machine.spawned).toHaveLength(1);
    expect(peersOf(await host.observe(question)).map((peer) => peer.publicKey)).toEqual([peers[0]?.publicKey]);
  });

  test('has the desired peers after any sequence of changes', async () => {
    await using machine = await startTunnel();
    const { host } = machine;
    await host.apply(configure({ privateKey: newKeyPair().privateKey }));
    const keys = [newKeyPair(), newKeyPair(), newKeyPair()].map((pair) => pair.publicKey);
    const peer = fc.nat(keys.length - 1).chain((which) =>
      fc.record({
        publicKey: fc.constant(keys[which] as PublicKey),
        presharedKey: fc.option(fc.constant(newPresharedKey())),
        endpoint: fc.option(
          fc
            .tuple(fc.constantFrom('192.0.2.1', '2001:db8::1'), fc.integer({ min: 1, max: 65535 }))
            .map(([host, port]) => at(host, port)),
        ),
        // Ranges of its own for each peer: WireGuard gives a shared one to the last.
        allowedIps: fc.uniqueArray(
          fc
            .tuple(fc.nat(255), fc.integer({ min: 16, max: 32 }), fc.boolean())
            .map(([part, length, six]) =>
              maskPrefix(six ? `fd0${which}:${part}::1/${length + 16}` : `10.${which}.${part}.255/${length}`),
            ),
          { maxLength: 5 },
        ),
        keepalive: fc.option(fc.integer({ min: 1, max: 65535 })),
      }),
    );
    const change = fc.oneof(
      { weight: 3, arbitrary: fc.uniqueArray(peer, { selector: (each) => each.publicKey, minLength: 1 }) },
      { weight: 1, arbitrary: fc.subarray(keys, { minLength: 1 }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
        await host.apply(removePeers(...keys));
        const expected = new Map<PublicKey, ActualPeer>();
        for (const each of changes) {
          if (each.every((item) => typeof item === 'string')) {
            await host.apply(removePeers(...(each as PublicKey[])));
            for (const key of each as PublicKey[]) expected.delete(key);
            continue;
          }
          await host.apply(configure({ peers: each as DesiredPeer[] }));
          for (const item of each as DesiredPeer[]) {
            const endpoint = item.endpoint ?? expected.get(item.publicKey)?.endpoint ?? null;
            expected.set(item.publicKey, { ...silent(item), endpoint });
          }
        }
        // WireGuard may have sent something to a peer that has an endpoint and a keepalive.
        const actual = peersOf(await host.observe(question)).map((each) => ({ ...each, txBytes: 0 }));
        expect(actual).toEqual(sortPeers([...expected.values()]));
      }),
      { numRuns: 15 },
    );
  });

  test('adds and removes routes', async () => {
    await using machine = await startTunnel({ add: 'address', address: address6 });
    const { host } = machine;
    const range = fc
      .tuple(fc.boolean(), fc.nat(255), fc.nat(255), fc.integer({ min: 9, max: 32 }))
      .map(([six, a, b, length]) =>
        maskPrefix(six ? `fd00:${a}:${b}::1/${length * 4}` : `172.${(a % 16) + 16}.${b}.9/${length}`),
      );
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(range, { maxLength: 12 }), async (prefixes) => {
        await host.apply(settle(...addRoutes(...prefixes)));
        expect(prefixesOf(await host.observe(question))).toEqual([...prefixes].sort(comparePrefixes));
        await host.apply(settle(...prefixes.map((prefix) => ({ remove: 'route', prefix, protocol: '157' }) as const)));
        expect((await host.observe(question)).routes).toEqual([]);
      }),
      { numRuns: 15 },
    );
  });

  test('observes routes of other programs with table and protocol, and removes only the given ones', async () => {
    await using machine = await startTunnel(...addRoutes('10.1.0.0/16'));
    await machine.sh(`ip route add 10.2.0.0/16 dev cpn0; ip route add 10.3.0.0/16 dev cpn0 table 200 proto static
      ip route add 10.4.0.0/16 proto 77 nexthop dev cpn0 nexthop dev cpn0; ip -6 route add fd99::/64 dev cpn0 proto ra`);
    const { routes } = await machine.host.observe(question);
    expect([...routes].sort((a, b) => comparePrefixes(a.prefix, b.prefix))).toEqual([
      { prefix: '10.1.0.0/16', table: 'main', protocol: '157', metric: 0 },
      { prefix: '10.2.0.0/16', table: 'main', protocol: 'boot', metric: 0 },
      { prefix: '10.3.0.0/16', table: '200', protocol: 'static', metric: 0 },
      { prefix: '10.4.0.0/16', table: 'main', protocol: '77', metric: 0 },
      { prefix: 'fd99::/64', table: 'main', protocol: 'ra', metric: 1024 },
    ]);
    const wrong = machine.host.apply(settle({ remove: 'route', prefix: parsePrefix('10.2.0.0/16'), protocol: '157' }));
    await expect(wrong).rejects.toThrow('No such process');
    await machine.host.apply(settle({ remove: 'route', prefix: parsePrefix('10.2.0.0/16'), protocol: 'boot' }));
    expect(prefixesOf(await machine.host.observe(question))).not.toContain('10.2.0.0/16');
  });

  test('adds a route with a metric, and takes over a route from another interface without a duplicate', async () => {
    await using machine = await startTunnel({ add: 'route', prefix: parsePrefix('10.1.0.0/16'), metric: 10_000 });
    await machine.sh(`ip link add other type veth peer name end; ip link set other up
      ip route add 10.2.0.0/16 dev other proto 157; ip route add 10.3.0.0/16 dev other proto 157 metric 10000`);
    const taken = (prefix: string, replaces: number): LinkCommand => ({
      add: 'route',
      prefix: parsePrefix(prefix),
      metric: 10_000,
      replaces,
    });
    await machine.host.apply(settle(taken('10.2.0.0/16', 0), taken('10.3.0.0/16', 10_000)));
    const { routes, underlay } = await machine.host.observe(question);
    expect(routes.map(({ prefix }) => prefix).sort(comparePrefixes)).toEqual([
      '10.1.0.0/16',
      '10.2.0.0/16',
      '10.3.0.0/16',
    ]);
    expect(routes.map(({ metric }) => metric)).toEqual([10_000, 10_000, 10_000]);
    expect(underlay.routed).toEqual([]);
  });

  test('prefers a local network of any length to accepted routes, and observes other routes to them', async () => {
    await using machine = await startTunnel({ add: 'route', prefix: parsePrefix('10.1.5.0/24'), table: '8350' });
    const { host } = machine;
    const pair = rulePairOf('8350');
    await host.apply(settle(...pair.map((rule) => ({ add: 'rule', rule }) as const)));
    expect((await host.observe(question)).rules).toEqual(pair);
    await machine.sh('ip link add lan type veth peer name end; ip link set end up; ip link set lan up');
    const way = (to = '10.1.5.9') => machine.sh(`ip route get ${to} 2>&1 || true`);
    expect(await way()).toContain('dev cpn0 table 8350');
    for (const wide of ['10.1.0.1/16', '10.1.5.1/24', '10.0.0.1/8']) {
      await machine.sh(`ip address add ${wide} dev lan`);
      expect(await way()).toContain('dev lan');
      await machine.sh(`ip address flush dev lan`);
      expect(await way()).toContain('dev cpn0');
    }
    await machine.sh('ip route add default dev lan');
    expect([await way(), await way('10.1.6.9')]).toEqual([
      expect.stringContaining('dev cpn0'),
      expect.stringContaining('dev lan'),
    ]);
    await machine.sh('ip route add 10.0.0.0/9 dev lan; ip route add throw 10.1.5.0/24');
    expect(await way()).toContain('dev cpn0');
    await machine.sh(
      'ip route del throw 10.1.5.0/24; ip route add blackhole 10.1.0.0/16; ip route add prohibit default metric 9',
    );
    expect(await way()).toContain('Invalid argument');
    const { routes, underlay } = await host.observe(question);
    expect(routes).toEqual([{ prefix: '10.1.5.0/24', table: '8350', protocol: '157', metric: 0 }]);
    expect(underlay.routed).toMatchObject([{ prefix: '10.0.0.0/9', link: 'lan' }]);
    expect([...(underlay.refusing ?? [])].sort(comparePrefixes)).toEqual(['0.0.0.0/0', '10.1.0.0/16']);
    await host.apply(settle(...pair.map((rule) => ({ remove: 'rule', rule }) as const)));
    expect((await host.observe(question)).rules).toEqual([]);
  });

  test('reports the line that failed, and runs the others', async () => {
    await using machine = await startTunnel(...addRoutes('10.1.0.0/16'));
    const attempt = machine.host.apply(settle(...addRoutes('10.1.0.0/16', '10.2.0.0/16')));
    await expect(attempt).rejects.toMatchObject({
      name: 'CommandFailed',
      message:
        'ip -batch exited with 1: RTNETLINK answers: File exists; from "ip route append 10.1.0.0/16 dev cpn0 proto 157"',
    });
    expect(prefixesOf(await machine.host.observe(question))).toEqual(['10.1.0.0/16', '10.2.0.0/16']);
  });

  test('appends a route to that of a local network with the same prefix and metric, and removes only its own', async () => {
    await using machine = await startTunnel();
    await machine.sh('ip link add lan type veth peer name end; ip link set end up; ip link set lan up');
    await machine.sh('ip address add 10.1.0.1/16 dev lan');
    await machine.host.apply(settle(...addRoutes('10.1.0.0/16')));
    expect(prefixesOf(await machine.host.observe(question))).toEqual(['10.1.0.0/16']);
    expect(await machine.sh('ip route get 10.1.0.9')).toContain('dev lan');
    const remove = { remove: 'route', prefix: parsePrefix('10.1.0.0/16'), protocol: '157' } as const;
    await machine.host.apply(settle(remove));
    expect(await machine.sh('ip route show 10.1.0.0/16')).toMatch(/^10\.1\.0\.0\/16 dev lan proto kernel .*\n$/);
  });

  test('keeps an address when an earlier one of the same subnet is removed', async () => {
    await using machine = await startTunnel(...addRoutes('10.1.0.0/16'));
    const next = { ...address, address: parseAddress('10.77.0.6') };
    await machine.host.apply(settle({ add: 'address', address: next }, { remove: 'address', address }));
    const actual = await machine.host.observe(question);
    expect(actual.link?.addresses.filter((each) => !each.address.includes(':'))).toEqual([next]);
    expect(prefixesOf(actual)).toEqual(['10.1.0.0/16']);
  });

  test('adds, observes and removes packet rules', async () => {
    await using machine = await Machine.start();
    const { host } = machine;
    const firewall = (link: string, to: string): Firewall => ({
      link,
      rules: [
        forwardRulesOf(link).clampMss('out'),
        forwardRulesOf(link).masquerade({ from: [parsePrefix('10.77.0.0/24')], to: [parsePrefix(to)] }),
        forwardRulesOf(link).masquerade({ from: [parsePrefix('fd77::/64')], to: [parsePrefix('fd07::/64')] }),
      ],
    });
    const set = (link: string, to: string): Step => ({ do: 'set-firewall', firewall: firewall(link, to), changes: [] });
    const seen = async (link: string) =>
      (await host.observe({ link, firewall: true, sysctls: [], hosts: false })).firewall;

    for (const link of ['cpn0', 'wg.7-a_b', '9.x']) {
      await host.apply(set(link, '192.168.7.0/24'));
      expect(machine.spawned).toEqual(['nft -f -']);
      expect(await seen(link)).toEqual(firewallMarks(firewall(link, '192.168.7.0/24')));
      await host.apply(set(link, '192.168.8.0/24'));
      expect(await seen(link)).toEqual(firewallMarks(firewall(link, '192.168.8.0/24')));
    }
    expect(await machine.sh('nft list table inet cpn_wg.7-a_b')).toMatch(
      /oifname != "wg\.7-a_b" ct mark set .* masquerade/,
    );

    await machine.sh('nft flush chain inet cpn_cpn0 postrouting');
    expect(await seen('cpn0')).toEqual([expect.stringContaining('forward cpn clamp-mss')]);
    await machine.sh('nft add rule inet cpn_cpn0 forward accept');
    expect(await seen('cpn0')).toContain('forward (no comment)');

    const remove: Step = { do: 'remove-firewall', link: 'cpn0', changes: [] };
    await host.apply(remove);
    expect(await seen('cpn0')).toBeNull();
    await host.apply(remove);
    expect(await seen('9.x')).toHaveLength(3);
  });

  test('finds what packet rules of other programs drop, with one process', async () => {
    await using machine = await Machine.start();
    const { host } = machine;
    const [from, to] = [parsePrefix('10.77.0.0/24'), parsePrefix('192.168.50.0/24')];
    const path = { iif: 'cpn0', oif: 'eth1', from, to, state: 'new' } as const;
    const inbound = { ...path, iif: 'eth0', oif: '', from: parsePrefix('0.0.0.0/0'), port: 51820 };
    const look = () => host.foreignDrops('cpn0', { forward: [path], inbound: [inbound] });
    const seen = async () => (await look()).forward.map(({ table, reason }) => `${table}: ${reason}`);
    expect(await seen()).toEqual([]);
    await machine.sh("nft 'table ip a { chain f { type filter hook forward priority 0; policy drop; }; }'");
    await machine.sh(
      "nft 'table inet b { chain f { type filter hook forward priority 0; tcp dport 22 accept; reject; }; }'",
    );
    await machine.sh("nft 'table inet cpn_cpn0 { chain f { type filter hook forward priority 0; policy drop; }; }'");
    expect(await seen()).toEqual(['a: policy drop of chain f', 'b: chain f rejects them']);
    expect(machine.spawned).toEqual(['nft --json --terse list ruleset']);
    await machine.sh("nft insert rule ip a f iifname cpn0 accept; nft 'table inet b { flags dormant; }'");
    expect(await seen()).toEqual([]);
    await machine.sh("nft 'table inet c { chain i { type filter hook input priority 0; policy drop; }; }'");
    expect((await look()).inbound).toMatchObject({ table: 'c', reason: 'policy drop of chain i', port: 51820 });
    await machine.sh('nft add rule inet c i iifname eth0 udp dport 51000-52000 accept');
    expect((await look()).inbound).toBeNull();
    await machine.sh('iptables-legacy -P FORWARD DROP');
    expect((await look()).forward).toMatchObject([{ table: 'filter', isLegacy: true }]);
    await machine.sh('iptables-legacy -P INPUT DROP');
    expect((await look()).inbound).toMatchObject({ table: 'filter', isLegacy: true });
  });

  test('reads of the named sets of other programs only those that decide, and none that is large', async () => {
    await using machine = await Machine.start();
    const [from, to] = [parsePrefix('10.77.0.0/24'), parsePrefix('192.168.50.0/24')];
    const path = { iif: 'cpn0', oif: 'eth1', from, to, state: 'new' } as const;
    const inbound = { ...path, iif: 'eth0', oif: '', from: parsePrefix('0.0.0.0/0'), port: 51820 };
    const look = () => machine.host.foreignDrops('cpn0', { forward: [path], inbound: [inbound] });
    await machine.sh(`nft -f - <<'END'
      table ip t {
        set banned { type ipv4_addr; elements = { 11.0.0.1, 10.77.0.5 }; }
        set web { type inet_service; elements = { 443 }; }
        set lan { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 }; }
        map other { type ipv4_addr : verdict; elements = { 11.0.0.1 : accept }; }
        set geo { type ipv4_addr; flags interval; }
        chain f {
          type filter hook forward priority 0
          ip saddr @banned drop
          ip daddr vmap @other
          ip saddr @lan drop
          ip saddr @geo drop
        }
        chain i {
          type filter hook input priority 0
          ip saddr @banned drop
          tcp dport @web accept
          ip saddr @geo drop
        }
      }\nEND`);
    const prefixes =
      'for (a = 0; a < 100; a++) for (b = 0; b < 250; b++) print "add element ip t geo { 11." a "." b ".0/25 }"';
    await machine.sh(`awk 'BEGIN { ${prefixes} }' | nft -f -`);
    const geo = { kind: 'set', family: 'ip', table: 't', name: 'geo' };
    const found = await look();
    expect(found.forward.map(({ reason }) => reason)).toEqual(['chain f drops them']);
    expect({ inbound: found.inbound, unread: found.unread }).toEqual({
      inbound: null,
      unread: { forward: [], inbound: [geo] },
    });
    const list = 'nft --json list';
    expect(machine.spawned).toEqual([
      'nft --json --terse list ruleset',
      ...[`${list} map ip t other`, `${list} set ip t lan`, `${list} set ip t geo`],
    ]);
    await machine.sh('nft flush set ip t geo');
    expect((await look()).unread).toBeUndefined();
  });

  test('says that rules of iptables-legacy are unread where its tool fails or is missing, and finds all others', async () => {
    await using machine = await Machine.start();
    const [from, to] = [parsePrefix('10.77.0.0/24'), parsePrefix('192.168.50.0/24')];
    const path = { iif: 'cpn0', oif: 'eth1', from, to, state: 'new' } as const;
    const inbound = { ...path, iif: 'eth0', oif: '', from: parsePrefix('0.0.0.0/0'), port: 51820 };
    await machine.sh(`iptables-legacy -P FORWARD DROP; iptables-legacy -P INPUT DROP
      nft 'table ip a { chain f { type filter hook forward priority 0; policy drop; }; }'
      printf '#!/bin/sh\nexit 1\n' >/run/failing; chmod +x /run/failing`);
    const legacy = [{ kind: 'legacy' }];
    for (const by of ['/run/failing', '/dev/null']) {
      await machine.sh(hide('iptables-legacy-save', by));
      const found = await machine.host.foreignDrops('cpn0', { forward: [path], inbound: [inbound] });
      expect(found.forward.map(({ table }) => table)).toEqual(['a']);
      expect([found.inbound, found.unread]).toEqual([null, { forward: legacy, inbound: legacy }]);
    }
  });

  test('is observed when nft fails, and reads packet rules only where they are needed', async () => {
    const seeing = ({ host }: Machine) => {
      return async (firewall: ObserveOptions['firewall']) =>
        (await host.observe({ link: 'cpn0', firewall, sysctls: [], hosts: false })).firewall;
    };
    await using machine = await Machine.start();
    const seen = seeing(machine);
    expect(await seen(false)).toBeNull();
    expect(machine.spawned.filter((line) => line.startsWith('nft'))).toEqual([]);
    await machine.sh(`nft add table inet cpn_cpn0
      printf '#!/bin/sh\necho no netlink >&2; exit 1\n' >/run/nft; chmod +x /run/nft`);
    expect(await seen('if-possible')).toEqual([]);
    await machine.sh(hide('nft', '/run/nft'));
    expect([await seen(true), await seen('if-possible')]).toEqual([[unreadable], [unreadable]]);
    const refused = 'netlink: Error: cache initialization failed: Operation not permitted';
    await machine.sh(`printf '#!/bin/sh\necho ${refused} >&2; exit 1\n' >/run/nft`);
    expect([await seen(true), await seen('if-possible')]).toEqual([[unreadable], [withoutTool]]);
    await using without = await Machine.start();
    await without.sh(hide('nft'));
    expect(await seeing(without)(true)).toBeNull();
    expect(await seeing(without)('if-possible')).toEqual([withoutTool]);
  });

  test('creates interfaces without forwarding, whatever the default is', async () => {
    await using machine = await Machine.start();
    await machine.sh('echo 1 >/proc/sys/net/ipv4/ip_forward');
    await machine.host.apply(create);
    expect(await machine.sh('cat /proc/sys/net/ipv4/conf/cpn0/forwarding')).toBe('0\n');
    expect((await machine.host.observe(question)).isSealed).toBe(false);
    await machine.sh('mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys');
    expect((await machine.host.observe(question)).isSealed).toBe(true);
    await machine.host.apply({ ...create, link: 'cpn1' });
  });

  test('writes and observes sysctls', async () => {
    await using machine = await Machine.start();
    const { host } = machine;
    const key = 'net.ipv4.ip_forward';
    const read = async () => (await host.observe({ ...question, sysctls: [key, 'net.ipv4.no_such_key'] })).sysctls;
    for (const value of ['1', '0']) {
      await host.apply({ do: 'set-sysctl', key, value, changes: [] });
      expect(await read()).toEqual({ [key]: value });
    }
    const set = (key: string): Promise<void> => host.apply({ do: 'set-sysctl', key, value: '1', changes: [] });
    const link = 'a.7-B_';
    await machine.sh(`ip link add ${link} type veth peer name b`);
    await set(sourceFilterKey(link));
    expect(await machine.sh(`cat /proc/sys/net/ipv4/conf/${link}/rp_filter`)).toBe('1\n');
    const sysctls = [sourceFilterKey(link), sourceFilterKey('gone')];
    expect((await host.observe({ ...question, sysctls })).sysctls).toEqual({
      'net.ipv4.conf.a/7-B_.rp_filter': '1',
    });
    await expect(set('net.ipv4.no_such_key')).rejects.toMatchObject({ name: 'CommandFailed' });
    for (const bad of [
      'net.ipv4.//.//.kernel.hostname',
      'kernel.hostname',
      'net',
      'net..ipv4',
      'net/ipv4',
      'net.ipv4.ip_forward\n',
      'net.../kernel',
    ]) {
      await expect(set(bad)).rejects.toMatchObject({ name: 'InvalidValue' });
    }
  });

  test('does not mistake another interface of that name for WireGuard', async () => {
    await using machine = await Machine.start();
    await machine.sh('ip link add cpn0 type veth peer name other; ip tuntap add mode tun name cpn1');
    for (const link of ['cpn0', 'cpn1']) {
      const actual = await machine.host.observe({ ...question, link });
      expect(actual.link).toMatchObject({ name: link, up: false, alias: null });
      expect(actual.device).toBeNull();
    }
    await expect(machine.host.apply(create)).rejects.toMatchObject({
      name: 'CommandFailed',
      message: expect.stringContaining('File exists'),
    });
    await expect(machine.host.apply(configure({ peers: [makePeer()] }))).rejects.toMatchObject({
      name: 'CommandFailed',
    });
    expect([...(await machine.host.links())].sort()).toEqual(['cpn0', 'cpn1', 'lo', 'other']);
  });
});
