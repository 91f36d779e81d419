import { writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LossMeter } from '../faults/loss-meter.ts';
import { startControlPlane } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { previousProgram } from '../lab/previous-program.ts';
import { join, type Office, plan } from './office.ts';

/**
 * A server in a full tunnel that clients outside reach as before: at the address of either card, and at a container's published port.
 * Each card has a line of its own, which takes no packets with the address of the other, and a routing table of its own.
 */
let office: Office;
let server: Host;
let container: Host;
/** On the wan, as the clients are, the connector that the tunnel leads out by, and a resolver. */
let client: Host;
let resolver: Host;
/** The server before it joined. */
let before: string;

const everything = '0.0.0.0/0';
const [first, second, exit] = ['192.0.2.22', '198.18.5.22', '203.0.113.11'];

beforeAll(async () => {
  const lab = await Lab.start({ commandServers: true });
  const controlPlane = await startControlPlane(lab, '203.0.113.1', ['--allow-public-routes']);
  await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24', '--route', everything]);
  office = { lab, controlPlane, api: ['--api', controlPlane.url, '--insecure-http'] };
  const router = await lab.addHost('router', { address: '203.0.113.254/24' });
  const gateway = router.address;
  const line = await lab.addLan(router, '192.0.2.1/24');
  const otherLine = await lab.addLan(router, '198.18.5.1/24');
  await sh(router, `echo 1 >/proc/sys/net/ipv4/ip_forward; ip route add 10.77.0.0/24 via ${first}; ${bcp38}`);
  await sh(controlPlane.host, `ip route add default via ${gateway}`);
  const connector = await lab.addHost('connector', { address: `${exit}/24`, gateway });
  client = await lab.addHost('client', { address: '203.0.113.99/24', gateway });
  resolver = await lab.addHost('resolver', { address: '203.0.113.53/24', gateway });
  server = await line.addHost('server', `${first}/24`, { routed: true });
  await server.plug(otherLine.segment, { address: `${second}/24` });
  const bridge = await lab.addSegment('docker0');
  const { name } = await server.plug(bridge, { address: '172.17.0.1/16' });
  container = await lab.addHost('container', { on: bridge, address: '172.17.0.2/16', gateway: '172.17.0.1' });
  await sh(
    server,
    `ip route add default via 198.18.5.1 table 101; ip rule add from ${second} lookup 101
     ip -4 address flush dev ${name}; ip link add docker0 type bridge; ip link set ${name} master docker0
     echo 1 >/proc/sys/net/ipv6/conf/docker0/disable_ipv6; ip address add 172.17.0.1/16 dev docker0; ip link set docker0 up
     echo 1 >/proc/sys/net/ipv4/ip_forward; echo 2 >/proc/sys/net/ipv4/conf/all/rp_filter`,
  );
  await server.exec(['nft', '-f', '-'], { input: docker });
  await writeFile(path(server.etcDir, 'resolv.conf'), `nameserver ${resolver.address}\noptions timeout:1 attempts:1\n`);
  for (const host of [client, resolver, server, container]) await host.spawn(['python3', '-c', echo]).waitForLine(/up/);
  before = await server.state();
  await join(office, connector, '--type', 'connector', '--endpoint', `${exit}:51820`);
  await join(office, server, '--type', 'origin', '--allow-route', everything);
  await connector.cpn(['reconcile']);
}, 90_000);

afterAll(() => office?.lab.stop());

describe('a server in a full tunnel', () => {
  it('sends what it begins through the tunnel, and its containers too', async () => {
    expect(await call(server, client.address)).toBe(exit);
    expect(await call(container, client.address)).toBe(exit);
    expect(await plan(server)).toEqual({ exitCode: 0, changes: [] });
  });

  it('answers from each of its addresses by the routes that its own rules choose', async () => {
    expect(await call(client, first)).toBe(client.address);
    expect(await call(client, second)).toBe(client.address);
    expect(await wayOf(`${client.address} from ${second}`)).toBe('eth1');
  });

  it('answers from an address that no rule names, as a virtual one on the loopback interface', async () => {
    await sh(server, 'ip address add 192.0.2.77/32 dev lo');
    expect(await call(client, '192.0.2.77')).toBe(client.address);
    expect(await ask(client, first, 8053)).toBe(client.address);
    await sh(server, 'ip address delete 192.0.2.77/32 dev lo');
  });

  it.each([1, 2])('answers at a published port of a container, with rp_filter=%s', async (filter) => {
    await sh(server, `echo ${filter} >/proc/sys/net/ipv4/conf/all/rp_filter`);
    expect(await call(client, first, 8080)).toBe(client.address);
    expect(await ask(client, first, 8053)).toBe(client.address);
    expect(await call(container, client.address)).toBe(exit);
    expect(await call(server, client.address)).toBe(exit);
  });

  it('keeps out what it serves itself and redirects to itself, and leaves other programs’ marks alone', async () => {
    expect(await call(client, first, 8443)).toBe(client.address);
    // Connections that come in by the second card leave by it: the operator compares the whole mark.
    await server.exec(['nft', '-f', '-'], { input: lines });
    await sh(server, 'ip rule add pref 1000 fwmark 1 lookup 101');
    expect(await call(client, second, 8080)).toBe(client.address);
    await sh(server, 'ip rule delete pref 1000; nft delete table ip lines');
    await server.exec(['nft', '-f', '-'], { input: tailscale });
    await sh(
      server,
      `ip rule add pref 5210 fwmark 0x80000/0xff0000 lookup main; ip rule add pref 5230 fwmark 0x80000/0xff0000 lookup default
       ip rule add pref 5250 fwmark 0x80000/0xff0000 unreachable; ip rule add pref 5270 lookup 52`,
    );
    expect(await call(client, first, 8080)).toBe(client.address);
    expect(await ask(client, first, 8053)).toBe(client.address);
    expect(await call(server, client.address, 7000, 0x80000)).toBe(first);
    expect(await call(container, client.address)).toBe(exit);
    await sh(
      server,
      'for each in 5210 5230 5250 5270; do ip rule delete pref $each; done; nft delete table ip tailscale',
    );
    expect(await plan(server)).toEqual({ exitCode: 0, changes: [] });
  });

  it('does not let a forged packet to its tunnel address take a connection out of the tunnel', async () => {
    const from = (port: number) => `s.bind(('0.0.0.0', ${port})); s.settimeout(5)`;
    // As if the client had sent from port 7000, which serves; the server's packet is the answer to it, by its ports.
    await sh(
      client,
      `ip route add 10.77.0.2 via 203.0.113.254; nft 'table ip forge { chain out { type nat hook postrouting priority 100; ip daddr 10.77.0.2 udp dport 4444 snat to ${client.address}:7000; }\n}'`,
    );
    await client.exec(['python3', '-c', `${udp}; s.sendto(b'x', ('10.77.0.2', 4444))`]);
    await sh(client, 'nft delete table ip forge; ip route delete 10.77.0.2');
    const { stdout } = await server.exec([
      'python3',
      '-c',
      `${udp}; ${from(4444)}; s.sendto(b'x', ('${client.address}', 7000)); print(s.recv(99).decode())`,
    ]);
    expect(stdout.trim()).toBe(exit);
  });

  it('reports it: doctor queries the kernel, explain names the interface', async () => {
    const doctor = async () => {
      const { findings } = JSON.parse((await server.cpn(['doctor', '--json'], { allowFailure: true })).stdout);
      return findings.filter(({ looked_at: at }: { looked_at: string }) => at.startsWith('answers to clients outside'));
    };
    const explain = async () => {
      const { checks } = JSON.parse((await server.cpn(['explain', client.address, '--json'])).stdout);
      return checks.at(-1);
    };
    expect(await explain()).toMatchObject({ check: 'answers', ok: true });
    expect((await explain()).detail).toMatch(
      /from 192\.0\.2\.22: leaves by eth0 via 192\.0\.2\.1.*from 198\.18\.5\.22: leaves by eth1 via 198\.18\.5\.1, by the default route of table 101/,
    );
    await sh(server, 'ip rule delete priority 31575');
    expect(await doctor()).toMatchObject([
      { verdict: 'problem', found: expect.stringMatching(/^those from .*192\.0\.2\.22.* go into the tunnel/) },
    ]);
    expect(await explain()).toMatchObject({ check: 'answers', ok: null });
    await server.cpn(['reconcile']);
    expect(await call(client, first)).toBe(client.address);
  });

  it('finds routes that it has outside the main table', async () => {
    await sh(
      server,
      'ip route add default via 192.0.2.1 table 100; ip rule add from all lookup 100 pref 32800; ip route delete default',
    );
    await server.cpn(['reconcile']);
    expect(await call(server, client.address)).toBe(exit);
    expect(await call(client, first)).toBe(client.address);
    expect(await call(client, second)).toBe(client.address);
    expect(await call(client, first, 8080)).toBe(client.address);
    expect(await call(server, resolver.address)).toBe(first);
    expect((await server.cpn(['status', '--check'], { allowFailure: true })).exitCode).toBe(0);
    await sh(server, 'ip route add default via 192.0.2.1; ip rule delete lookup 100; ip route flush table 100');
  });

  it('reaches a resolver through the tunnel where it has no other route there', async () => {
    await sh(
      server,
      `ip route delete default; ip route add ${exit} via 192.0.2.1; ip route add 203.0.113.1 via 192.0.2.1`,
    );
    await server.cpn(['reconcile']);
    expect(await call(server, resolver.address)).toBe(exit);
    await sh(server, `ip route delete ${exit}; ip route delete 203.0.113.1; ip route add default via 192.0.2.1`);
    expect(await call(server, resolver.address)).toBe(first);
  });

  it('loses no answer while it is downgraded and upgraded, and the version before leaves no rule behind', async () => {
    const previous = path(await previousProgram(), 'cpn.js');
    const ours = async () => (await sh(server, 'ip rule show | grep "proto 157"')).stdout;
    const present = await ours();
    await using meter = await LossMeter.start(client, first);
    await server.exec([previous, 'reconcile']);
    expect(await ours()).not.toMatch(/goto|nop|2147483647/);
    await server.cpn(['reconcile']);
    expect(await ours()).toBe(present);
    expect(await meter.stop()).toMatchObject({ lost: 0 });
    expect(await call(client, first, 8080)).toBe(client.address);
  });

  it('does so behind the rules of wg-quick, and next to a full tunnel of wg-quick', async () => {
    await server.cpn(['down']);
    await server.exec(['wg-quick', 'up', 'cpn0']);
    await server.cpn(['up']);
    for (const filter of [1, 2]) {
      await sh(server, `echo ${filter} >/proc/sys/net/ipv4/conf/all/rp_filter`);
      expect(await call(client, second)).toBe(client.address);
      expect(await call(client, first, 8080)).toBe(client.address);
      expect(await ask(client, first, 8053)).toBe(client.address);
      expect(await call(container, client.address)).toBe(exit);
    }
    await server.cpn(['down']);
    await sh(server, 'nft delete table ip wg-quick-cpn0');
    await sh(
      server,
      `umask 77; printf '[Interface]\\nPrivateKey = %s\\nAddress = 10.99.0.2/24\\n[Peer]\\nPublicKey = %s\\nAllowedIPs = 0.0.0.0/0\\n' \
         $(wg genkey) $(wg genkey | wg pubkey) >/etc/wireguard/wg0.conf`,
    );
    await server.exec(['wg-quick', 'up', 'wg0']);
    const answers = await wayOf(`${client.address} from ${first}`);
    await server.cpn(['up']);
    expect(await wayOf(client.address)).toBe('cpn0');
    expect(await wayOf(`${client.address} from ${first}`)).toBe(answers);
    expect(await wayOf(`${client.address} from ${first} mark 0xca6c`)).toBe('eth0');
    await server.exec(['wg-quick', 'down', 'wg0']);
    await server.cpn(['reconcile']);
    expect(await call(client, first, 8080)).toBe(client.address);
    expect(await call(server, client.address)).toBe(exit);
  });

  it('is as if it had never joined, after it left', async () => {
    await server.cpn(['leave', '--yes', '--verify']);
    // What wg-quick left.
    await sh(server, 'rm /etc/wireguard/wg0.conf; echo 0 >/proc/sys/net/ipv4/conf/all/src_valid_mark');
    expect(await server.state()).toBe(before);
  });
});

const sh = (host: Host, script: string) => host.exec(['sh', '-ec', script]);
const wayOf = async (query: string): Promise<string> =>
  JSON.parse((await server.exec(['ip', '-json', 'route', 'get', ...query.split(' ')])).stdout)[0].dev;

/** What a provider's line takes: its own addresses alone (BCP 38). */
const bcp38 = `nft 'table ip bcp38 { chain in { type filter hook prerouting priority 0;
  iifname eth1 ip saddr != 192.0.2.0/24 drop; iifname eth2 ip saddr != 198.18.5.0/24 drop; }
}'`;

/** What dockerd makes for published ports, and a rule that redirects to the host itself. */
const docker = `
table ip nat {
  chain DOCKER {
    iifname "docker0" return
    tcp dport 8080 dnat to 172.17.0.2:7000
    udp dport 8053 dnat to 172.17.0.2:7000
  }
  chain PREROUTING {
    type nat hook prerouting priority -100;
    fib daddr type local jump DOCKER
    iifname != "docker0" tcp dport 8443 redirect to :7000
  }
  chain POSTROUTING {
    type nat hook postrouting priority 100;
    oifname != "docker0" ip saddr 172.17.0.0/16 masquerade
  }
}
`;

/** What an operator with two lines writes for containers, whose answers no source rule fits. */
const lines = `
table ip lines {
  chain PREROUTING {
    type filter hook prerouting priority -150;
    iifname "eth1" ct state new ct mark set 1
    iifname "docker0" meta mark set ct mark
  }
}
`;

/** How Tailscale saves and restores its bits of the mark. */
const tailscale = `
table ip tailscale {
  chain PREROUTING {
    type filter hook prerouting priority -150;
    ct state established,related meta mark set ct mark & 0xff0000
  }
  chain OUTPUT {
    type route hook output priority -150;
    ct state new meta mark & 0xff0000 != 0 ct mark set meta mark & 0xff0000
  }
}
`;

const udp = 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)';

/** Tells each client its address, over TCP and UDP on port 7000. */
const echo = `
import socket, threading
${udp.replace('import socket; ', '')}
s.bind(('0.0.0.0', 7000))
def datagrams():
  while True:
    _, who = s.recvfrom(99)
    s.sendto(who[0].encode(), who)
threading.Thread(target=datagrams, daemon=True).start()
t = socket.create_server(('0.0.0.0', 7000))
print('up', flush=True)
while True:
  c, who = t.accept()
  c.sendall(who[0].encode())
  c.close()
`;

const patience = { timeoutMs: 15_000 };

/** The client's address as the server at `to` sees it. */
function call(from: Host, to: string, port = 7000, mark = 0): Promise<string> {
  const script = `import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 36, ${mark}); s.settimeout(2)
s.connect(('${to}', ${port})); print(s.recv(99).decode())`;
  return eventually(
    `an answer of ${to}:${port}`,
    async () => {
      return (await from.exec(['python3', '-c', script], { allowFailure: true })).stdout.trim() || undefined;
    },
    patience,
  );
}

/** The same over UDP. */
function ask(from: Host, to: string, port: number): Promise<string> {
  const script = `${udp}; s.settimeout(2); s.sendto(b'x', ('${to}', ${port})); print(s.recv(99).decode())`;
  return eventually(
    `an answer of ${to}:${port}`,
    async () => {
      return (await from.exec(['python3', '-c', script], { allowFailure: true })).stdout.trim() || undefined;
    },
    patience,
  );
}
