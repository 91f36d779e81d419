import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import type { Host } from './host.ts';
import { Lab } from './lab.ts';
import { Process } from './process.ts';
import { run } from './run.ts';

const LAB = JSON.stringify(join(import.meta.dirname, 'lab.ts'));

/** The processes on this machine that belong to the lab with this folder. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'utf8').includes(`CPN_LAB=${folder}\0`);
    } catch {
      return false;
    }
  });
}

describe('hosts', () => {
  let lab: Lab;
  let origin: Host;
  let connector: Host;

  beforeAll(async () => {
    lab = await Lab.start();
    [origin, connector] = await Promise.all([
      lab.addHost('origin', { address: ['203.0.113.22/24', '2001:db8::22/64'], gateway: '203.0.113.1' }),
      lab.addHost('connector', { address: ['203.0.113.30/24', '2001:db8::30/64'] }),
    ]);
  });
  afterAll(() => lab?.stop());

  test('reach each other through the wan, over both families', async () => {
    expect(await origin.ping(connector.address, { count: 2 })).toEqual({ sent: 2, received: 2 });
    expect(await connector.ping('2001:db8::22')).toEqual({ sent: 1, received: 1 });
    expect(await origin.ping('203.0.113.99', { waitMs: 200 })).toEqual({ sent: 1, received: 0 });
  });

  test('are hosts of their own: name, processes, /etc, /run', async () => {
    expect((await origin.exec(['hostname'])).stdout).toBe('origin\n');
    expect((await origin.exec(['ps', '-e', '-o', 'comm='])).stdout.split(/\s+/)).toEqual(['cat', 'ps', '']);
    await appendFile(join(origin.etcDir, 'hosts'), '203.0.113.30 connector.example\n');
    expect((await origin.exec(['getent', 'hosts', 'connector.example'])).stdout).toContain('203.0.113.30');
    expect((await connector.exec(['getent', 'hosts', 'connector.example'], { allowFailure: true })).stdout).toBe('');
    // A program that replaces the file by renaming works as on a real host, and none can change the machine's own.
    await origin.exec(['sh', '-c', 'echo nameserver 192.0.2.1 >/etc/new && mv /etc/new /etc/resolv.conf']);
    expect(readFileSync('/etc/resolv.conf', 'utf8')).not.toContain('192.0.2.1');
    await expect(origin.exec(['sh', '-c', 'echo >>/etc/passwd'])).rejects.toThrow(/[Rr]ead-only|Permission denied/);
  });

  test('run programs with input, environment, failures and deadlines', async () => {
    const argv = ['sh', '-c', 'cat; echo "$GREETING $CPN_STATE_DIR" >&2; exit 3'];
    const outcome = await origin.exec(argv, { input: 'in', env: { GREETING: 'hello' }, allowFailure: true });
    expect(outcome).toEqual({ stdout: 'in', stderr: `hello ${origin.stateDir}\n`, exitCode: 3, signal: null });
    await expect(origin.exec(argv)).rejects.toThrow('exit code 3');
    await expect(origin.exec(['sleep', '60'], { timeoutMs: 100 })).rejects.toThrow('longer than 100 ms');
    expect((await origin.exec(['ps', '-e', '-o', 'comm='])).stdout).not.toContain('sleep');
  });

  test('run daemons, whose lines can be waited for and which get the signals themselves', async () => {
    const script = 'trap "echo bye; exit 7" TERM; echo ready 1; echo ready 2; while :; do sleep 0.05; done';
    const daemon = origin.spawn(['sh', '-c', script]);
    expect((await daemon.waitForLine(/ready (\d)/))[1]).toBe('1');
    expect((await daemon.waitForLine(/ready (\d)/))[1]).toBe('2');
    await expect(daemon.waitForLine(/ready/, 50)).rejects.toThrow('no line like /ready/ within 50 ms');
    const { exitCode, stdout } = await daemon.stop();
    expect({ exitCode, stdout }).toEqual({ exitCode: 7, stdout: 'ready 1\nready 2\nbye\n' });
    await expect(daemon.waitForLine(/more/)).rejects.toThrow('ended without a line');
  });

  test('lose their link and get it back', async () => {
    const carrier = async (): Promise<string> =>
      (await origin.exec(['cat', '/sys/class/net/eth0/carrier'])).stdout.trim();
    await origin.uplink.cut();
    expect(await origin.ping(connector.address, { waitMs: 200 })).toMatchObject({ received: 0 });
    expect(await carrier()).toBe('1');
    await origin.uplink.unplug();
    expect(await carrier()).toBe('0');
    await origin.uplink.restore();
    await eventually('the wan is back', async () => (await origin.ping(connector.address)).received === 1);
  });

  test('keep their disk and cards over a reboot, and nothing else', async () => {
    const before = await origin.state();
    await mkdir(origin.stateDir);
    await writeFile(join(origin.stateDir, 'kept'), '');
    await origin.exec(['sh', '-c', 'mkdir /run/cpn && ip link add vx type bridge && sleep 60 & exit 0']);
    await origin.reboot();
    const added = (await origin.state()).split('\n').filter((line) => !before.includes(line));
    expect(added).toEqual(['state 0755 folder', expect.stringMatching(/^state\/kept 0644 0 bytes/)]);
    expect(await connector.ping(origin.address)).toEqual({ sent: 1, received: 1 });
  });
});

describe('networks behind a router', () => {
  let lab: Lab;
  let server: Host;

  beforeAll(async () => {
    lab = await Lab.start();
    server = await lab.addHost('server', { address: '203.0.113.10/24' });
  });
  afterAll(() => lab?.stop());

  test('behind NAT: out, but not in', async () => {
    const home = await lab.addNat('home', { outside: '203.0.113.40/24', inside: '192.168.1.1/24' });
    const laptop = await home.addHost('laptop', '192.168.1.10/24');
    expect(await laptop.ping(server.address)).toEqual({ sent: 1, received: 1 });
    await server.exec(['ip', 'route', 'add', '192.168.1.0/24', 'via', home.router.address]);
    expect(await server.ping(home.router.address)).toMatchObject({ received: 1 });
    expect(await server.ping(laptop.address, { waitMs: 200 })).toMatchObject({ received: 0 });
  });

  test('behind a connector: reached by its router only, until that forwards and masquerades', async () => {
    const connector = await lab.addHost('connector', { address: '203.0.113.30/24' });
    const lan = await lab.addLan(connector, '192.168.50.1/24');
    const printer = await lan.addHost('printer', '192.168.50.10/24');
    const nas = await lan.addHost('nas', '192.168.50.11/24', { routed: true });
    await server.exec(['ip', 'route', 'add', '192.168.50.0/24', 'via', connector.address]);
    expect(await connector.ping(printer.address)).toMatchObject({ received: 1 });
    expect(await server.ping(nas.address, { waitMs: 200 })).toMatchObject({ received: 0 });
    await connector.exec(['sysctl', '-q', '-w', 'net.ipv4.ip_forward=1']);
    expect(await server.ping(nas.address)).toMatchObject({ received: 1 });
    expect(await server.ping(printer.address, { waitMs: 200 })).toMatchObject({ received: 0 });
    const masquerade = 'table ip t { chain c { type nat hook postrouting priority 100; oifname "eth1" masquerade; }; }';
    await connector.exec(['nft', masquerade]);
    expect(await server.ping(printer.address)).toMatchObject({ received: 1 });
  });
});

test('a WireGuard tunnel stands between two hosts, with the same interface name on both', async () => {
  await using lab = await Lab.start();
  const ends = await Promise.all(
    [1, 2].map(async (number) => {
      const host = await lab.addHost(`host${number}`, { address: `203.0.113.${number}/24` });
      const privateKey = (await host.exec(['wg', 'genkey'])).stdout;
      return { host, privateKey, publicKey: (await host.exec(['wg', 'pubkey'], { input: privateKey })).stdout.trim() };
    }),
  );
  const [one, two] = ends as [(typeof ends)[0], (typeof ends)[0]];
  const conf = (self: typeof one, peer: typeof one, peerAddress: string): string =>
    `[Interface]\nPrivateKey = ${self.privateKey}ListenPort = 51820\n` +
    `[Peer]\nPublicKey = ${peer.publicKey}\nEndpoint = ${peer.host.address}:51820\nAllowedIPs = ${peerAddress}/32\n`;
  for (const [self, peer, address, peerAddress] of [
    [one, two, '10.77.0.1', '10.77.0.2'],
    [two, one, '10.77.0.2', '10.77.0.1'],
  ] as const) {
    const script = `ip link add wg0 type wireguard 2>/dev/null || wireguard-go wg0
      wg setconf wg0 /dev/stdin && ip address add ${address}/24 dev wg0 && ip link set wg0 up`;
    await self.host.exec(['sh', '-e', '-c', script], { input: conf(self, peer, peerAddress) });
  }
  expect(await one.host.ping('10.77.0.2', { count: 2 })).toMatchObject({ received: 2 });
  expect(await one.host.state()).toContain('wg0 peer ');
  expect(await one.host.state()).not.toContain(one.privateKey.trim());
});

describe('state', () => {
  let lab: Lab;
  let host: Host;

  beforeAll(async () => {
    lab = await Lab.start();
    host = await lab.addHost('host', { address: ['203.0.113.1/24', '2001:db8::1/64'] });
  });
  afterAll(() => lab?.stop());

  test('is the same after something was done and undone', async () => {
    const before = await host.state();
    await host.exec(['ip', 'tuntap', 'add', 'dev', 't0', 'mode', 'tun']);
    await host.exec(['ip', 'link', 'set', 't0', 'up']);
    expect(await host.state()).not.toBe(before);
    await host.exec(['ip', 'link', 'delete', 't0']);
    await host.ping('203.0.113.99', { waitMs: 200 });
    expect(await host.state()).toBe(before);
  });

  test.each([
    ['an address', 'ip address add 10.0.0.1/32 dev eth0', 'ip address delete 10.0.0.1/32 dev eth0'],
    ['a route in a table', 'ip route add 10.9.0.0/24 dev eth0 table 77', 'ip route delete 10.9.0.0/24 table 77'],
    ['an IPv6 rule', 'ip -6 rule add from 2001:db8:1::/48 table 77', 'ip -6 rule delete table 77'],
    ['an MTU', 'ip link set eth0 mtu 1400', 'ip link set eth0 mtu 1500'],
    ['an nft table', 'nft add table inet x', 'nft delete table inet x'],
    ['a sysctl', 'sysctl -w net.ipv4.ip_forward=1', 'sysctl -w net.ipv4.ip_forward=0'],
    ['a file', 'touch "$CPN_CONFIG_DIR/x"', 'rm "$CPN_CONFIG_DIR/x"'],
    ['a file of the system', 'cp -p /etc/hosts /run/h; echo 1 >>/etc/hosts', 'cp /run/h /etc/hosts; rm /run/h'],
    ['a process', 'setsid sleep 61 >/dev/null 2>&1 &', 'pkill -x sleep'],
  ])('shows %s, and that it was undone', async (_what, change, undo) => {
    const before = await host.state();
    await host.exec(['sh', '-c', change]);
    expect(await host.state()).not.toBe(before);
    await host.exec(['sh', '-c', undo]);
    await eventually('undone', async () => (await host.state()) === before, { timeoutMs: 2000 });
  });
});

describe('the end of a lab', () => {
  test('takes every process and the folder with it', async () => {
    const lab = await Lab.start();
    const host = await lab.addHost('host', { address: '203.0.113.1/24' });
    await host.exec(['wireguard-go', 'wg0']);
    const daemon = host.spawn(['sleep', '60']);
    await eventually('the daemon runs', () => daemon.pid);
    expect(processesOf(lab.folder).length).toBeGreaterThan(3);
    await lab.stop();
    expect((await daemon.exited).signal).toBe('SIGKILL');
    await eventually('all are gone', () => processesOf(lab.folder).length === 0);
    expect(existsSync(lab.folder)).toBe(false);
  });

  test.each(['SIGKILL', 'SIGTERM', 'SIGINT', 'an uncaught exception'])(
    'comes with the end of its owner by %s',
    async (how) => {
      const script = `const { Lab } = await import(${LAB});
      const lab = await Lab.start();
      const host = await lab.addHost('host', { address: '203.0.113.1/24' });
      host.spawn(['sleep', '60']);
      console.log('lab ' + lab.folder);
      process.stdin.resume().on('end', () => { throw new Error('uncaught'); });`;
      const owner = new Process([process.execPath, '--input-type=module', '-e', script], { holdInput: true });
      const folder = (await owner.waitForLine(/^lab (.*)/))[1] ?? '';
      expect(processesOf(folder).length).toBeGreaterThan(3);
      if (how.startsWith('SIG')) owner.signal(how as NodeJS.Signals);
      else owner.closeInput();
      await owner.exited;
      await eventually('all are gone', () => processesOf(folder).length === 0 && !existsSync(folder));
    },
  );

  test('needs no stop: an owner with nothing left to do ends', async () => {
    const script = `const { Lab } = await import(${LAB});
      await (await Lab.start()).addHost('host', { address: '203.0.113.1/24' });`;
    await run([process.execPath, '--input-type=module', '-e', script], { timeoutMs: 10_000 });
  });
});

test('where there can be no lab, starting one fails with what is needed', async () => {
  const script = `const { Lab } = await import(${LAB}); await Lab.start();`;
  const argv = [process.execPath, '--input-type=module', '-e', script];
  const { stderr, exitCode } = await run(argv, { env: { PATH: '/nonexistent' }, allowFailure: true });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/no lab on this machine: the commands unshare, .*: run scripts\/setup/);
});
