import { fstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { chooseDriver, defaultFolders, openHost, openInspector, untestedWarning } from '../../src/host/open-host.ts';
import { openAnonymousFile, readAnonymousFile } from '../../src/host/process/anonymous-file.ts';

test.each([
  ['linux', 'linux', '/run/cpn'],
  ['darwin', 'wg-quick', '/var/run/cpn'],
  ['freebsd', 'wg-quick', '/var/run/cpn'],
  ['openbsd', 'wg-quick', '/var/run/cpn'],
  ['win32', 'windows', 'C:\\Program Files\\WireGuard\\Data\\cpn\\run'],
] as const)('%s is kept by %s', (platform, driver, runtime) => {
  expect(chooseDriver(undefined, platform)).toBe(driver);
  expect(chooseDriver('wg-quick', platform)).toBe('wg-quick');
  expect(defaultFolders(platform).runtime).toBe(runtime);
});

test('an unknown driver is refused with the known names', () => {
  expect(() => chooseDriver('ifconfig')).toThrow('CPN_HOST_DRIVER "ifconfig" must be one of linux, wg-quick, windows');
});

test('a warning reports that cpn is untested on Windows', () => {
  expect(untestedWarning('windows')).toContain('never tested on Windows');
  expect([untestedWarning('linux'), untestedWarning('wg-quick')]).toEqual([null, null]);
});

test('each driver lists what it cannot examine', async () => {
  for (const [driver, count] of [
    ['linux', 0],
    ['wg-quick', 5],
    ['windows', 5],
  ] as const) {
    expect((await openInspector(driver, '/nowhere')).unexamined.size, driver).toBe(count);
    expect(await openHost(driver, '/nowhere')).toHaveProperty('observe');
  }
  const inspector = await openInspector('wg-quick', '/nowhere');
  expect(await inspector.tools()).toMatchObject([
    { tool: 'wg', path: expect.stringMatching(/wg$/), version: expect.stringMatching(/\d/) },
    { tool: 'wg-quick', path: expect.stringMatching(/wg-quick$/), version: null },
  ]);
  expect(await inspector.file('/')).toMatchObject({ kind: 'folder' });
  expect([...(await inspector.diagnostics()).keys()]).toEqual(['wg-show.txt']);
});

test('without O_TMPFILE, an anonymous file loses its name before anything is written', async () => {
  const ours = async () => (await readdir(tmpdir())).filter((name) => /^cpn-[0-9a-f]{8}-/.test(name));
  const before = await ours();
  const file = openAnonymousFile('for a tool', false);
  try {
    expect(await ours()).toEqual(before);
    expect(fstatSync(file.fd)).toMatchObject({ nlink: 0 });
    expect(readAnonymousFile(file, 100)).toBe('for a tool');
  } finally {
    file.close();
  }
});
