import { writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { type Office, startOffice } from './office.ts';

let office: Office;
let host: Host;
let before: string;
let key: string;

beforeAll(async () => {
  office = await startOffice();
  host = await office.lab.addHost('newcomer', { address: '203.0.113.22/24' });
  await host.exec(['ip', 'link', 'add', 'theirs0', 'type', 'bridge']);
  await writeFile(path(host.configDir, 'wg9.conf'), '[Interface]\n');
  key = await makeKey(office.controlPlane, 'office', 'newcomer');
  before = await host.state();
}, 60_000);

afterAll(() => office?.lab.stop());

/** Runs a command that must fail, and checks that it changed nothing and printed one line. */
async function fail(args: readonly string[], options: { input?: string; within?: string[] } = {}) {
  const within = options.within ?? [];
  const program = path(import.meta.dirname, '../../dist/cpn.js');
  const { exitCode, stderr, stdout } = await host.exec([...within, program, ...args], {
    input: options.input ?? key,
    allowFailure: true,
    timeoutMs: 60_000,
  });
  const lines = stderr
    .trim()
    .split('\n')
    .filter((line) => !line.startsWith('·'));
  expect(stdout).toBe('');
  expect(lines).toHaveLength(1);
  expect(await host.state()).toBe(before);
  return { exitCode, line: lines[0] ?? '' };
}

const join = (...flags: string[]) => ['join', '-', ...office.api, ...flags];

describe('bad input changes nothing, and one line reports the fault and the remedy', () => {
  it.each<[string, () => string[], RegExp, string?]>([
    ['a wrong key prefix', () => join(), /must begin with "cpn_"/, 'cps_0123456789'],
    ['an empty key', () => join(), /enrolment key on standard input is empty/, ' \n'],
    ['a key of 129 characters', () => join(), /at most 128 characters/, `cpn_${'x'.repeat(125)}`],
    [
      'a name of 121 characters',
      () => join('--name', 'n'.repeat(121)),
      /name "n+\.\.\." must be at most 120 characters/,
    ],
    [
      'an unknown type',
      () => join('--type', 'router'),
      /--type "router" must be one of connector, admin_device, origin/,
    ],
    [
      'a probe target that is none',
      () => join('--type', 'connector', '--probe', '192.168.50.0/24'),
      /--probe "192\.168\.50\.0\/24" is not an endpoint; write HOST:PORT/,
    ],
    [
      'a probe target of a host that is no connector',
      () => join('--probe', '192.168.50.20:80'),
      /--probe is for the LAN behind a connector; leave it out, or join with --type connector/,
    ],
    [
      'more probe targets than a round has room for',
      () =>
        join('--type', 'connector', ...Array.from({ length: 17 }, (_, at) => ['--probe', `192.168.50.${at}`]).flat()),
      /--probe was given 17 times; name at most 16 hosts/,
    ],
    [
      'a network secret that is none',
      () => join('--network-secret-file', '/dev/null'),
      /--network-secret-file \/dev\/null is empty; make one with "openssl rand -base64 48"/,
    ],
    [
      'a network secret that is nowhere',
      () => join('--network-secret-file', 'file:/nowhere/secret'),
      /the network secret cannot be read from \/nowhere\/secret \(ENOENT\)/,
    ],
    [
      'an endpoint without a port',
      () => join('--endpoint', '203.0.113.22'),
      /--endpoint "203\.0\.113\.22" is not an endpoint; write HOST:PORT/,
    ],
    [
      'an interface with a slash',
      () => join('--interface', 'a/b'),
      /--interface "a\/b" is not an interface name; use 1 to 15/,
    ],
    ['an interface of 16 characters', () => join('--interface', 'a'.repeat(16)), /is not an interface name/],
    [
      'an interface of another program',
      () => join('--interface', 'theirs0'),
      /"theirs0" exists and was not made by cpn; choose another/,
    ],
    [
      'a wg-quick file of another program',
      () => join('--interface', 'wg9'),
      /wg9\.conf" exists and was not made by cpn/,
    ],
    ['a port that is none', () => join('--listen-port', 'abc'), /--listen-port "abc" is not a number from 1 to 65535/],
    ['a flag given twice', () => join('--name', 'a', '--name', 'b'), /--name was given 2 times; give it once/],
    [
      'a route with host bits',
      () => join('--allow-route', '192.168.50.7/24'),
      /has host bits set; you probably mean 192\.168\.50\.0\/24/,
    ],
    ['an unknown flag', () => join('--colour'), /colour/],
    ['an unknown command', () => ['jion'], /join/],
    ['no API', () => ['join', '-'], /--api is missing/],
    ['an API that is no address', () => ['join', '-', '--api', 'cp.example.net'], /--api "cp\.example\.net" is not/],
    [
      'plain http beyond loopback',
      () => ['join', '-', '--api', 'http://203.0.113.1:8787'],
      /plain http.*--insecure-http/,
    ],
    ['a network that is not joined', () => ['status', 'elsewhere'], /has not joined a network "elsewhere"/],
  ])('%s', async (_what, args, message, input) => {
    const { exitCode, line } = await fail(args(), { input: input ?? key });
    expect(line).toMatch(message);
    expect(exitCode).toBe(2);
  });

  it.each<[string, RegExp, () => Promise<string>]>([
    ['unknown', /refused \(401\)/, async () => `cpn_${'x'.repeat(40)}`],
    [
      'used up',
      /refused \(403\).*used up/,
      async () => {
        const spent = await makeKey(office.controlPlane, 'office', 'spent');
        const spender = await office.lab.addHost('spender', { address: '203.0.113.99/24' });
        await spender.cpn(['join', '-', ...office.api], { input: spent });
        return spent;
      },
    ],
  ])('refuses a key that is %s', async (_what, message, make) => {
    const { exitCode, line } = await fail(join(), { input: await make() });
    expect(line).toMatch(message);
    expect(line).toMatch(/cpn key create/);
    expect(exitCode).toBe(4);
  });

  it('refuses a CIDR with host bits', async () => {
    const { exitCode, stderr } = await office.controlPlane.host.cpn(
      ['network', 'create', '--name', 'x', '--cidr', '10.78.0.5/24'],
      { allowFailure: true },
    );
    expect(stderr).toMatch(/--cidr.*10\.78\.0\.0\/24/);
    expect(exitCode).toBe(2);
    const { stdout } = await office.controlPlane.cpn(['network', 'list', '--json']);
    expect(JSON.parse(stdout).networks).toHaveLength(1);
  });

  it('refuses to join without root', async () => {
    const { exitCode, line } = await fail(join(), {
      within: ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all'],
    });
    expect(line).toMatch(/needs root \(CAP_NET_ADMIN\); .*sudo/);
    expect(exitCode).toBe(1);
  });

  it('refuses to join without wg', async () => {
    const hidden = ['unshare', '--mount', 'sh', '-c', 'mount --bind /dev/null "$(command -v wg)"; exec "$@"', 'sh'];
    const { exitCode, line } = await fail(join(), { within: hidden });
    expect(line).toMatch(/wg was not found on this host; .*wireguard-tools/);
    expect(exitCode).toBe(1);
  });

  it('reports that nothing listens at the API', async () => {
    const { exitCode, line } = await fail(['join', '-', '--api', 'http://127.0.0.1:9']);
    expect(line).toMatch(/control plane at http:\/\/127\.0\.0\.1:9 is unreachable/);
    expect(exitCode).toBe(5);
  });
});

describe('a reply that does not decode leaves the host as it is, and the join resumable', () => {
  it.each<[string, string, string, RegExp, number]>([
    [
      'is a page of a captive portal',
      'text/html',
      '<html>sign in</html>',
      /a captive portal or proxy answers in place of the control plane at http:\/\/127\.0\.0\.1:8080 \(it answered with HTML\)/,
      5,
    ],
    [
      'lacks a field',
      'application/json',
      '{"data":{"peer":{"id":1,"name":"x"},"network":{"id":1}}}',
      /lacks network\.peers \(it has: id\)/,
      1,
    ],
  ])('%s', async (_what, type, body, message, code) => {
    const lost = await office.lab.addHost(`lost-${type.replace(/\W/g, '-')}`, {
      address: `203.0.113.${type.length + 100}/24`,
    });
    const network = async () => (await lost.state()).split('# files')[0];
    const server = lost.spawn(['node', path(import.meta.dirname, 'fixed-reply-server.ts'), '8080', '201', type, body]);
    await server.waitForLine(/listening/);
    const unchanged = await network();
    const { exitCode, stderr, stdout } = await lost.cpn(['join', '-', '--api', 'http://127.0.0.1:8080'], {
      input: key,
      allowFailure: true,
    });
    expect(stderr).toMatch(message);
    expect([exitCode, stdout]).toEqual([code, '']);
    expect(await network()).toBe(unchanged);
    server.signal('SIGKILL');
    await server.exited;
    await lost.cpn(['leave', '--yes', '--verify']);
  });
});
