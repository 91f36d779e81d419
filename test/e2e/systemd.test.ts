import { mkdir, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Daemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import type { Process } from '../lab/process.ts';
import { type Office, startOffice } from './office.ts';

let office: Office;
let host: Host;
let config: string;

beforeAll(async () => {
  office = await startOffice();
  host = await office.lab.addHost('host', { address: '203.0.113.2/24' });
  config = path(host.folder, 'join.conf');
}, 60_000);

afterAll(() => office?.lab.stop());

const joinFrom = (env: Record<string, string> = {}, ...flags: string[]) =>
  host.cpn(['join', '--from-config', config, ...flags], { env, allowFailure: true });

it('a first boot joins with the key of a credential, and never again', async () => {
  const { controlPlane, api } = office;
  const credentials = path(host.folder, 'credentials');
  const key = async () => (await controlPlane.cpn(['key', 'create', 'office', '--name', 'first'])).stdout;
  const env = { CREDENTIALS_DIRECTORY: credentials };
  await writeFile(config, `api = ${api[1]}\ninsecure-http = yes\nname = first-boot\nwait = 0\nmtu = 1380\n`);
  const keyless = await joinFrom(env);
  expect([keyless.exitCode, keyless.stderr]).toEqual([2, expect.stringContaining('the credential cpn.enrollment-key')]);

  await mkdir(credentials, { mode: 0o700 });
  await writeFile(path(credentials, 'cpn.enrollment-key'), await key(), { mode: 0o400 });
  const first = await joinFrom(env, '--json');
  expect([first.exitCode, JSON.parse(first.stdout)]).toMatchObject([0, { peer: { name: 'first-boot' } }]);

  // Another key, as for a host that is set up again; and none any more.
  await writeFile(path(credentials, 'cpn.enrollment-key'), await key());
  const before = await host.state();
  const second = await joinFrom(env, '--json');
  const third = await joinFrom();
  expect(JSON.parse(second.stdout)).toEqual({ ...JSON.parse(first.stdout), handshake: false });
  expect([third.exitCode, third.stdout]).toEqual([
    0,
    expect.stringMatching(/^already joined office as first-boot: cpn0/),
  ]);
  expect(await host.state()).toBe(before);
  // No systemd runs here that doctor could check.
  for (const { stderr } of [first, second, third]) expect(stderr).not.toContain('cpn.service');
});

it("a service manager receives the daemon's notifications", async () => {
  const socket = path(host.folder, 'notify');
  // systemd-socket-activate listens, and hands the socket over to sh with the first message.
  const reader = host.spawn([
    'systemd-socket-activate',
    '--datagram',
    `--listen=${socket}`,
    '--inetd',
    'sh',
    '-c',
    'exec cat >&2',
  ]);
  await eventually(
    'the socket',
    async () => (await host.exec(['test', '-S', socket], { allowFailure: true })).exitCode === 0,
  );
  const messages = () => messagesOf(reader);
  const env = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '2000000' };
  const daemon = new Daemon(await host.spawnCpn(['run', '--interval', '3600'], { env }));

  await eventually('READY', () => messages().includes('READY=1\nSTATUS=reconciling cpn0'));
  const alive = () => messages().filter((message) => message === 'WATCHDOG=1').length;
  const beats = alive();
  await eventually('two watchdog messages', () => alive() >= beats + 2);

  daemon.process.signal('SIGHUP');
  await eventually(
    'the end of the reload',
    () => messages().filter((message) => message.startsWith('READY=1')).length === 2,
  );
  expect(messages().some((message) => /^RELOADING=1\nMONOTONIC_USEC=\d+$/.test(message))).toBe(true);

  await writeFile(path(host.stateDir, 'cpn0.json'), '{"version": 999}');
  await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
  await eventually('the status of a failure', () =>
    messages().some((message) => /^STATUS=cpn0: .*cpn0\.json/.test(message)),
  );

  await daemon.stop();
  await eventually('STOPPING', () => messages().some((message) => message.startsWith('STOPPING=1\n')));
  await reader.stop();
});

/** Each message is followed by one with which systemd-notify waits for it to be read. */
function messagesOf(reader: Process): string[] {
  const received = reader.output.stderr.replace(/^.*?Execing sh [^\n]*\n/s, '');
  return received.split('BARRIER=1').filter((message) => message !== '');
}
