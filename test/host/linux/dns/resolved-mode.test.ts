import { expect, test } from 'vitest';
import { CommandFailed } from '../../../../src/core/errors/index.ts';
import { readResolvedMode } from '../../../../src/host/linux/dns/resolved-mode.ts';
import type { Run } from '../../../../src/host/process/run.ts';

const reply = (properties: object) => (async () => JSON.stringify({ type: 'a{sv}', data: [properties] })) as Run;
const files: Readonly<Record<string, string>> = {
  '/proc/net/udp':
    '  12: 3500007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   991        0 5012 2 0 0 0\n',
  '/etc/resolv.conf': '# by hand\nnameserver 203.0.113.53\nsearch lan\n',
  '/etc/nsswitch.conf': 'passwd: files\nhosts:  files mymachines resolve [!UNAVAIL=return] dns # x\n',
};
const read = (path: string) => files[path] ?? '';

test('the mode of systemd-resolved, and what programs read', async () => {
  const run = reply({ ResolvConfMode: { type: 's', data: 'foreign' }, DNSStubListener: { type: 's', data: 'no' } });
  expect(await readResolvedMode(run, read, '/')).toEqual({
    ...{ mode: 'foreign', hasStub: false, nameservers: ['203.0.113.53'] },
    sources: ['files', 'mymachines', 'resolve', 'dns'],
  });
  const readStub = (path: string) => (path.startsWith('/proc') ? read(path) : '');
  expect(await readResolvedMode(reply({}), readStub, '/')).toEqual({
    ...{ mode: null, hasStub: true, nameservers: [], sources: [] },
  });
});

test('there is none without systemd-resolved', async () => {
  const run = (async () => {
    throw new CommandFailed('busctl call', 1, 'not provided by any .service files');
  }) as Run;
  expect(await readResolvedMode(run, read, '/')).toBeNull();
  const unused = reply({ ResolvConfMode: { type: 's', data: 'stub' } });
  expect(await readResolvedMode(unused, read, '/none')).toBeNull();
  // It runs in another network namespace.
  expect(await readResolvedMode(unused, () => '', '/')).toBeNull();
});
