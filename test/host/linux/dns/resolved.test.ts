import { describe, expect, test } from 'vitest';
import { CommandFailed, MissingTool } from '../../../../src/core/errors/index.ts';
import { readResolverSettings, revertDns, setDns, withoutOwn } from '../../../../src/host/linux/dns/resolved.ts';
import type { Run } from '../../../../src/host/process/run.ts';
import { address } from '../../../core/samples.ts';

/** `busctl --json=short call … GetAll` of systemd 252, without the properties that are not used. */
const manager = {
  DNSEx: {
    type: 'a(iiayqs)',
    data: [
      [12, 2, [192, 168, 50, 53], 0, ''],
      [12, 2, [203, 0, 113, 54], 5335, 'dns.corp.example'],
      [12, 10, [253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 0, ''],
      [2, 2, [203, 0, 113, 53], 0, ''],
    ],
  },
  Domains: {
    type: 'a(isb)',
    data: [
      [12, 'corp.example', true],
      [12, 'search.example', false],
      [2, 'Lan.Example', false],
      [0, 'global.example', true],
      [99, 'gone.example', true],
    ],
  },
  DNSStubListener: { type: 's', data: 'no' },
};
const ofLink = {
  DefaultRoute: { type: 'b', data: false },
  DNSSEC: { type: 's', data: 'no' },
  DNSOverTLS: { type: 's', data: 'no' },
};
const reply = (properties: object) => `${JSON.stringify({ type: 'a{sv}', data: [properties] })}\n`;
const names = new Map([
  [2, 'eth0'],
  [12, 'cpn0'],
]);

function runWith(answer: (args: readonly string[]) => string): { run: Run; commands: string[] } {
  const commands: string[] = [];
  const run = (async (tool: string, args: readonly string[]) => {
    commands.push([tool, ...args].join(' '));
    return answer(args);
  }) as Run;
  return { run, commands };
}
const busy = (args: readonly string[]) => reply(args.some((word) => word.includes('/link/')) ? ofLink : manager);

describe('the settings of systemd-resolved', () => {
  test('are those of our interface, and the domains of all others', async () => {
    const { run, commands } = runWith(busy);
    expect(await readResolverSettings(run, 'cpn0', names)).toEqual({
      program: 'systemd-resolved',
      own: {
        servers: ['192.168.50.53', '203.0.113.54:5335#dns.corp.example', 'fd00::1'],
        domains: ['~corp.example', 'search.example'],
        ...{ isDefaultRoute: false, dnssec: 'no', dnsOverTls: 'no' },
      },
      others: [
        { domain: 'lan.example', link: 'eth0', isSearch: true },
        { domain: 'global.example', link: null },
        { domain: 'gone.example', link: 'number 99' },
      ],
    });
    expect(commands).toHaveLength(2);
    expect(commands[1]).toContain(' /org/freedesktop/resolve1/link/_312 ');
    for (const command of commands) expect(command).toContain('--auto-start=no --timeout=2 call');
  });

  test('have none of an interface without settings, or without the interface', async () => {
    const empty = reply({ ...manager, DNSEx: { data: [] }, Domains: { data: [] }, ...ofLink });
    expect(await readResolverSettings(runWith(() => empty).run, 'cpn0', names)).toEqual({
      program: 'systemd-resolved',
      own: null,
      others: [],
    });
    const { run, commands } = runWith(busy);
    const found = await readResolverSettings(run, 'cpn7', names);
    expect(found?.own).toBeNull();
    expect(found?.others.map(({ link }) => link)).toContain('cpn0');
    expect(commands).toHaveLength(1);
  });

  test.each([
    new CommandFailed('busctl', 1, 'The name org.freedesktop.resolve1 was not provided by any .service files'),
    new MissingTool('busctl', 'install it'),
  ])('are null without systemd-resolved: $name', async (error) => {
    const { run } = runWith(() => {
      throw error;
    });
    expect(await readResolverSettings(run, 'cpn0', names)).toBeNull();
  });

  const socket = (address: string, port = '0035') =>
    `  12: ${address}:${port} 00000000:0000 07 00000000:00000000 00:00000000 00000000   991        0 5012 2 0 0 0\n`;
  test.each([
    ['its stub is there', 'yes', { udp: socket('3500007F') }, true],
    ['its stub takes TCP only', 'tcp', { tcp: socket('3500007F') }, true],
    ['another program took the port', 'yes', { udp: socket('00000000') }, true],
    [
      'its stub is in another network namespace',
      'yes',
      { udp: socket('0100007F') + socket('3500007F', '14E9') },
      false,
    ],
    ['another program listens there, without TCP', 'tcp', { udp: socket('3500007F') }, false],
  ])('are read, or not, if %s', async (_, listener, tables: Record<string, string>, isRead) => {
    const { run, commands } = runWith((args) =>
      args.some((word) => word.includes('/link/'))
        ? reply(ofLink)
        : reply({ ...manager, DNSStubListener: { data: listener } }),
    );
    const read = (path: string) => tables[path.replace('/proc/net/', '')] ?? '';
    expect((await readResolverSettings(run, 'cpn0', names, read)) !== null).toBe(isRead);
    expect(commands).toHaveLength(isRead ? 2 : 1);
  });

  test('are read once the stub is there, which is opened after systemd-resolved is on the bus', async () => {
    let reads = 0;
    const read = () => (++reads > 4 ? socket('3500007F') : '');
    const { run } = runWith((args) =>
      reply(args.some((word) => word.includes('/link/')) ? ofLink : { ...manager, DNSStubListener: { data: 'yes' } }),
    );
    expect(await readResolverSettings(run, 'cpn0', names, read)).not.toBeNull();
  });

  test.each(['', 'x', '{}', '{"data":[]}', '{"data":[7]}'])('are null if the output is none: %j', async (text) => {
    expect(await readResolverSettings(runWith(() => text).run, 'cpn0', names)).toBeNull();
  });
});

test('servers are set last, after all that keeps other names away from them', async () => {
  const { run, commands } = runWith(busy);
  const dns = { servers: [{ address: address('192.168.50.53'), port: 53 }], domains: ['corp.example', 'x.example'] };
  await setDns(run, { do: 'set-dns', link: 'cpn0', dns });
  expect(commands.slice(1)).toEqual([
    'resolvectl default-route cpn0 no',
    'resolvectl dnssec cpn0 no',
    'resolvectl dnsovertls cpn0 no',
    'resolvectl domain cpn0 ~corp.example ~x.example',
    'resolvectl dns cpn0 192.168.50.53',
  ]);
});

test('settings are removed, also without the resolver', async () => {
  const { run, commands } = runWith(busy);
  await revertDns(run, 'cpn0');
  expect(commands.slice(1)).toEqual(['resolvectl revert cpn0']);
  const failing = runWith(() => {
    throw new CommandFailed('resolvectl', 1, 'Failed to revert interface configuration: Unknown object');
  });
  await revertDns(failing.run, 'cpn0');
});

test('no change starts a resolver that was stopped', async () => {
  const { run, commands } = runWith(() => {
    throw new CommandFailed('busctl', 1, 'The name org.freedesktop.resolve1 was not provided by any .service files');
  });
  await expect(setDns(run, { do: 'set-dns', link: 'cpn0', dns: { servers: [], domains: [] } })).rejects.toThrow();
  await revertDns(run, 'cpn0');
  expect(commands).toHaveLength(2);
  for (const command of commands) expect(command).toMatch(/^busctl .*--auto-start=no/);
});

test('servers of our interface are no resolvers of the underlay', () => {
  const own = {
    servers: ['192.168.50.53'],
    domains: [],
    isDefaultRoute: false,
    dnssec: 'no',
    dnsOverTls: 'no',
  };
  const found = { resolvers: [address('192.168.50.53'), address('203.0.113.53')] };
  expect(withoutOwn(found, { own })).toEqual({ resolvers: ['203.0.113.53'] });
  for (const settings of [null, { own: null }]) expect(withoutOwn(found, settings)).toBe(found);
});
