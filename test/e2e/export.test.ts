import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtProgram } from '../lab/built-program.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice } from './office.ts';

let office: Office;
let connector: Host;
let laptop: Host;
/** A machine without `cpn`, and without its files. */
let elsewhere: Host;
/** What the laptop exports for wg-quick, and its key. */
let text: string;
let privateKey: string;

beforeAll(async () => {
  office = await startOffice();
  const { lab } = office;
  connector = await lab.addHost('connector', { address: '203.0.113.11/24' });
  laptop = await lab.addHost('laptop', { address: '203.0.113.33/24' });
  elsewhere = await lab.addHost('elsewhere', { address: '203.0.113.44/24' });
  const secret = randomBytes(48).toString('base64');
  for (const host of [connector, laptop, admin()]) await writeFile(secretFile(host), secret, { mode: 0o600 });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820', ...withSecret(connector));
  await join(office, laptop, '--type', 'admin_device', ...withSecret(laptop));
  await connector.cpn(['reconcile']);
  text = (await laptop.cpn(['export'])).stdout;
  privateKey = /^PrivateKey = (.*)$/m.exec(text)?.[1] ?? '';
});

afterAll(() => office?.lab.stop());

const secretFile = (host: Host) => path(host.homeDir, 'network-secret');
const withSecret = (host: Host) => ['--network-secret-file', secretFile(host)];
const admin = () => office.controlPlane.host;
const peerNames = async (): Promise<string[]> =>
  JSON.parse((await office.controlPlane.cpn(['peer', 'list', 'office', '--json'])).stdout).peers.map(
    ({ name }: { name: string }) => name,
  );

/** What `wg` has of an interface, in an order of its own. */
async function showConfig(host: Host, link: string): Promise<string[]> {
  const { stdout } = await host.exec(['wg', 'showconf', link]);
  return stdout
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('ListenPort'))
    .map((line) => line.replace(/(?<=^AllowedIPs = ).*/, (list) => list.split(', ').sort().join(', ')))
    .sort();
}

/** Runs a command on a terminal with this number of columns; returns both outputs. */
async function onTerminal(host: Host, args: string[], columns = 200) {
  const command = `stty rows 80 cols ${columns}; exec ${await builtProgram()} ${args.join(' ')}`;
  const env = { SHELL: '/bin/sh', TERM: 'xterm', LANG: 'C.UTF-8' };
  const outcome = await host.exec(['script', '-qefc', command, '/dev/null'], { env, allowFailure: true });
  return { exitCode: outcome.exitCode, output: outcome.stdout.replaceAll('\r', '') };
}

/** The daemon of systemd, which waits for no udev where /sys is not to be written to, as in a container. */
function startNetworkd(host: Host) {
  const script = 'mount -o remount,bind,ro /sys && exec /lib/systemd/systemd-networkd 2>&1';
  return host.spawn(['unshare', '--mount', 'sh', '-c', script], { env: { SYSTEMD_LOG_LEVEL: 'debug' } });
}

/** What a camera reads from a QR code on a terminal, where a block is light. */
async function scan(host: Host, output: string): Promise<string> {
  const rows = stripVTControlCharacters(output)
    .split('\n')
    .filter((line) => /^[█▀▄ ]{20,}$/.test(line));
  const halves = rows.flatMap((row) => ['█▀', '█▄'].map((light) => [...row].map((block) => light.includes(block))));
  const scale = 4;
  const enlarge = <T>(list: readonly T[]) => list.flatMap((each) => Array<T>(scale).fill(each));
  const pixels = enlarge(halves).map((row) => enlarge(row).map((light) => (light ? '1' : '0')));
  const image = path(host.homeDir, 'code.pgm');
  await writeFile(
    image,
    `P2\n${pixels[0]?.length} ${pixels.length}\n1\n${pixels.map((row) => row.join(' ')).join('\n')}\n`,
  );
  const { stdout } = await host.exec(['zbarimg', '--quiet', '--raw', '-Sdisable', '-Sqrcode.enable', image]);
  return stdout;
}

describe('cpn export', () => {
  it('gives wg-quick what this host has in its kernel', async () => {
    await mkdir(path(elsewhere.etcDir, 'wireguard'), { recursive: true });
    await writeFile(path(elsewhere.etcDir, 'wireguard/wg0.conf'), text, { mode: 0o600 });
    await elsewhere.exec(['wg-quick', 'up', 'wg0']);
    expect(await showConfig(elsewhere, 'wg0')).toEqual(await showConfig(laptop, 'cpn0'));
    await elsewhere.exec(['wg-quick', 'down', 'wg0']);
  });

  it('gives a phone a QR code that a camera reads', async () => {
    const { exitCode, output } = await onTerminal(laptop, ['export', '--qr']);
    expect(exitCode).toBe(0);
    expect((await scan(laptop, output)).trimEnd()).toBe(text.trimEnd());
    expect(stripVTControlCharacters(output)).not.toContain(privateKey);
  });

  it('shows no key to a terminal, and keeps files from others', async () => {
    const { exitCode, output } = await onTerminal(laptop, ['export']);
    expect([exitCode, output]).toEqual([2, expect.stringContaining('which would stay on the terminal')]);
    expect(output).not.toContain(privateKey);
    const file = path(laptop.homeDir, 'wg0.conf');
    await laptop.cpn(['export', '--output', file]);
    expect([await readFile(file, 'utf8'), (await stat(file)).mode & 0o777]).toEqual([text, 0o600]);
    const again = await laptop.cpn(['export', '--output', file], { allowFailure: true });
    expect([again.exitCode, again.stderr]).toEqual([2, expect.stringContaining('already exists')]);
    expect(await readFile(file, 'utf8')).toBe(text);
    const program = path(import.meta.dirname, '../../dist/cpn.js');
    const warning =
      'other users can read the file to which the private key is written (mode 0644); run: chmod 600 FILE';
    for (const [mask, isReadable] of [
      ['022', true],
      ['077', false],
    ] as const) {
      const into = `umask ${mask}; rm -f wg1.conf; exec ${program} export >wg1.conf`;
      expect((await laptop.exec(['sh', '-c', `cd ${laptop.homeDir}; ${into}`])).stderr.includes(warning)).toBe(
        isReadable,
      );
    }
  });

  it('gives NetworkManager a connection that it holds for valid, and means the same', async () => {
    const file = path(laptop.homeDir, 'wg0.nmconnection');
    await laptop.cpn(['export', '--format', 'networkmanager', '--output', file]);
    const { stdout } = await laptop.exec(['/usr/bin/python3', path(import.meta.dirname, 'read-keyfile.py'), file]);
    const read = JSON.parse(stdout);
    expect(read.complaints).toEqual([]);
    expect(read).toMatchObject({
      link: 'wg0',
      type: 'wireguard',
      private_key: privateKey,
      addresses: ['10.77.0.2/24'],
    });
    const fields = (key: string) => [...text.matchAll(new RegExp(`^${key} = (.*)$`, 'gm'))].map(([, value]) => value);
    expect(read.peers).toEqual([
      {
        public_key: fields('PublicKey')[0],
        preshared_key: fields('PresharedKey')[0],
        endpoint: fields('Endpoint')[0],
        allowed_ips: fields('AllowedIPs')[0]?.split(', '),
        keepalive: Number(fields('PersistentKeepalive')[0]),
      },
    ]);
  });

  it('gives systemd-networkd units in which it understands every line, and a tunnel that works', async () => {
    const folder = path(elsewhere.folder, 'run/systemd/network');
    await mkdir(folder, { recursive: true });
    await laptop.cpn(['export', '--format', 'networkd', '--output', path(folder, '70-wg0.netdev')]);
    await laptop.cpn(['down']);
    // As the command's output instructs: networkd drops root before it reads its files.
    const units = ['70-wg0.netdev', '70-wg0.network'].map((name) => `/run/systemd/network/${name}`);
    await elsewhere.exec(['sh', '-c', `chgrp systemd-network ${units.join(' ')} && chmod 640 ${units.join(' ')}`]);
    const [device, network] = units;
    const first = startNetworkd(elsewhere);
    await first.waitForLine(/wg0: loaded "wireguard"/);
    await first.waitForLine(/Enumeration completed/);
    await elsewhere.exec(['rm', `${device}`]);
    const { stdout } = await first.stop(10_000);
    expect(stdout).not.toMatch(/70-wg0\.[a-z]+:\d+/);

    // It makes no device where the kernel has no WireGuard: it is given the one that wg-quick makes, without address and routes.
    await elsewhere.exec(['ip', 'link', 'del', 'wg0'], { allowFailure: true });
    await elsewhere.exec(['wg-quick', 'up', 'wg0']);
    await elsewhere.exec(['sh', '-c', 'ip route flush dev wg0; ip address flush dev wg0']);
    const second = startNetworkd(elsewhere);
    await second.waitForLine(/wg0: State changed: configuring -> configured/);
    const routes = JSON.parse((await elsewhere.exec(['ip', '-j', 'route', 'show', 'dev', 'wg0'])).stdout);
    expect(routes.map(({ dst }: { dst: string }) => dst).toSorted()).toEqual(['10.77.0.0/24', '192.168.50.0/24']);
    expect(await elsewhere.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
    expect((await second.stop(10_000)).stdout).toContain(`${network}`);
    await elsewhere.exec(['ip', 'link', 'del', 'wg0']);
  });
});

describe('cpn export --new-peer', () => {
  it('enrols a device that reaches the network, and leaves nothing here', async () => {
    const conf = path(admin().homeDir, 'phone.conf');
    const outcome = await admin().cpn([
      'export',
      'office',
      '--new-peer',
      'phone',
      '--output',
      conf,
      ...withSecret(admin()),
    ]);
    expect(outcome.stdout).toBe('');
    expect(await peerNames()).toContain('phone');
    await connector.cpn(['reconcile']);
    await copyFile(conf, path(elsewhere.etcDir, 'wireguard/wg1.conf'));
    // What a test before this one may have left there leads to the same network.
    await elsewhere.exec(['ip', 'link', 'del', 'wg0'], { allowFailure: true });
    await elsewhere.exec(['wg-quick', 'up', 'wg1']);
    expect(await elsewhere.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
    await expect(readdir(admin().stateDir)).rejects.toThrow('ENOENT');
  });

  it('takes the device back where its text cannot be handed over', async () => {
    const before = await peerNames();
    const { exitCode, output } = await onTerminal(admin(), ['export', 'office', '--new-peer', 'tablet', '--qr'], 30);
    expect([exitCode, output]).toEqual([2, expect.stringContaining('columns wide, this terminal 30')]);
    expect(await peerNames()).toEqual(before);
  });
});
