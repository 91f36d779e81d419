import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Lan } from '../lab/lab.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';
import { call, listen } from './tcp.ts';

/** Longer than the tests run: an event must have triggered the pass. */
const never = '3600';
const repaired = 'drift repaired';

let office: Office;
/** A connector that masquerades: the office's LAN behind it, and the vault, a network that is not advertised. */
let router: Host;
let daemon: Daemon;
let origin: Host;
let printer: Host;
let server: Host;
let vault: Host;
let before: string;

beforeAll(async () => {
  office = await startOffice();
  router = await office.lab.addHost('router', { address: '203.0.113.11/24' });
  const lan = await office.lab.addLan(router, '192.168.50.1/24');
  printer = await lan.addHost('printer', '192.168.50.10/24');
  server = await lan.addHost('server', '192.168.50.20/24', { routed: true });
  const hidden = await office.lab.addLan(router, '192.168.99.1/24');
  vault = await hidden.addHost('vault', '192.168.99.10/24', { routed: true });
  origin = await office.lab.addHost('origin', { address: '203.0.113.12/24' });
  before = await router.state();
  await join(office, router, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  daemon = await startDaemon(router, '--interval', never);
  await join(office, origin, '--endpoint', '203.0.113.12:51820');
  await Promise.all([printer, server, vault, origin].map(listen));
  await eventually('the LAN answers', async () => (await origin.ping('192.168.50.10', patiently)).received === 1, {
    timeoutMs: 60_000,
  });
}, 90_000);

afterAll(() => office?.lab.stop());

const reaches = async (from: Host, address: string) => (await from.ping(address)).received === 1;
const nft = (host: Host, ruleset: string) => host.exec(['nft', '-f', '-'], { input: ruleset });
const sysctl = async (host: Host, key: string) => (await host.exec(['cat', `/proc/sys/net/ipv4/${key}`])).stdout.trim();
/** The state in a status. */
async function health(host: Host): Promise<{ state: string; warnings: readonly string[] }> {
  const { state, warnings = [] } = await status(host);
  return { state, warnings };
}
/** Lets a host send to an address behind its peer that is not advertised. */
const smuggle = (from: Host, address: string) =>
  from.exec([
    'sh',
    '-ec',
    `wg set cpn0 peer $(wg show cpn0 peers | head -n 1) allowed-ips "$(wg show cpn0 allowed-ips | head -n 1 | cut -f 2 | tr ' ' ,),${address}/32"
     ip route replace ${address} dev cpn0`,
  ]);

describe('a connector', () => {
  it('gives what the network sends to the LAN its own address there, and what the LAN begins its address in the network', async () => {
    expect(await call(origin, '192.168.50.10')).toBe('192.168.50.1');
    expect(await call(server, '10.77.0.2')).toBe('10.77.0.1');
  });

  it('forwards nothing to a network behind it that is not advertised', async () => {
    expect(await reaches(router, '192.168.99.10')).toBe(true);
    await smuggle(origin, '192.168.99.10');
    const { stdout } = await origin.exec(['ping', '-n', '-c', '1', '-W', '5', '192.168.99.10'], { allowFailure: true });
    expect(stdout).toContain('From 10.77.0.1 icmp_seq=1 Packet filtered');
    await origin.cpn(['reconcile']);
  });

  it('leaves alone what other programs forward on the connector, as containers that publish a port and call out', async () => {
    const mark = daemon.mark();
    await router.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
    await daemon.awaitLog('the repair', ({ msg }) => msg === repaired, mark);
    await nft(
      router,
      `table ip containers {
         chain in { type nat hook prerouting priority -100; ip daddr 10.77.0.1 tcp dport 8080 dnat to 192.168.99.10; }
         chain out { type nat hook postrouting priority 100; ip saddr 192.168.99.0/24 masquerade; }
       }`,
    );
    expect(await call(origin, '10.77.0.1')).toBe('10.77.0.2');
    expect(await call(vault, '10.77.0.2')).toBe('10.77.0.1');
    await router.exec(['nft', 'delete', 'table', 'ip', 'containers']);
  });

  it('is repaired when all packet rules are flushed, and a ping goes on', async () => {
    const ping = origin.spawn(['ping', '-n', '-i', '0.05', '192.168.50.10']);
    const answered = () => ping.output.stdout.split('\n').filter((line) => line.includes('bytes from')).length;
    await eventually('it answers', () => answered() > 5);
    const mark = daemon.mark();
    await router.exec(['nft', 'flush', 'ruleset']);
    const { changes } = await daemon.awaitLog('the repair', ({ msg }) => msg === repaired, mark);
    expect(changes).toEqual(['add firewall inet cpn_cpn0: a connector forwards packets']);
    const then = answered();
    await eventually('it goes on', () => answered() > then + 5);
    await ping.stop();
  });

  it('keeps the reverse path filter loose, whatever is set', async () => {
    expect(await sysctl(router, 'conf/cpn0/rp_filter')).toBe('2');
    const mark = daemon.mark();
    await router.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/conf/cpn0/rp_filter']);
    const { changes } = await daemon.awaitLog('the repair', ({ msg }) => msg === repaired, mark);
    expect(changes).toEqual(['update sysctl net.ipv4.conf.cpn0.rp_filter: a connector forwards packets']);
    expect(await sysctl(router, 'conf/cpn0/rp_filter')).toBe('2');
    expect(await sysctl(origin, 'conf/cpn0/rp_filter')).not.toBe('2');
  });
});

describe('a table of another program that drops what a connector forwards', () => {
  const begins = 'packet rules of another program drop packets';
  const ends = `over: ${begins}`;

  it('is reported by the status and once by the log, with its owner, and so is its end', async () => {
    const mark = daemon.mark();
    await nft(
      router,
      `table ip filter {
         chain DOCKER-USER { }
         chain DOCKER-FORWARD { oifname "docker0" ct state established,related accept; iifname "docker0" accept; }
         chain FORWARD { type filter hook forward priority 0; policy drop; jump DOCKER-USER; jump DOCKER-FORWARD; }
       }`,
    );
    const { drop, command } = await daemon.awaitLog('the owner', ({ msg }) => msg === begins, mark);
    const sentence = `${drop}; ${command}`;
    expect(sentence).toMatch(
      /^packets to and from 192\.168\.50\.0\/24 .* probably made by docker \(policy drop of chain FORWARD\); "iptables -I DOCKER-USER -i cpn0 /,
    );
    expect(await reaches(origin, '192.168.50.10')).toBe(false);
    expect(await health(router)).toEqual({ state: 'degraded', warnings: [sentence] });
    // What docker lets through, it lets through for the connector too.
    await router.exec([
      'sh',
      '-ec',
      'nft add rule ip filter DOCKER-USER iifname cpn0 accept; nft add rule ip filter DOCKER-USER oifname cpn0 accept',
    ]);
    expect(await health(router)).toEqual({ state: 'up', warnings: [] });
    expect(await reaches(origin, '192.168.50.10')).toBe(true);
    await router.exec(['nft', 'delete', 'table', 'ip', 'filter']);
    await daemon.awaitLog('the end', ({ msg }) => msg === ends, mark);
    expect(daemon.since(mark).filter(({ msg }) => msg === begins)).toHaveLength(1);
  });

  it('lets them through once the reported remedy is typed', async () => {
    await nft(
      router,
      'table inet home { chain f { type filter hook forward priority 10; ct state invalid drop; reject; }; }',
    );
    const [warning = ''] = (await health(router)).warnings;
    expect(warning).toContain('nft table inet home (chain f rejects them)');
    expect(await reaches(origin, '192.168.50.10')).toBe(false);
    await router.exec(['sh', '-ec', /"([^"]*)"/.exec(warning)?.[1] ?? 'exit 1']);
    expect(await reaches(origin, '192.168.50.10')).toBe(true);
    expect(await health(router)).toEqual({ state: 'up', warnings: [] });
    await router.exec(['nft', 'delete', 'table', 'inet', 'home']);
  });
});

describe('a connector that does not masquerade', () => {
  let edge: Host;
  let lan: Lan;
  let far: Host;
  let shop: Host;

  /** Its uplink has a smaller MTU than the others, and "packet too big" messages are dropped. */
  beforeAll(async () => {
    await office.controlPlane.cpn([
      'network',
      'create',
      '--name',
      'branch',
      '--cidr',
      '10.78.0.0/24',
      '--route',
      '192.168.60.0/24',
    ]);
    const joining = (...flags: string[]) => ({ network: 'branch', flags: ['--wait', '0', ...flags] });
    edge = await office.lab.addHost('edge', { address: '203.0.113.21/24' });
    lan = await office.lab.addLan(edge, '192.168.60.1/24');
    shop = await lan.addHost('shop', '192.168.60.10/24', { routed: true });
    far = await office.lab.addHost('far', { address: '203.0.113.22/24' });
    const narrow = ['--type', 'connector', '--endpoint', '203.0.113.21:51820', '--no-masquerade', '--mtu', '1300'];
    await joinHost(office.controlPlane, edge, joining(...narrow));
    await joinHost(office.controlPlane, far, joining('--endpoint', '203.0.113.22:51820'));
    await edge.cpn(['reconcile']);
    await Promise.all([far, shop].map(listen));
    for (const host of [far, shop]) {
      await nft(
        host,
        'table inet deaf { chain in { type filter hook input priority 0; icmp type destination-unreachable drop; }; }',
      );
    }
  }, 60_000);

  it('leaves every address as it is, in both directions', async () => {
    expect(await call(far, '192.168.60.10')).toBe('10.78.0.2');
    expect(await call(shop, '10.78.0.2')).toBe('192.168.60.10');
  });

  it('fits TCP to the narrow tunnel, in both directions', async () => {
    const counting =
      'chain in { type filter hook input priority 1; tcp flags & syn == syn tcp option maxseg size 1260 counter; };';
    for (const host of [far, shop]) await nft(host, `table inet narrow { ${counting} }`);
    expect(await call(far, '192.168.60.10', 400_000)).toBe('10.78.0.2');
    expect(await call(shop, '10.78.0.2', 400_000)).toBe('192.168.60.10');
    for (const host of [far, shop]) {
      const { stdout } = await host.exec(['nft', 'list', 'table', 'inet', 'narrow']);
      expect(Number(/counter packets (\d+)/.exec(stdout)?.[1]), host.name).toBeGreaterThanOrEqual(2);
    }
  });

  it('keeps the sender of what it relays between two peers, as every relay', async () => {
    const laptops = await Promise.all(
      [23, 24].map((number) => office.lab.addHost(`laptop-${number}`, { address: `203.0.113.${number}/24` })),
    );
    const [one, two] = laptops as [Host, Host];
    for (const laptop of laptops) {
      const flags = ['--type', 'admin_device', '--wait', '0'];
      await joinHost(office.controlPlane, laptop, { network: 'branch', flags, before: [edge] });
    }
    await one.cpn(['reconcile']);
    await listen(two);
    const { address } = (await status(two)) as { address: string };
    expect(await call(one, address)).toBe(((await status(one)) as { address: string }).address);
  });
});

it('cleans up all of it', async () => {
  await daemon.stop();
  await router.exec(['sh', '-c', 'echo 0 >/proc/sys/net/ipv4/ip_forward']);
  await router.cpn(['reconcile']);
  const forwarding = ['ip_forward', 'conf/eth0/forwarding', 'conf/eth1/forwarding', 'conf/cpn0/forwarding'];
  expect(await Promise.all(forwarding.map((key) => sysctl(router, key)))).toEqual(['0', '0', '1', '1']);
  expect(await plan(router)).toEqual({ exitCode: 0, changes: [] });
  await router.cpn(['leave', '--yes', '--verify']);
  expect(await sysctl(router, 'conf/eth1/forwarding')).toBe('0');
  expect(await router.state()).toBe(before);
});
