import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, plan, startOffice } from './office.ts';
import { call, listen } from './tcp.ts';

/** A connector between a wan, the LAN that it serves, and a network that it does not serve. No daemon runs: tests run the passes. */
let office: Office;
let router: Host;
let member: Host;
let printer: Host;
/** A host on the wan with routes through the router, and addresses that are not its own. */
let neighbour: Host;
/** In a LAN of the router that it does not serve. */
let vault: Host;
let before: string;

const lan = '192.168.50.0/24';
const [memberAddress, printerAddress] = ['10.77.0.2', '192.168.50.10'];
const vaultAddress = '192.168.70.10';
/** Of the LAN, of the network, and of neither. */
const spoofed = ['192.168.50.77', '10.77.0.200', '198.51.100.9'];
const everything = '0.0.0.0/0';

beforeAll(async () => {
  office = await startOffice({ flags: ['--allow-public-routes'] });
  const { lab } = office;
  router = await lab.addHost('router', { address: '203.0.113.11/24', gateway: '203.0.113.66' });
  printer = await (await lab.addLan(router, '192.168.50.1/24')).addHost('printer', `${printerAddress}/24`, {
    routed: true,
  });
  vault = await (await lab.addLan(router, '192.168.70.1/24')).addHost('vault', `${vaultAddress}/24`, { routed: true });
  member = await lab.addHost('member', { address: '203.0.113.12/24' });
  neighbour = await lab.addHost('neighbour', { address: '203.0.113.66/24' });
  before = await router.state();
  await join(office, router, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(office, member, '--endpoint', '203.0.113.12:51820', '--allow-route', everything);
  await router.cpn(['reconcile']);
  const bear = `for each in ${spoofed.join(' ')}; do ip address add $each/32 dev lo; done`;
  await sh(
    neighbour,
    `for each in 192.168.50.0/24 10.77.0.0/24 172.17.0.0/16; do ip route add $each via 203.0.113.11; done; ${bear}`,
  );
  await sh(vault, bear);
  await Promise.all([member, printer, neighbour].map(listen));
  await Promise.all([member, printer, neighbour, vault].map((host) => watchEchoes(host)));
  expect(await member.ping(printerAddress, patiently)).toMatchObject({ received: 1 });
}, 90_000);

afterAll(() => office?.lab.stop());

const sh = async (host: Host, script: string) => (await host.exec(['sh', '-ec', script])).stdout.trim();
const forwardAll = (value: '0' | '1') => sh(router, `echo ${value} >/proc/sys/net/ipv4/ip_forward`);
/** The forwarding of the host, and of its interfaces. */
const switches = async () =>
  (
    await sh(
      router,
      'cd /proc/sys/net/ipv4; cat ip_forward conf/eth0/forwarding conf/eth1/forwarding conf/cpn0/forwarding',
    )
  )
    .split('\n')
    .join(' ');
const rules = () => sh(router, 'nft list table inet cpn_cpn0');

/** Counts echo requests as they come in at a host, whether it answers or not; or as they leave by an interface. */
async function watchEchoes(host: Host, oif?: string): Promise<void> {
  const [hook, which] = oif ? ['postrouting priority 300', `oifname ${oif}`] : ['prerouting priority -300', ''];
  const input = `table inet echoes { chain in { type filter hook ${hook}; ${which} icmp type echo-request counter; }; }`;
  await host.exec(['nft', '-f', '-'], { input });
}

const countEchoes = async (host: Host) =>
  Number(/packets (\d+)/.exec(await sh(host, 'nft list table inet echoes'))?.[1]);

/** How many of two echo requests come in at `to`. */
async function arriving(from: Host, to: Host, address: string, source?: string): Promise<number> {
  const earlier = await countEchoes(to);
  const argv = ['ping', '-n', '-c', '2', '-i', '0.2', '-W', '0.3', ...(source ? ['-I', source] : []), address];
  await from.exec(argv, { allowFailure: true });
  return (await countEchoes(to)) - earlier;
}

/** What of a neighbour's packets gets into the tunnel: by its own address, and by those of others. */
async function intrusions(from = neighbour): Promise<number> {
  const earlier = await countEchoes(member);
  const pings = ['', ...spoofed.map((source) => `-I ${source}`)].map(
    (flags) => `ping -n -c 2 -i 0.2 -W 0.3 ${flags} ${memberAddress} &`,
  );
  await sh(from, `${pings.join('\n')} wait`);
  return (await countEchoes(member)) - earlier;
}

/** Changes the routes of the network, for the router and for the member. */
async function advertise(...routes: string[]): Promise<void> {
  const flags = routes.flatMap((route) => ['--route', route]);
  await office.controlPlane.cpn(['network', 'update', 'office', '--yes', ...flags]);
  for (const host of [router, member]) await host.cpn(['reconcile']);
}

/**
 * What dockerd does when it starts and a container publishes a port, as nft commands: forwarding as a whole, and
 * where it had to turn that on, a policy of drop (moby,
 * daemon/libnetwork/drivers/bridge/setup_ip_forwarding_linux.go). Its chains are those of
 * https://docs.docker.com/engine/network/firewall-iptables/.
 */
const docker = `
table ip nat {
  chain DOCKER { iifname "docker0" return; tcp dport 8080 dnat to 172.17.0.2:8080; }
  chain PREROUTING { type nat hook prerouting priority -100; fib daddr type local jump DOCKER; }
  chain OUTPUT { type nat hook output priority -100; ip daddr != 127.0.0.0/8 fib daddr type local jump DOCKER; }
  chain POSTROUTING { type nat hook postrouting priority 100; oifname != "docker0" ip saddr 172.17.0.0/16 masquerade; }
}
table ip filter {
  chain DOCKER-USER { }
  chain DOCKER { iifname != "docker0" oifname "docker0" ip daddr 172.17.0.2 tcp dport 8080 accept; iifname != "docker0" oifname "docker0" drop; }
  chain DOCKER-CT { oifname "docker0" ct state related,established accept; }
  chain DOCKER-BRIDGE { oifname "docker0" jump DOCKER; }
  chain DOCKER-FORWARD { jump DOCKER-CT; jump DOCKER-BRIDGE; iifname "docker0" accept; }
  chain FORWARD { type filter hook forward priority 0; policy drop; jump DOCKER-USER; jump DOCKER-FORWARD; }
}`;

describe('a connector on a host that forwards nothing else', () => {
  it('has forwarding on for its tunnel and its LAN alone, and forwards nothing between wan and LAN', async () => {
    expect(await switches()).toBe('0 0 1 1');
    expect(await arriving(neighbour, printer, printerAddress)).toBe(0);
    expect(await arriving(printer, neighbour, neighbour.address)).toBe(0);
    expect(await call(printer, memberAddress)).toBe('10.77.0.1');
    expect(await call(member, printerAddress)).toBe('192.168.50.1');
  });

  it('lets no host on the wan into the tunnel, whatever its address', async () => {
    expect(await intrusions()).toBe(0);
  });
});

describe('docker, installed on the host of a connector', () => {
  let container: Host;

  afterAll(() => sh(router, 'ip link delete eth3'));

  it('works at once, before the connector makes a pass', async () => {
    const segment = await office.lab.addSegment('containers');
    container = await office.lab.addHost('container', { address: '172.17.0.2/16', gateway: '172.17.0.1', on: segment });
    const card = await router.plug(segment, { address: '172.17.0.9/16' });
    await sh(
      router,
      `ip address flush dev ${card.name}; ip link add docker0 type bridge; ip link set ${card.name} master docker0
       ip address add 172.17.0.1/16 dev docker0; ip link set docker0 up`,
    );
    await forwardAll('1');
    await router.exec(['nft', '-f', '-'], { input: docker });
    await listen(container);
    // To the wan, from the wan, and from the LAN.
    expect(await call(container, neighbour.address)).toBe('203.0.113.11');
    expect(await call(neighbour, '203.0.113.11')).toBe('203.0.113.66');
    expect(await call(printer, '192.168.50.1')).toBe(printerAddress);
  });

  it('works on after the pass, which leaves forwarding to docker, and through the tunnel too', async () => {
    expect(await rules()).toContain('refuse-passing');
    await router.cpn(['reconcile']);
    expect(await rules()).not.toContain('refuse-passing');
    expect(await switches()).toBe('1 1 1 1');
    expect(await plan(router)).toEqual({ exitCode: 0, changes: [] });
    expect(await call(container, neighbour.address)).toBe('203.0.113.11');
    expect(await call(neighbour, '203.0.113.11')).toBe('203.0.113.66');
    expect(await call(printer, '192.168.50.1')).toBe(printerAddress);
    await sh(
      router,
      'nft add rule ip filter DOCKER-USER iifname cpn0 accept; nft add rule ip filter DOCKER-USER oifname cpn0 accept',
    );
    expect(await call(member, '10.77.0.1')).toBe(memberAddress);
    expect(await call(container, memberAddress)).toBe('10.77.0.1');
    expect(await call(member, printerAddress)).toBe('192.168.50.1');
  });
});

describe('a connector on a host where everything forwards', () => {
  it('leaves the other traffic of the host alone', async () => {
    await sh(router, 'nft delete table ip filter; nft delete table ip nat');
    expect(await arriving(neighbour, printer, printerAddress)).toBe(2);
    expect(await arriving(printer, neighbour, neighbour.address)).toBe(2);
  });

  it('lets no host on the wan into the tunnel, whatever its address, also with a default route', async () => {
    expect(await intrusions()).toBe(0);
    await advertise(lan, everything);
    expect(await rules()).toContain(everything);
    // From here on the member takes any source that the router hands on.
    expect(await sh(member, 'wg show cpn0 allowed-ips')).toContain(everything);
    expect(await intrusions()).toBe(0);
    expect(await call(printer, memberAddress)).toBe('10.77.0.1');
  });

  it('lets nothing of a LAN that it does not serve into the tunnel, whatever its address', async () => {
    expect(await intrusions(vault)).toBe(0);
    await router.cpn(['set', '--no-masquerade']);
    expect(await intrusions(vault)).toBe(0);
    expect(await call(printer, memberAddress)).toBe(printerAddress);
    await router.cpn(['set', '--masquerade']);
    // What another program masquerades is let in.
    const nat = `table ip theirs { chain out { type nat hook postrouting priority 100; ip saddr ${vaultAddress} masquerade; }; }`;
    await router.exec(['nft', '-f', '-'], { input: nat });
    expect(await call(vault, memberAddress)).toBe('10.77.0.1');
    await sh(router, 'nft delete table ip theirs');
  });

  describe('and serves the default route', () => {
    const [internet, metadata, otherMember] = ['198.51.100.7', '169.254.169.254', '10.78.0.9'];
    /** What of a member's packets goes where the default route of the router does not lead. */
    const leaks = async () => [
      await arriving(member, vault, vaultAddress),
      await arriving(member, neighbour, metadata),
      await arriving(member, router, otherMember),
    ];

    beforeAll(async () => {
      await sh(neighbour, `ip address add ${internet}/32 dev lo`);
      await office.controlPlane.cpn(['network', 'create', '--name', 'lab', '--cidr', '10.78.0.0/24']);
      await joinHost(office.controlPlane, router, { network: 'lab', flags: ['--wait', '0', '--type', 'origin'] });
      await router.cpn(['reconcile']);
      await watchEchoes(router, 'cpn1');
    }, 30_000);

    it('lets the network out by its own default route, and nowhere else', async () => {
      expect(await arriving(router, router, otherMember)).toBe(2);
      for (const value of ['1', '0'] as const) {
        await forwardAll(value);
        await router.cpn(['reconcile']);
        expect(await leaks()).toEqual([0, 0, 0]);
        expect(await call(member, internet)).toBe('203.0.113.11');
        expect(await call(member, printerAddress)).toBe('192.168.50.1');
      }
    });

    it('follows its default route', async () => {
      const lead = async (way: string) => {
        await sh(router, `ip route replace default ${way}`);
        await router.cpn(['reconcile']);
      };
      const counts = async () => [await arriving(member, neighbour, internet), await arriving(member, vault, internet)];
      expect(await counts()).toEqual([2, 0]);
      await sh(router, `ip route replace default via ${vaultAddress}`);
      expect(await counts()).toEqual([0, 0]);
      await router.cpn(['reconcile']);
      expect(await counts()).toEqual([0, 2]);
      await lead('via 203.0.113.66');
      expect(await counts()).toEqual([2, 0]);
      await router.cpn(['leave', '--yes', 'lab']);
      await sh(router, 'nft delete table inet echoes');
      await advertise(lan);
      await forwardAll('1');
    });
  });

  it('has its own forwarding again when that of the host is turned off', async () => {
    await sh(router, 'ip link delete docker0');
    await forwardAll('0');
    expect(await switches()).toBe('0 0 0 0');
    await router.cpn(['reconcile']);
    expect(await switches()).toBe('0 0 1 1');
    expect(await call(member, printerAddress)).toBe('192.168.50.1');
    expect(await arriving(printer, neighbour, neighbour.address)).toBe(0);
  });

  it('has its tunnel closed from the first moment where new interfaces forward', async () => {
    await forwardAll('1');
    await router.exec(['ip', 'link', 'delete', 'cpn0']);
    const events = router.spawn(['ip', '-4', '-oneline', 'monitor', 'netconf']);
    await eventually('it listens', async () => {
      await sh(router, 'for value in 1 0; do echo $value >/proc/sys/net/ipv4/conf/lo/rp_filter; done');
      return events.output.stdout.includes(' lo ');
    });
    await router.cpn(['up']);
    const reported = () =>
      [...events.output.stdout.matchAll(/ cpn0 .*?forwarding (on|off)/g)].map(([, value]) => value);
    await eventually('it is open', () => reported().length > 1 && reported().at(-1) === 'on');
    expect(reported()).toEqual(['on', 'off', 'on']);
    await events.stop();
    await forwardAll('0');
    await router.cpn(['reconcile']);
  });
});

describe('an origin on a host that forwards, for containers', () => {
  let container: Host;

  beforeAll(async () => {
    const containers = await office.lab.addLan(member, '172.18.0.1/16');
    container = await containers.addHost('member-container', '172.18.0.2/16', { routed: true });
    const nat = `table ip nat {
      chain in { type nat hook prerouting priority -100; fib daddr type local tcp dport 8080 dnat to 172.18.0.2; }
      chain out { type nat hook postrouting priority 100; oifname != "eth1" ip saddr 172.18.0.0/16 masquerade; }
    }`;
    await member.exec(['nft', '-f', '-'], { input: nat });
    await listen(container);
    await sh(member, 'echo 1 >/proc/sys/net/ipv4/ip_forward');
    await member.cpn(['reconcile']);
    // The router sends to the container itself, whose address is in no map.
    await sh(
      router,
      'wg set cpn0 peer "$(wg show cpn0 peers)" allowed-ips 10.77.0.2/32,172.18.0.2/32; ip route replace 172.18.0.2 dev cpn0',
    );
  }, 30_000);

  it('lets these answer at its own address, and call out', async () => {
    expect(await call(router, memberAddress)).toBe('10.77.0.1');
    expect(await call(container, printerAddress)).toBe('192.168.50.1');
  });

  it('forwards nothing else that comes out of the tunnel', async () => {
    await watchEchoes(container);
    expect(await arriving(member, container, '172.18.0.2')).toBe(2);
    expect(await arriving(router, container, '172.18.0.2')).toBe(0);
  });

  it('forwards nothing at all that comes out of the tunnel once the host forwards no more', async () => {
    const own = () => sh(member, 'cat /proc/sys/net/ipv4/conf/cpn0/forwarding; nft list table inet cpn_cpn0');
    expect(await own()).toMatch(/^1\n.*cpn accept-published/s);
    await sh(member, 'echo 0 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/cpn0/forwarding');
    await member.cpn(['reconcile']);
    expect(await own()).toMatch(/^0\n/);
    expect(await own()).not.toContain('cpn accept-published');
    expect(await own()).toContain('cpn refuse-neighbours');
    await router.cpn(['reconcile']);
  });
});

it('takes back what it opened, and nothing else', async () => {
  await router.cpn(['leave', '--yes', '--verify']);
  expect(await router.state()).toBe(before);
});
