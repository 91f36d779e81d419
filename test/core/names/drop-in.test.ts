import { describe, expect, test } from 'vitest';
import { dropInPrograms } from '../../../src/core/host-state/actual.ts';
import {
  dropInFolders,
  findMark,
  isOwnFile,
  readDropIns,
  renderDropIns,
  settingsIn,
} from '../../../src/core/names/drop-in.ts';
import { type DomainServers, formatServer } from '../../../src/core/names/split-dns.ts';
import { address } from '../samples.ts';

const dns = {
  servers: [
    { address: address('192.168.50.53'), port: 53 },
    { address: address('fd00::53'), port: 53 },
  ],
  domains: ['50.168.192.in-addr.arpa', 'corp.example'],
};
const ofDaemon = { servers: [{ address: address('10.77.0.5'), port: 553 }], domains: ['office.cpn.internal'] };

test.each(['dnsmasq', 'NetworkManager'] as const)('a file for %s has servers for each domain', (program) => {
  expect(renderDropIns({ program, folder: '/etc/dnsmasq.d' }, 'cpn0', dns)).toEqual({
    '/etc/dnsmasq.d/cpn-cpn0.conf': [
      '# cpn cpn0 (written by cpn; edits are lost)',
      'server=/50.168.192.in-addr.arpa/192.168.50.53',
      'server=/50.168.192.in-addr.arpa/fd00::53',
      'rebind-domain-ok=/50.168.192.in-addr.arpa/',
      'server=/corp.example/192.168.50.53',
      'server=/corp.example/fd00::53',
      'rebind-domain-ok=/corp.example/',
      '',
    ].join('\n'),
  });
});

test('a file for unbound has a zone for each domain', () => {
  const zone = (domain: string, ...servers: readonly string[]) => [
    ...['server:', `  domain-insecure: "${domain}."`, `  private-domain: "${domain}."`],
    ...[`  local-zone: "${domain}." transparent`, 'forward-zone:', `  name: "${domain}."`],
    ...servers.map((server) => `  forward-addr: ${server}`),
    'server:',
  ];
  expect(renderDropIns({ program: 'unbound', folder: '/etc/unbound/unbound.conf.d' }, 'cpn0', dns)).toEqual({
    '/etc/unbound/unbound.conf.d/cpn-cpn0.conf': [
      '# cpn cpn0 (written by cpn; edits are lost)',
      ...['server:', '  do-not-query-localhost: no'],
      ...zone('50.168.192.in-addr.arpa', '192.168.50.53', 'fd00::53'),
      ...zone('corp.example', '192.168.50.53', 'fd00::53'),
      '',
    ].join('\n'),
  });
});

describe.each(dropInPrograms)('a file for %s', (program) => {
  const render = (wanted: DomainServers) => renderDropIns({ program, folder: '/etc/x' }, 'cpn-a.b', wanted);

  test('has our mark', () => {
    const texts = Object.values(render(dns));
    expect(texts.map(findMark)).toEqual(texts.map(() => 'cpn-a.b'));
    expect(texts.flatMap(settingsIn)).not.toHaveLength(0);
  });

  test.each([dns, ofDaemon])('is read as it was written: %j', (wanted) => {
    expect(readDropIns(render(wanted))).toEqual({
      servers: wanted.servers.map(formatServer),
      domains: wanted.domains.map((domain) => `~${domain}`),
    });
    expect(readDropIns({})).toBeNull();
  });
});

test.each(['', 'server=/x/192.0.2.1\n', '\n# cpn cpn0 (written by cpn; edits are lost)\n', '# cpn cpn0\n'])(
  'another file has no mark: %j',
  (text) => {
    expect(findMark(text)).toBeNull();
  },
);

test('a file is ours only in its place', () => {
  const text = '# cpn cpn7 (written by cpn; edits are lost)\nserver=/corp.lan/192.168.50.53\n';
  for (const folder of Object.values(dropInFolders).flat())
    expect(isOwnFile(`${folder}/cpn-cpn7.conf`, text)).toBe(true);
  for (const path of ['/etc/dnsmasq.d/copy.conf', '/etc/dnsmasq.d/cpn-cpn8.conf', '/etc/other/cpn-cpn7.conf'])
    expect(isOwnFile(path, text)).toBe(false);
  expect(isOwnFile('/etc/dnsmasq.d/cpn-cpn7.conf', 'user=x\n')).toBe(false);
});
