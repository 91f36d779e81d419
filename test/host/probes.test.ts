import { describe, expect, test, vi } from 'vitest';
import { parseAddress } from '../../src/core/net/cidr.ts';
import { Machine } from './machine.ts';
import { at, makePeer, newKeyPair } from './samples.ts';
import { addRoutes, address6, configure, peersOf, question, silent, startTunnel } from './steps.ts';
import { bounded } from './watching.ts';

vi.setConfig({ testTimeout: 60_000 });

describe('the host around a tunnel', () => {
  test('is observed from links, routes, files and connections', async () => {
    await using machine = await startTunnel();
    await machine.sh(`ip link add eth0 type veth peer name lan; ip link set lan up; ip link set eth0 mtu 1400 up
      ip address add 192.0.2.10/24 dev eth0; ip address add 2001:db8::10/64 dev eth0 nodad
      ip route add default via 192.0.2.1 dev eth0; ip -6 route add default via 2001:db8::1 dev eth0
      printf 'nameserver 192.0.2.53\\nnameserver fe80::53%%eth0\\n' >/run/resolv.conf; mount --bind /run/resolv.conf /etc/resolv.conf
      mkdir -p /run/systemd/resolve; echo 'nameserver 192.0.2.54' >/run/systemd/resolve/resolv.conf`);
    // One session over IPv4 and one over IPv6, both to a socket that takes either family.
    const sessions = `const net = require('net'), open = (host) => new Promise((done) => net.connect(22, host, done));
      net.createServer().listen(22, '::', () => Promise.all(['192.0.2.10', '2001:db8::10'].map(open)).then(() => console.log('open')))`;
    await machine.sh(`timeout 20 ${process.execPath} -e "${sessions}" >/run/sessions 2>&1 &
      for try in $(seq 200); do grep -q open /run/sessions && exit; sleep 0.05; done; cat /run/sessions; exit 1`);
    const { underlay } = await machine.host.observe(question);
    expect(underlay).toEqual({
      addresses: ['192.0.2.10', '2001:db8::10'],
      connected: [
        { prefix: '192.0.2.0/24', link: 'eth0' },
        { prefix: '2001:db8::/64', link: 'eth0' },
      ],
      routed: [],
      refusing: [],
      reached: [
        { prefix: '192.0.2.0/24', link: 'eth0' },
        { prefix: '2001:db8::/64', link: 'eth0' },
      ],
      gateways: ['192.0.2.1', '2001:db8::1'],
      tunnels: [],
      uplinks: ['eth0'],
      uplinks6: ['eth0'],
      links: expect.arrayContaining([expect.objectContaining({ name: 'eth0', kind: 'other' })]),
      underlayMtu: 1400,
      resolvers: ['192.0.2.53', 'fe80::53', '192.0.2.54'],
    });
    expect(machine.spawned).toHaveLength(2);
    const clients = (await machine.host.sshClients()).map(({ address }) => address);
    expect(clients).toEqual(expect.arrayContaining(['192.0.2.10', '2001:db8::10']));
  });

  test('names resolve to addresses at which a peer can listen, or to nothing', async () => {
    await using machine = await Machine.start();
    await machine.sh(`printf '203.0.113.9 peer.example\\n127.0.0.1 peer.example\\n2001:db8:0::9 peer.example\\n169.254.169.254 meta.example\\n' >/run/hosts
      mount --bind /run/hosts /etc/hosts
      echo 'nameserver 127.0.0.1' >/run/resolv.conf; mount --bind /run/resolv.conf /etc/resolv.conf`);
    const { host } = machine;
    expect([...(await host.resolve('peer.example', 10_000))].sort()).toEqual(['2001:db8::9', '203.0.113.9']);
    expect(await host.resolve('meta.example', 10_000)).toEqual([]);
    expect(await host.resolve('missing.example', 10_000)).toEqual([]);
    expect(await host.resolve('203.0.113.7', 10_000)).toEqual(['203.0.113.7']);
    expect(machine.spawned).toEqual([]);
  });

  test('a resolver that does not answer is given up at the deadline', async () => {
    await using machine = await startTunnel();
    // Datagrams into a tunnel without peers are dropped without a word, and the resolver has minutes to try.
    await machine.sh(`ip address add 192.0.2.1/24 dev cpn0; ip link add sink type veth peer name sunk; ip link set sink up; ip link set sunk up
      ip address add 198.51.100.1/24 dev sink; ip neigh add 198.51.100.53 lladdr 02:00:00:00:00:01 dev sink
      printf 'nameserver 198.51.100.53\\noptions timeout:30 attempts:5\\n' >/run/resolv.conf; mount --bind /run/resolv.conf /etc/resolv.conf`);
    expect(await machine.host.resolve('peer.example', 100)).toEqual([]);
    expect(await machine.host.links()).toContain('cpn0');
  });

  test('the source address of a route is found without sending, and null without a route', async () => {
    await using machine = await startTunnel({ add: 'address', address: address6 }, ...addRoutes('10.1.0.0/16'));
    const sourceOf = (text: string) => machine.host.sourceAddress(parseAddress(text));
    expect(await sourceOf('127.0.0.1')).toBe('127.0.0.1');
    expect(await sourceOf('10.1.2.3')).toBe('10.77.0.5');
    // An IPv6 address is tentative until a worker of the kernel has looked at it, and no source before.
    await vi.waitFor(async () => expect(await sourceOf('fd77::9')).toBe('fd77::5'), { timeout: 10_000 });
    expect(await sourceOf('203.0.113.1')).toBeNull();
    expect(await sourceOf('2001:db8::1')).toBeNull();
    expect(machine.spawned).toEqual([]);
  });

  test('a UDP port is free where no socket has it, over IPv4 or IPv6', async () => {
    await using machine = await startTunnel();
    const port = (await machine.host.observe(question)).device?.listenPort ?? 0;
    expect(port).toBeGreaterThan(0);
    await machine.sh(`timeout 20 ${process.execPath} -e "require('dgram').createSocket({ type: 'udp6', ipv6Only: true }).bind(8000, () => console.log('open'))" >/run/server 2>&1 &
      for try in $(seq 200); do grep -q open /run/server && exit; sleep 0.05; done; cat /run/server; exit 1`);
    // wireguard-go opens its sockets some time after the interface is up.
    await vi.waitFor(async () => expect(await machine.host.isPortFree(port)).toBe(false), bounded);
    expect(await machine.host.isPortFree(8000)).toBe(false);
    expect(await machine.host.isPortFree(8001)).toBe(true);
    expect(machine.spawned).toEqual([]);
  });

  test('a host of the LAN is reachable where its port accepts a connection, or where it answers a ping', async () => {
    await using machine = await Machine.start();
    // The second end of the cable speaks no IP: to .9 nothing is ever answered.
    await machine.sh(`ip link set lo up; ip link add lan0 type veth peer name lan1; ip link set lan1 up; ip link set lan0 up
      ip address add 192.168.50.1/24 dev lan0; ip neigh add 192.168.50.9 lladdr 02:00:00:00:00:09 dev lan0
      timeout 20 ${process.execPath} -e "require('net').createServer().listen(8000, () => console.log('open'))" >/run/server 2>&1 &
      for try in $(seq 200); do grep -q open /run/server && exit; sleep 0.05; done; cat /run/server; exit 1`);
    const reaches = (text: string, port: number | null) =>
      machine.host.probe({ address: parseAddress(text), port }, 500);
    expect(await reaches('192.168.50.1', 8000)).toBe(true);
    expect(await reaches('192.168.50.1', 8001)).toBe(false);
    expect(await reaches('192.168.50.9', 8000)).toBe(false);
    expect(await reaches('203.0.113.1', 8000)).toBe(false);
    expect(machine.spawned).toEqual([]);
    expect(await reaches('192.168.50.1', null)).toBe(true);
    expect(await reaches('::1', null)).toBe(true);
    expect(await reaches('192.168.50.9', null)).toBe(false);
    expect(await reaches('203.0.113.1', null)).toBe(false);
    expect(machine.spawned).toEqual(['ping -n -q -c 1 -W 0.5 203.0.113.1']);
  });

  test('a ping that this host cannot send is an error, and no evidence about the target', async () => {
    await using machine = await Machine.start();
    await machine.sh(`ip link set lo up; printf '#!/bin/sh\necho "ping: socket: Operation not permitted" >&2; exit 2\n' >/run/ping
      chmod +x /run/ping; mount --bind /run/ping "$(command -v ping)"`);
    await expect(machine.host.probe({ address: parseAddress('127.0.0.1'), port: null }, 500)).rejects.toMatchObject({
      name: 'CommandFailed',
      message: expect.stringContaining('Operation not permitted'),
    });
    await machine.sh(`umount "$(command -v ping)"; chmod -x /run/ping; mount --bind /run/ping "$(command -v ping)"`);
    await expect(machine.host.probe({ address: parseAddress('127.0.0.1'), port: null }, 500)).rejects.toMatchObject({
      name: 'MissingTool',
      message: 'ping was not found on this host; install it: apt install iputils-ping',
    });
  });

  test('triggerHandshake makes WireGuard start a handshake, and is no error where it cannot', async () => {
    await using machine = await startTunnel();
    const { host } = machine;
    const peer = makePeer({ endpoint: at('127.0.0.1', 9999) });
    await host.apply(configure({ privateKey: newKeyPair().privateKey, peers: [peer] }));
    expect(peersOf(await host.observe(question))).toEqual([silent(peer)]);
    await host.triggerHandshake(parseAddress('10.77.0.9'));
    await vi.waitFor(async () => expect(peersOf(await host.observe(question))[0]?.txBytes).toBe(148), {
      timeout: 10_000,
    });
    await host.triggerHandshake(parseAddress('10.77.0.8'));
    await host.triggerHandshake(parseAddress('203.0.113.1'));
    await host.triggerHandshake(parseAddress('2001:db8::1'));
  });
});
