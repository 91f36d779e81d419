import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { openNameless, readNameless } from '../../src/host/nameless-file.ts';
import { chooseDriver, describeUntested, findUsualFolders, openHost, openInspector } from '../../src/host/open-host.ts';

test.each([
  ['linux', 'linux', '/run/cpn'],
  ['darwin', 'wg-quick', '/var/run/cpn'],
  ['freebsd', 'wg-quick', '/var/run/cpn'],
  ['openbsd', 'wg-quick', '/var/run/cpn'],
  ['win32', 'windows', 'C:\\Program Files\\WireGuard\\Data\\cpn\\run'],
] as const)('%s is kept by %s', (platform, driver, runtime) => {
  expect(chooseDriver(undefined, platform)).toBe(driver);
  expect(chooseDriver('wg-quick', platform)).toBe('wg-quick');
  expect(findUsualFolders(platform).runtime).toBe(runtime);
});

test('a driver of another name is refused with the names that there are', () => {
  expect(() => chooseDriver('ifconfig')).toThrow('CPN_HOST_DRIVER "ifconfig" is none of linux, wg-quick, windows');
});

test('whoever is on Windows is told that nobody tried it', () => {
  expect(describeUntested('windows')).toContain('never tested on Windows');
  expect([describeUntested('linux'), describeUntested('wg-quick')]).toEqual([null, null]);
});

test('what is not examined is named by the driver that cannot', async () => {
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
  expect([...(await inspector.prints()).keys()]).toEqual(['wg-show.txt']);
});

test('where no file can be without a name from the beginning, it loses it before anything is written', async () => {
  const ours = async () => (await readdir(tmpdir())).filter((name) => /^cpn-[0-9a-f]{8}-/.test(name));
  const before = await ours();
  const file = await openNameless('for a tool', false);
  try {
    expect(await ours()).toEqual(before);
    expect(await file.stat()).toMatchObject({ nlink: 0 });
    expect(await readNameless(file, 100)).toBe('for a tool');
  } finally {
    await file.close();
  }
});
