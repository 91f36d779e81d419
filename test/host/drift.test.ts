import { describe, expect, test, vi } from 'vitest';
import type { ActualPeer } from '../../src/core/host-state/actual.ts';
import { forwardingKey, sourceFilterKey } from '../../src/core/host-state/sysctl-keys.ts';
import type { Desired } from '../../src/core/reconcile/desired.ts';
import { plan } from '../../src/core/reconcile/plan.ts';
import { desireFor, dialled, keyPair, network, options, peer, prefix } from '../core/samples.ts';
import type { Machine } from './machine.ts';
import { at, makePeer, newPresharedKey } from './samples.ts';
import { configure, create, peerOf, settle, startTunnel } from './steps.ts';

vi.setConfig({ testTimeout: 60_000 });

const self = peer(1, { type: 'connector', endpoint: dialled(1), routes: [prefix('192.168.50.0/24')] });
const other = peer(2, { type: 'connector', endpoint: dialled(2), routes: [prefix('192.168.60.0/24')] });
const [laptop, phone] = [peer(3, { type: 'admin_device' }), peer(4, { type: 'admin_device' })];
const map = network([self, other, laptop, phone], { routes: [prefix('192.168.50.0/24'), prefix('192.168.60.0/24')] });
const presharedKey = newPresharedKey();

/** A connector in a network of four, where the laptop has everything that a peer can have. */
const desired: Desired = (() => {
  const plain = desireFor(self, map, { options: { ...options, listenPort: 51820 } });
  const peers = plain.config.peers.map((each) =>
    each.publicKey === laptop.publicKey
      ? { ...each, presharedKey, endpoint: at('192.0.2.3', 3), keepalive: 25 }
      : // Its endpoint is to be learned.
        { ...each, endpoint: null, keepalive: null },
  );
  // The interface of its LAN is not there.
  return { ...plain, ingress: [], config: { ...plain.config, peers } };
})();

const question = {
  link: 'cpn0',
  firewall: true,
  sysctls: [forwardingKey('cpn0'), sourceFilterKey('cpn0')],
  hosts: false,
};
const now = () => Math.floor(Date.now() / 1000);

/** Plans, applies, and returns what was planned, in short; fails where that did not do. */
async function repair({ host }: Machine): Promise<string[]> {
  const steps = plan(desired, await host.observe(question), now());
  for (const step of steps) await host.apply(step);
  expect(plan(desired, await host.observe(question), now())).toEqual([]);
  return steps.flatMap(({ changes }) =>
    changes.map(({ action, kind, target, reason }) => `${action} ${kind} ${target}: ${reason}`),
  );
}

/** The machine as desired, with the other connector at its far end, which has shaken hands. */
async function startSession(): Promise<{ machine: Machine; session: () => Promise<ActualPeer | undefined> }> {
  const machine = await startTunnel();
  const session = async () => peerOf(await machine.host.observe(question), other.publicKey);
  await repair(machine);
  const far = [makePeer({ publicKey: self.publicKey, endpoint: at('127.0.0.1', 51820), keepalive: 1 })];
  await machine.host.apply({ ...create, link: 'far0' });
  const { privateKey } = keyPair(2);
  await machine.host.apply({ ...configure({ privateKey, listenPort: 51821, peers: far }), link: 'far0' });
  await machine.host.apply({ ...settle({ set: 'up' }), link: 'far0' });
  await vi.waitUntil(async () => (await session())?.latestHandshake != null, { timeout: 20_000, interval: 50 });
  return { machine, session };
}

const laptopDiffers = (what: string) => [`update peer ${laptop.publicKey}: ${what} differ`];
const rulesDiffer = ['update firewall inet cpn_cpn0: the rules differ'];
const set = `wg set cpn0 peer ${laptop.publicKey}`;
const stranger = peer(9).publicKey;

/** Manual changes, and exactly the repairs that a pass must plan. */
const drifts: readonly [string, string, readonly string[]][] = [
  ['MTU', 'ip link set cpn0 mtu 1300', ['update interface cpn0: the MTU differs']],
  [
    'state',
    'ip link set cpn0 down',
    ['update interface cpn0: the interface is down', 'add route 192.168.60.0/24: a peer serves it'],
  ],
  [
    'address',
    'ip address del 10.77.0.1/24 dev cpn0',
    [
      "add address 10.77.0.1/24: the peer's address is not on the interface",
      'add route 192.168.60.0/24: a peer serves it',
    ],
  ],
  [
    'address of another program',
    'ip address add 10.98.0.1/24 dev cpn0',
    ['remove address 10.98.0.1/24: not the address of this peer'],
  ],
  ['route', 'ip route del 192.168.60.0/24', ['add route 192.168.60.0/24: a peer serves it']],
  [
    'route to the range',
    'ip route del 10.77.0.0/24',
    ['add route 10.77.0.0/24: the route to the range of the address is gone'],
  ],
  [
    'all routes',
    'ip route flush dev cpn0',
    [
      'add route 10.77.0.0/24: the route to the range of the address is gone',
      'add route 192.168.60.0/24: a peer serves it',
    ],
  ],
  ['route to the range, by hand', 'ip route replace 10.77.0.0/24 dev cpn0', []],
  ['route of another program', 'ip route add 192.168.99.0/24 dev cpn0', []],
  [
    'route with another source in the place of ours',
    'ip route replace 192.168.60.0/24 dev cpn0 metric 10000 src 127.0.0.1',
    ['update route 192.168.60.0/24: another route in its place routes packets differently'],
  ],
  [
    'route with another source for a type of service',
    'ip route add 192.168.60.0/24 tos 0x10 dev cpn0 src 127.0.0.1',
    ['remove route 192.168.60.0/24: it routes packets differently: src 127.0.0.1'],
  ],
  [
    'route to the range with another source',
    'ip route replace 10.77.0.0/24 dev cpn0 src 127.0.0.1',
    ['update route 10.77.0.0/24: another route in its place routes packets differently'],
  ],
  ['listen port', 'wg set cpn0 listen-port 51999', ['update interface cpn0: the listen port differs']],
  ['peer', `${set} remove`, [`add peer ${laptop.publicKey}: a peer of the network is missing`]],
  [
    'peer of another program',
    `wg set cpn0 peer ${stranger} allowed-ips 10.77.0.9/32`,
    [`remove peer ${stranger}: not a peer of the network`],
  ],
  ['allowed IPs', `${set} allowed-ips 10.77.0.3/32,10.99.0.0/16`, laptopDiffers('allowed IPs')],
  ['allowed IPs, none', `${set} allowed-ips ''`, laptopDiffers('allowed IPs')],
  [
    'allowed IPs of another peer',
    `${set} allowed-ips 10.77.0.3/32,10.77.0.4/32`,
    [phone, laptop].map(({ publicKey }) => `update peer ${publicKey}: allowed IPs differ`),
  ],
  ['keepalive', `${set} persistent-keepalive 7`, laptopDiffers('keepalive')],
  ['keepalive, none', `${set} persistent-keepalive 0`, laptopDiffers('keepalive')],
  [
    'keepalive where none is wanted',
    `wg set cpn0 peer ${phone.publicKey} persistent-keepalive 7`,
    [`update peer ${phone.publicKey}: keepalive differ`],
  ],
  ['preshared key', `wg genpsk | ${set} preshared-key /dev/stdin`, laptopDiffers('preshared key')],
  ['preshared key, none', `${set} preshared-key /dev/null`, laptopDiffers('preshared key')],
  [
    'preshared key where none is wanted',
    `wg genpsk | wg set cpn0 peer ${phone.publicKey} preshared-key /dev/stdin`,
    [`update peer ${phone.publicKey}: preshared key differ`],
  ],
  ['endpoint', `${set} endpoint 192.0.2.99:9`, laptopDiffers('endpoint')],
  [
    'forwarding',
    'echo 0 >/proc/sys/net/ipv4/conf/cpn0/forwarding',
    ['update sysctl net.ipv4.conf.cpn0.forwarding: a connector forwards packets'],
  ],
  [
    'source filter',
    'echo 1 >/proc/sys/net/ipv4/conf/cpn0/rp_filter',
    ['update sysctl net.ipv4.conf.cpn0.rp_filter: a connector forwards packets'],
  ],
  ['ruleset', 'nft flush ruleset', ['add firewall inet cpn_cpn0: a connector forwards packets']],
  ['chain', 'nft flush chain inet cpn_cpn0 postrouting', rulesDiffer],
  [
    'rule',
    "nft delete rule inet cpn_cpn0 forward handle $(nft -a list chain inet cpn_cpn0 forward | awk '/clamp-mss/ { print $NF; exit }')",
    rulesDiffer,
  ],
  ['rule of another program', 'nft insert rule inet cpn_cpn0 forward drop', rulesDiffer],
  ['policy', "nft 'chain inet cpn_cpn0 forward { policy drop; }'", rulesDiffer],
  ['dormant table', "nft 'add table inet cpn_cpn0 { flags dormant; }'", rulesDiffer],
];

describe('drift on a real Linux host', () => {
  test('is detected and repaired, and nothing else changes', async () => {
    const { machine, session } = await startSession();
    await using _ = machine;
    const before = await session();
    for (const [what, script, expected] of drifts) {
      await machine.sh(script);
      expect(await repair(machine), what).toEqual(expected);
      expect(await repair(machine), what).toEqual([]);
    }
    const after = await session();
    expect(after).toMatchObject({ latestHandshake: before?.latestHandshake, endpoint: before?.endpoint });
    expect(after?.rxBytes).toBeGreaterThanOrEqual(before?.rxBytes ?? Number.NaN);
    expect(after?.txBytes).toBeGreaterThanOrEqual(before?.txBytes ?? Number.NaN);
  });

  test('is detected and repaired for the private key', async () => {
    const { machine, session } = await startSession();
    await using _ = machine;
    for (const source of ['/dev/stdin', '/dev/null']) {
      await machine.sh(`wg genkey | wg set cpn0 private-key ${source}`);
      expect(await repair(machine)).toEqual(['update interface cpn0: the public key differs']);
    }
    expect((await session())?.latestHandshake).not.toBeNull();
  });

  test('is detected and repaired where the interface is gone', async () => {
    await using machine = await startTunnel();
    const all = await repair(machine);
    await machine.sh('ip link delete cpn0');
    const again = await repair(machine);
    expect(again).toContain('add interface cpn0: the interface does not exist');
    // Packet rules are none of the interface's.
    expect(all.filter((line) => /firewall/.test(line))).toHaveLength(1);
    expect(again.filter((line) => /firewall/.test(line))).toEqual([]);
    expect(again.filter((line) => /sysctl/.test(line))).toHaveLength(2);
    expect(again).toEqual(expect.arrayContaining(all.filter((line) => /^add (peer|route)/.test(line))));
  });
});
