import { describe, expect, test, vi } from 'vitest';
import type { Actual, ActualPeer } from '../../src/core/host-state/actual.ts';
import { comparePrefixes } from '../../src/core/net/cidr.ts';
import type { Desired } from '../../src/core/reconcile/desired.ts';
import { isOurs, plan } from '../../src/core/reconcile/plan.ts';
import type { DesiredPeer } from '../../src/core/wg-quick/parse.ts';
import { address, desireFor, dialled, keyPair, network, peer, prefix } from '../core/samples.ts';
import { Machine } from './machine.ts';
import { at, newPresharedKey } from './samples.ts';
import { destroy, hide, peerOf, peersOf, question, settle, silent, sortPeers, traces } from './steps.ts';

vi.setConfig({ testTimeout: 60_000 });

const self = peer(1, { endpoint: dialled(1) });
const connector = peer(2, { type: 'connector', endpoint: dialled(2) });
const [laptop, phone] = [peer(3, { type: 'admin_device' }), peer(4, { type: 'admin_device' })];

/** What this origin is to be, with a peer that it has a session with, and one that has everything that a peer can have. */
const desired: Desired = (() => {
  const plain = desireFor(self, network([self, connector, laptop]));
  const peers = plain.config.peers.map(
    (each): DesiredPeer =>
      each.publicKey === connector.publicKey
        ? { ...each, endpoint: null, keepalive: null }
        : { ...each, presharedKey: newPresharedKey(), endpoint: at('192.0.2.3', 3), keepalive: 25 },
  );
  return { ...plain, config: { ...plain.config, listenPort: 51820, mtu: 1380, peers } };
})();

/** The far end of the session, in the same namespaces. */
const far: Desired = (() => {
  const { publicKey } = self;
  const peers = [{ publicKey, presharedKey: null, endpoint: at('127.0.0.1', 51820), allowedIps: [], keepalive: 1 }];
  const config = { ...desired.config, ...keyPair(2), listenPort: 51821, peers };
  const own = { address: address('10.99.0.2'), length: 32 };
  return { ...desired, link: 'far0', keyPair: keyPair(2), routes: [], config: { ...config, address: own } };
})();

/** Plans, applies and looks again, and returns what was planned and started; fails where that did not do. */
async function make(machine: Machine, wanted: Desired) {
  const asked = { ...question, link: wanted.link };
  const steps = plan(wanted, await machine.host.observe(asked), Date.now() / 1000);
  const started: string[] = [];
  for (const step of steps) {
    await machine.host.apply(step);
    started.push(...machine.spawned);
  }
  const after = await machine.host.observe(asked);
  expect(plan(wanted, after, Date.now() / 1000)).toEqual([]);
  const changes = steps.flatMap((step) =>
    step.changes.map(({ action, kind, target }) => `${action} ${kind} ${target}`),
  );
  return { changes, started, after };
}

/** What the kernel itself says of the tunnel; another number is another interface. */
async function kernelSees(machine: Machine) {
  const [card] = JSON.parse(await machine.sh('ip -json address show dev cpn0'));
  const routes: { dst: string }[] = JSON.parse(await machine.sh('ip -json route show dev cpn0'));
  return {
    number: Number(card.ifindex),
    mtu: Number(card.mtu),
    addresses: card.addr_info.flatMap((each: { family: string; local: string; prefixlen: number }) =>
      each.family === 'inet' ? [`${each.local}/${each.prefixlen}`] : [],
    ),
    routes: routes.map(({ dst }) => dst).sort(),
  };
}

const routed = ({ routes }: Actual) => routes.map((route) => route.prefix).sort(comparePrefixes);

/** A tunnel with a session. */
async function startSession(driver: Driver) {
  const machine = await Machine.startWith(driver);
  await make(machine, desired);
  await make(machine, far);
  const session = async (): Promise<ActualPeer | undefined> =>
    peerOf(await machine.host.observe(question), connector.publicKey);
  await vi.waitUntil(async () => (await session())?.latestHandshake != null, { timeout: 20_000, interval: 50 });
  return { machine, session };
}

const drivers = ['linux', 'wg-quick'] as const;
type Driver = (typeof drivers)[number];

describe.each(drivers)('a host that is kept by %s', (driver) => {
  test('is created as desired, and removed without a trace', async () => {
    await using machine = await Machine.startWith(driver);
    const { host } = machine;
    const before = await machine.sh(`${traces}; ls /run`);
    for (const round of [1, 2]) {
      expect(await host.observe(question)).toMatchObject({ link: null, device: null, routes: [] });
      expect(await host.device('cpn0')).toBe(null);
      const { after } = await make(machine, desired);
      expect(await host.device('cpn0')).toMatchObject({ publicKey: self.publicKey, listenPort: 51820 });
      if (driver === 'linux') {
        const again = await host.observe({ ...question, previous: { ...after, routes: [], device: null } });
        expect(again).toMatchObject({ routes: [], device: { publicKey: self.publicKey } });
        expect(machine.spawned).toHaveLength(1);
      }
      expect(after.link).toEqual({
        ...{ name: 'cpn0', mtu: 1380, up: true, alias: 'cpn:7' },
        addresses: expect.arrayContaining([{ address: '10.77.0.1', length: 24 }]),
      });
      expect(after.device).toMatchObject({ publicKey: self.publicKey, listenPort: 51820, fwmark: null });
      const sent = peersOf(after).map((each) => ({ ...each, txBytes: 0 }));
      expect(sent).toEqual(sortPeers(desired.config.peers.map(silent)));
      expect(routed(after)).toEqual(['192.168.50.0/24']);
      expect(await kernelSees(machine)).toMatchObject({
        ...{ mtu: 1380, addresses: ['10.77.0.1/24'] },
        routes: ['10.77.0.0/24', '192.168.50.0/24'],
      });
      expect([...(await host.links())]).toContain('cpn0');
      expect(JSON.stringify(after)).not.toContain(desired.config.privateKey.reveal());

      await host.apply(destroy);
      await vi.waitFor(async () => expect(await machine.sh(`${traces}; ls /run`), `round ${round}`).toBe(before), {
        timeout: 5000,
        interval: 50,
      });
    }
    await host.apply(destroy);
    expect(await machine.sh(`${traces}; ls /run`)).toBe(before);
  });

  test('adds, changes and removes peers, and does not interrupt another session', async () => {
    const { machine, session } = await startSession(driver);
    await using _ = machine;
    const before = await session();
    expect(before?.endpoint).toEqual(at('127.0.0.1', 51821));
    const { number } = await kernelSees(machine);
    const { peers } = desired.config;
    const newcomer: DesiredPeer = {
      ...{ publicKey: phone.publicKey, presharedKey: newPresharedKey(), endpoint: at('192.0.2.4', 4) },
      ...{ allowedIps: [prefix('10.77.0.4/32')], keepalive: 7 },
    };
    const changed = { ...newcomer, presharedKey: null, endpoint: at('192.0.2.5', 5), keepalive: null };
    const [stays = changed] = peers.filter((each) => each.publicKey === connector.publicKey);
    const rounds: readonly (readonly [string, readonly DesiredPeer[]])[] = [
      ['a newcomer', [...peers, newcomer]],
      ['a change', [...peers, changed]],
      [
        'a change of the other itself',
        [...peers.filter((each) => each !== stays), changed, { ...stays, keepalive: 22 }],
      ],
      ['a departure', [{ ...stays, keepalive: 22 }]],
    ];
    for (const [what, next] of rounds) {
      const wanted = { ...desired, config: { ...desired.config, peers: next } };
      const { changes, after, started } = await make(machine, wanted);
      expect(changes, what).not.toEqual([]);
      expect(
        started.filter((each) => each.startsWith('wg-quick')),
        what,
      ).toEqual([]);
      expect(after.device?.peers, what).toHaveLength(next.length);
    }
    const { latestHandshake, endpoint, presharedKey, allowedIps } = before ?? {};
    expect(await session()).toMatchObject({ latestHandshake, endpoint, presharedKey, allowedIps, keepalive: 22 });
    expect((await kernelSees(machine)).number).toBe(number);
  });

  test('changes address, MTU, routes, port and key, each in one pass', async () => {
    const { machine, session } = await startSession(driver);
    await using _ = machine;
    const { config } = desired;
    const served = (allowedIps: readonly string[]) =>
      config.peers.map((each) =>
        each.publicKey === connector.publicKey ? { ...each, allowedIps: allowedIps.map(prefix) } : each,
      );
    const own = '10.77.0.2/32';
    const routes = ['172.20.0.0/16', '192.168.60.0/24'];
    const elsewhere = { address: address('10.77.0.9'), length: 24 };
    const wanted: Desired = {
      ...desired,
      routes: routes.map(prefix),
      config: { ...config, mtu: 1300, listenPort: 51822, address: elsewhere, peers: served([own, ...routes]) },
    };
    const { after, started } = await make(machine, wanted);
    expect(started.filter((each) => each.startsWith('wg-quick up')).length).toBeLessThanOrEqual(1);
    expect(routed(after)).toEqual(routes);
    expect(await kernelSees(machine)).toMatchObject({
      ...{ mtu: 1300, addresses: ['10.77.0.9/24'] },
      routes: ['10.77.0.0/24', ...routes],
    });
    // What was learned of the peer outlives that.
    expect((await session())?.endpoint).toEqual(at('127.0.0.1', 51821));
    // A route goes with the peer that had it.
    const { publicKey } = connector;
    const peers = config.peers.filter((each) => each.publicKey !== publicKey);
    const fewer = { ...wanted, routes: [], config: { ...wanted.config, peers } };
    await make(machine, fewer);
    expect((await kernelSees(machine)).routes).toEqual(['10.77.0.0/24']);
    const next = keyPair(9);
    const rotated = { ...fewer, keyPair: next, config: { ...fewer.config, privateKey: next.privateKey } };
    const { number } = await kernelSees(machine);
    expect((await make(machine, rotated)).after.device?.publicKey).toBe(next.publicKey);
    expect((await kernelSees(machine)).number).toBe(number);
    expect((await machine.host.observe(question)).link?.alias).toBe('cpn:7');
  });

  test('detects and repairs drift', async () => {
    await using machine = await Machine.startWith(driver);
    await make(machine, desired);
    const set = `wg set cpn0 peer ${laptop.publicKey}`;
    const drifts: readonly (readonly [string, string])[] = [
      ['ip link set cpn0 down', 'update interface cpn0'],
      ['ip address del 10.77.0.1/24 dev cpn0', 'add address 10.77.0.1/24'],
      ['ip address add 10.98.0.1/24 dev cpn0', 'remove address 10.98.0.1/24'],
      ['wg set cpn0 listen-port 51999', 'update interface cpn0'],
      [`${set} remove`, `add peer ${laptop.publicKey}`],
      [`${set} allowed-ips 10.77.0.3/32,10.99.0.0/16`, `update peer ${laptop.publicKey}`],
      [`${set} persistent-keepalive 0`, `update peer ${laptop.publicKey}`],
      [`${set} preshared-key /dev/null`, `update peer ${laptop.publicKey}`],
      [`wg set cpn0 peer ${phone.publicKey} allowed-ips 10.98.0.0/16`, `remove peer ${phone.publicKey}`],
      ['ip link delete cpn0; while test -S /run/wireguard/cpn0.sock; do :; done', 'add interface cpn0'],
    ];
    for (const [script, expected] of drifts) {
      await machine.sh(script);
      expect((await make(machine, desired)).changes, script).toContain(expected);
      expect((await kernelSees(machine)).routes, script).toEqual(['10.77.0.0/24', '192.168.50.0/24']);
    }
  });

  test('stays up when a route of another program conflicts, and reports the error of the tool', async () => {
    const { machine, session } = await startSession(driver);
    await using _ = machine;
    // The drivers give routes different metrics.
    await machine.sh(`ip link add other type veth peer name end; ip link set other up
      for metric in 0 10000; do ip route add 172.20.0.0/16 dev other metric $metric; done`);
    const peers = desired.config.peers.map((each) =>
      each.publicKey === connector.publicKey
        ? { ...each, allowedIps: [prefix('10.77.0.2/32'), prefix('172.20.0.0/16')] }
        : each,
    );
    const wanted = { ...desired, routes: [prefix('172.20.0.0/16')], config: { ...desired.config, peers } };
    const failure = { name: 'CommandFailed', message: expect.stringContaining('File exists') };
    // Without files of wg-quick, ours stands after the other's.
    if (driver === 'linux') await make(machine, wanted);
    else await expect(make(machine, wanted)).rejects.toMatchObject(failure);
    expect(await kernelSees(machine)).toMatchObject({ mtu: 1380, addresses: ['10.77.0.1/24'] });
    expect((await session())?.endpoint).toEqual(at('127.0.0.1', 51821));
    await machine.sh('ip link delete other');
    await make(machine, wanted);
    expect((await kernelSees(machine)).routes).toEqual(['10.77.0.0/24', '172.20.0.0/16']);
  });

  test('does not change an interface of another program with the same name', async () => {
    await using machine = await Machine.startWith(driver);
    const { host } = machine;
    const addressed = 'ip address add 192.0.2.7/24 dev cpn0; ip link set cpn0 up';
    await machine.sh(`ip link add cpn0 type veth peer name other; ip link set other up; ${addressed}`);
    // Without IPv6, where the kernel is still making sure of its own address.
    const state = 'ip -o link show cpn0; ip -4 -o address show cpn0';
    const before = await machine.sh(state);
    const actual = await host.observe(question);
    expect(actual).toMatchObject({ link: { name: 'cpn0', alias: null }, device: null });
    expect(isOurs(desired, actual, [{ made: 'interface', link: 'cpn0' }])).toBe(false);
    // Created by another program after the observation.
    const steps = plan(desired, { ...actual, link: null, device: null, routes: [] }, 0);
    const apply = async () => {
      for (const step of steps) await host.apply(step);
    };
    await expect(apply()).rejects.toMatchObject({ name: 'CommandFailed', message: /exists/ });
    expect(await machine.sh(state)).toBe(before);
    expect([...(await host.links())]).toContain('cpn0');
    await machine.sh('ip link delete cpn0');

    // One that is a WireGuard interface, in the place of one that was ours.
    await make(machine, desired);
    await machine.sh('ip link delete cpn0; while test -S /run/wireguard/cpn0.sock; do :; done');
    await machine.sh(`wireguard-go cpn0 >/dev/null 2>&1; wg genkey | wg set cpn0 private-key /dev/stdin; ${addressed}`);
    expect(isOurs(desired, await host.observe(question), [{ made: 'interface', link: 'cpn0' }])).toBe(false);
  });
});

describe('wg-quick alone', () => {
  test.each(['darwin', 'openbsd'] as const)(
    'does the same with the names and routes of %s, as far as Linux can tell',
    async (platform) => {
      await using machine = await Machine.startWith('wg-quick', platform);
      // Where wg-quick of macOS writes what the kernel called it.
      await machine.sh('mkdir /run/names; echo cpn0 >/run/names/cpn0.name');
      const wanted = { ...desired, config: { ...desired.config, mtu: 1300 } };
      for (const each of [desired, wanted]) {
        const { after, started } = await make(machine, each);
        const sent = peersOf(after).map((one) => ({ ...one, txBytes: 0 }));
        expect(sent).toEqual(sortPeers(desired.config.peers.map(silent)));
        // The peer that brings the route to the subnet is there for a moment only.
        const removals = started.filter((one) => /^wg set cpn0 peer \S+ remove$/.test(one));
        expect(removals).toHaveLength(platform === 'darwin' ? 1 : 0);
      }
      const next = keyPair(9);
      await make(machine, { ...wanted, keyPair: next, config: { ...wanted.config, privateKey: next.privateKey } });
      expect(await machine.host.route(address('192.168.50.7'))).toMatchObject({ link: 'cpn0', source: '10.77.0.1' });
      await machine.host.apply(destroy);
      expect(await machine.host.observe(question)).toMatchObject({ link: null, device: null });
    },
  );

  test('takes over a route from a network that was joined later', async () => {
    await using machine = await Machine.startWith('wg-quick');
    const own = { address: address('10.99.0.2'), length: 32 };
    const later: Desired = { ...desired, link: 'cpn1', config: { ...desired.config, listenPort: 51821, address: own } };
    const routes = [...later.config.peers.map((each) => prefix(each.allowedIps[0] ?? '')), prefix('192.168.50.0/24')];
    await make(machine, { ...later, routes });
    const without = { ...desired, routes: [], config: { ...desired.config, peers: [] } };
    await make(machine, without);
    const { underlay } = await machine.host.observe(question);
    expect(underlay.routed).toContainEqual(expect.objectContaining({ prefix: '192.168.50.0/24', link: 'cpn1' }));
    await make(machine, { ...desired, newerLinks: ['cpn1'] });
    expect((await kernelSees(machine)).routes).toContain('192.168.50.0/24');
    expect(await machine.sh('ip route show dev cpn1')).not.toContain('192.168.50.0/24');
    expect(await machine.sh('wg show cpn1 peers | wc -l')).toBe('2\n');
  });

  test('removes a tunnel without a file, and the file of an interface that is gone', async () => {
    await using machine = await Machine.startWith('wg-quick');
    const { host } = machine;
    await make(machine, desired);
    await machine.sh('echo "[Interface]" >/run/tunnels/cpn0.conf');
    const observed = await host.observe(question);
    expect(observed).toMatchObject({ link: { mtu: 0, alias: null }, routes: [] });
    expect(isOurs(desired, observed, [])).toBe(true);
    await make(machine, { ...desired, alias: 'cpn:7' });
    await machine.sh('rm /run/tunnels/cpn0.conf; ip address flush dev cpn0');
    await host.apply(destroy);
    expect(await machine.sh('ls /run/tunnels /run/wireguard 2>/dev/null || true; ip -o link')).not.toContain('cpn0');
    await make(machine, desired);
    await machine.sh('ip link delete cpn0');
    await host.apply(destroy);
    expect(await machine.sh('ls /run')).not.toContain('tunnels');
  });

  test('writes no key into a folder that others can write, and none that others can read', async () => {
    await using machine = await Machine.startWith('wg-quick');
    await machine.sh('mkdir -m 777 /run/tunnels');
    await expect(make(machine, desired)).rejects.toMatchObject({ name: 'NotOurs' });
    expect(await machine.sh('ls /run/tunnels; ip -o link')).not.toContain('cpn0');
    await machine.sh('rmdir /run/tunnels');
    await make(machine, desired);
    expect(await machine.sh('stat -c %a /run/tunnels /run/tunnels/*')).toBe('700\n600\n');
  });

  test('check reports what is not supported, and what is missing', async () => {
    await using machine = await Machine.startWith('wg-quick');
    const { host } = machine;
    await host.check({ firewall: true });
    for (const needs of [{ forwarding: true }, { fullTunnel: true }]) {
      await expect(host.check({ firewall: false, ...needs })).rejects.toMatchObject({ name: 'Unsupported' });
    }
    for (const step of [
      { do: 'set-sysctl', key: 'net.ipv4.ip_forward', value: '1', changes: [] },
      { do: 'set-firewall', firewall: { link: 'cpn0', rules: [] }, changes: [] },
      settle({ add: 'route', prefix: prefix('0.0.0.0/0'), table: '8349' }),
    ] as const) {
      await expect(host.apply(step)).rejects.toMatchObject({ name: 'Unsupported' });
    }
    await expect(host.probe({ address: address('127.0.0.1'), port: null }, 100)).rejects.toMatchObject({
      name: 'Unsupported',
    });
    await machine.sh(hide('wg-quick'));
    await expect(host.check({ firewall: false })).rejects.toMatchObject({ name: 'MissingTool' });
    await using user = await Machine.start('setpriv', '--reuid=12345', 'env', 'CPN_HOST_DRIVER=wg-quick');
    await expect(user.host.check({ firewall: false })).rejects.toMatchObject({ name: 'MissingPrivilege' });
  });
});
